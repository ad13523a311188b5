"""The value that a workload adds to a cluster through workloads that run only with it."""

from collections.abc import Callable, Iterable, Mapping

from dsf.kube.selectors import valid_selector
from optimizer.domain.fleet import Cluster, Workload

Dependents = Mapping[str, tuple[Workload, ...]]
"""For each workload, those that may need it on their cluster, directly or through others."""

Value = Callable[[str, str], float | None]
"""What an app's assignment on a device of a cluster is worth; None where it has none."""


def dependents(workloads: Iterable[Workload]) -> Dependents:
    """Return the dependents of each workload that an affinity selector matches."""
    every = list(workloads)
    direct: dict[str, list[Workload]] = {}
    for text in dict.fromkeys(item.workload_affinity for item in every if item.workload_affinity):
        wanted, users = valid_selector(text), [i for i in every if i.workload_affinity == text]
        for host in every:
            if wanted.matches(host.labels):
                direct.setdefault(host.name, []).extend(users)
    return {name: _all(name, direct) for name in direct}


def affinity_bonus(needing: Dependents, cluster: Cluster, value: Value) -> Mapping[str, float]:
    """Return an upper bound on what the dependents of each workload are worth on a cluster."""
    known = {item.name: item for found in needing.values() for item in found}
    best = {name: max(0.0, _best(item, cluster, value)) for name, item in known.items()}
    return {host: sum(best[item.name] for item in found) for host, found in needing.items()}


def _all(host: str, direct: Mapping[str, Iterable[Workload]]) -> tuple[Workload, ...]:
    found, ahead = dict[str, Workload](), [host]
    while ahead:
        new = {item.name: item for item in direct.get(ahead.pop(), ()) if item.name not in found}
        found.update(new)
        ahead += new
    return tuple(item for name, item in found.items() if name != host)


def _best(dependent: Workload, cluster: Cluster, value: Value) -> float:
    devices = dict.fromkeys(item.device for item in cluster.supplies if item.kind == dependent.kind)
    values = [found for name in devices if (found := value(dependent.app, name)) is not None]
    stays = dependent.move_cost if cluster.name in dependent.current else 0.0
    return max(values, default=0.0) + stays
