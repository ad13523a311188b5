"""What a demo starts and registers, as data: its setup, its scorers, and the GPUs of its clusters.

Both GPUs have the MIG profiles of the scenario. The rates are made up.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from dsf.api.names import HUB_NAMESPACE, SCORING_CONFIG
from dsf.kube.changes import Change
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG
from dsf.kube.port import Object
from dsf.scorer_kit.prometheus_replay import RecordedSeries
from dsf.sim.demo.clusters import ClusterLabels

PROMETHEUS_URL = "http://prometheus.monitoring.svc:9090"
"""What DynamicScorers name as source; agents ask the server of their --prometheus-url instead."""


@dataclass(frozen=True, slots=True)
class DemoSetup:
    """What differs between demos.

    `cluster_labels` are the labels of each managed cluster, and of its node. `scorers` are the
    options of each sample scorer that is started, by the name of its module. `registered` returns
    the DynamicScorers, given the base URL of each. `prometheus` serves the base URL of a Prometheus
    for each managed cluster. With `policy_watchers`, each managed cluster has one. With
    `inventories`, agents report what nodes have; without, plans rely on what is stated. Workloads
    and policies of `manifest_namespaces` are sent to scorers that ask for them. `authors` returns
    the DynamicScorers of scorers that run already, given the URLs that `prometheus` serves. `node`
    returns what makes the node of a cluster. Without `agent_processes`, who runs the demo runs the
    agents too. `optimizer_options` are read after `prometheus` serves.
    """

    title: str
    cluster_labels: ClusterLabels
    scorers: Mapping[str, tuple[str, ...]]
    registered: Callable[[Mapping[str, str]], list[Object]]
    prometheus: Callable[[], AbstractAsyncContextManager[Mapping[str, str]]]
    policy_watchers: bool = True
    inventories: bool = False
    manifest_namespaces: tuple[str, ...] = ()
    authors: Callable[[Mapping[str, str]], Awaitable[list[Object]]] | None = None
    node: Callable[[str], list[Change]] | None = None
    agent_processes: bool = True
    optimizer_options: Sequence[str] = ()


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


def static_scorers(static_url: str) -> list[Object]:
    """Return the DynamicScorers of the scenario's scores, which need no source."""
    return [
        _better_if_higher("example-performance", f"{static_url}/performance/config"),
        _better_if_higher("example-powerconsumption", f"{static_url}/powerconsumption/config"),
    ]


def sample_scorer(sample_url: str) -> Object:
    """Return the DynamicScorer of the CPU use of pods.

    Entries are whole numbers: the score of a pod that uses less than a core is normalized, because
    it would be 0.
    """
    sample = _scorer("sample-scorer", f"{sample_url}/config", "${node};${namespace};${pod}")
    cores = {
        "displayName": "CPU use",
        "unit": "cores",
        "range": {"min": 0},
        "scoring": {"normalize": {"min": 0, "max": 1}},
    }
    return {**sample, "spec": {**sample["spec"], **cores}}


def throughput_scorer(sample_url: str) -> Object:
    """Return a DynamicScorer that scores devices of a cluster by the throughput of apps on them.

    It calls the sample scorer, which returns the mean of each series, with a query of its own.
    """
    found = _better_if_higher("example-throughput", f"{sample_url}/config")
    own = {
        "configSyncMode": "None",
        "source": prometheus_source(THROUGHPUT_QUERY, window=600, step=60),
        "scoring": {
            "path": "/scoring",
            "params": {"name": "example_throughput_score", "interval": 30},
        },
    }
    return {**found, "spec": {**found["spec"], **own}}


def prometheus_source(query: str, *, window: int, step: int) -> Object:
    """Return a source of a DynamicScorer; `window` and `step` are in seconds."""
    params = {"query": query, "range": window, "step": step}
    return {"type": "Prometheus", "host": PROMETHEUS_URL, "params": params}


def scoring_config() -> Object:
    """Return the DynamicScoringConfig that distributes all of them to every cluster."""
    return DYNAMIC_SCORING_CONFIG.object(
        metadata={"name": SCORING_CONFIG, "namespace": HUB_NAMESPACE}, spec={"masks": []}
    )


def _better_if_higher(name: str, config_url: str) -> Object:
    """Return the DynamicScorer of a score per app and device, of which higher values are better."""
    found = _scorer(name, config_url, "${app};${device}")
    return {**found, "spec": {**found["spec"], "direction": "HigherIsBetter"}}


def _scorer(name: str, config_url: str, dimension: str) -> Object:
    return DYNAMIC_SCORER.object(
        metadata={"name": name, "namespace": HUB_NAMESPACE},
        spec={
            "description": f"{name} of the demo",
            "configURL": config_url,
            "configSyncMode": "Full",
            "location": "External",
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": dimension,
        },
    )
