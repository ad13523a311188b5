"""What a demo starts, as data: its managed clusters, scorers and Prometheus servers."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from dsf.kube.port import Object
from dsf.sim.demo.clusters import ClusterLabels

PROMETHEUS_URL = "http://prometheus.monitoring.svc:9090"
"""What DynamicScorers name as source; agents ask the server of their --prometheus-url instead."""


@dataclass(frozen=True, slots=True)
class DemoSetup:
    """What differs between demos.

    `cluster_labels` are the labels of each managed cluster, and of its node. `scorers` are the
    options of each sample scorer that is started, by the name of its module. `registered` returns
    the DynamicScorers, given the base URL of each. `prometheus` serves the base URL of a Prometheus
    for each managed cluster. With `policy_watchers`, each managed cluster has one.
    """

    title: str
    cluster_labels: ClusterLabels
    scorers: Mapping[str, tuple[str, ...]]
    registered: Callable[[Mapping[str, str]], list[Object]]
    prometheus: Callable[[], AbstractAsyncContextManager[Mapping[str, str]]]
    policy_watchers: bool = True
