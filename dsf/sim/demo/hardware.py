"""What differs between the demo's clusters: their GPUs, and how fast the apps run on them.

Both GPUs have the MIG profiles of the scenario. The rates are made up.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dsf.sim.prometheus_replay import RecordedSeries

THROUGHPUT_QUERY = "sum by (app, device) (rate(app_requests_total[5m]))"
"""PromQL for the requests per second of each app on each device."""

PRODUCT_LABEL = "nvidia.com/gpu.product"
COUNT_LABEL = "nvidia.com/gpu.count"

Throughput = Mapping[str, Mapping[str, float]]
"""Requests per second by app, then by device."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The one GPU of a cluster, and the throughput of the apps on it."""

    product: str
    throughput: Throughput

    def labels(self) -> dict[str, str]:
        """Return the labels of GPU Feature Discovery, for the node and for the ManagedCluster."""
        return {PRODUCT_LABEL: self.product, COUNT_LABEL: "1"}

    def series(self) -> tuple[RecordedSeries, ...]:
        """Return the throughput as the answer to THROUGHPUT_QUERY."""
        return tuple(
            RecordedSeries({"app": app, "device": device}, (rate,))
            for app, by_device in self.throughput.items()
            for device, rate in by_device.items()
        )


HARDWARE = {
    "worker01": Hardware(
        "NVIDIA-GH200-480GB",
        {"app01": {"3g.48gb": 60, "2g.24gb": 40}, "app02": {"3g.48gb": 70, "2g.24gb": 85}},
    ),
    "worker02": Hardware(
        "NVIDIA-H20",
        {"app01": {"3g.48gb": 80, "2g.24gb": 30}, "app02": {"3g.48gb": 50, "2g.24gb": 45}},
    ),
}
"""The best plan runs app02 on 2g.24gb of worker01, and app01 on 3g.48gb of worker02: 165."""
