"""What runs on a cluster without the hub, as far as OCM's resource usage scores can tell.

The add-on resource-usage-collect publishes AddOnPlacementScores `resource-usage-score` with the
entries cpuAvailable and memAvailable: allocatable minus requests of all pods, 0 to 100 cores and 0
to 1 TiB scaled linearly to -100..100 and cut to an integer.

Source: resource-usage-collect-addon/pkg/addon/agent/calculate.go of
https://github.com/open-cluster-management-io/addon-contrib
"""

from collections.abc import Iterator, Mapping

from dsf.kube.port import Object
from optimizer.domain.quantity import parse_quantity

USAGE_SCORE = "resource-usage-score"

_FULL_SCALE = {"cpu": ("cpuAvailable", 100.0), "memory": ("memAvailable", 2.0**40)}
"""The entry of a kind, and the amount at which its score is 100 and says no more."""


def unexplained_use(
    managed_cluster: Object, score: Object, explained: Mapping[str, float]
) -> Iterator[tuple[str, float]]:
    """Yield (kind, amount) of what pods request and no workload of the hub explains.

    amount = allocatable - available - explained. `score` is the cluster's, empty if it has none.
    The largest available amount that a score can stand for is taken, so nothing is deducted twice
    because of its rounding.
    """
    listed = (score.get("status") or {}).get("scores") or ()
    entries = {str(item.get("name")): item.get("value") for item in listed}
    allocatable = (managed_cluster.get("status") or {}).get("allocatable") or {}
    for kind, (entry, full) in _FULL_SCALE.items():
        value, most = entries.get(entry), parse_quantity(str(allocatable.get(kind)))
        if not isinstance(value, int) or most is None or not -100 <= value < 100:  # noqa: PLR2004
            continue
        # Go cuts towards 0: 5 stands for up to 6, and -5 for at most -5.
        available = full * (value + (100 if value < 0 else 101)) / 200
        amount = most - available - explained.get(kind, 0.0)
        if amount > 0:
            yield kind, amount
