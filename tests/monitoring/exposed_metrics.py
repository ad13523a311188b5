"""The metrics that each component registers, read from its registry."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from prometheus_client import REGISTRY, CollectorRegistry

from dsf.agent.inventory.inventory_metrics import InventoryMetrics
from dsf.agent.metrics import AgentMetrics
from dsf.agent.otlp.received_metrics import ReceivedMetrics
from dsf.agent.otlp.receiver import OtlpMetrics
from dsf.hub.dispatch.dispatcher import Dispatcher
from dsf.hub.run import HubController
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from optimizer.service.optimizer import Optimizer
from policy_watcher.run import PolicyWatcher

if TYPE_CHECKING:
    from dsf.kube.port import StatusApplier


@dataclass(frozen=True)
class ExposedMetric:
    """A metric family: its name as queries spell it, without the suffixes of a histogram."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def series(self) -> frozenset[str]:
        """The names of its series."""
        if self.type != "histogram":
            return frozenset({self.name})
        return frozenset(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))

    @property
    def queried_labels(self) -> frozenset[str]:
        """The labels of its series."""
        return frozenset({*self.labels, *(("le",) if self.type == "histogram" else ())})


def exposed_metrics() -> dict[str, tuple[ExposedMetric, ...]]:
    """Return the metrics of each component, in the order in which it registers them."""
    return {component: tuple(_registered(register)) for component, register in _COMPONENTS.items()}


def register_all(registry: CollectorRegistry) -> None:
    """Register the metrics of the components of the hub."""
    for component in ("hub controller", "optimizer"):
        _COMPONENTS[component](registry)


def _agent(registry: CollectorRegistry) -> None:
    AgentMetrics(registry, lambda: 0.0).configured(0)
    registry.register(OtlpMetrics(ReceivedMetrics(lambda: 0.0)))
    InventoryMetrics(registry, lambda: 0.0)


_COMPONENTS: dict[str, Callable[[CollectorRegistry], object]] = {
    "agent": _agent,
    "hub controller": lambda registry: HubController(EmbeddedHub(), registry=registry),
    "dispatcher": lambda registry: Dispatcher(cast("StatusApplier", None), registry=registry),
    "optimizer": lambda registry: Optimizer(EmbeddedHub(), now=utc_now, registry=registry),
    "policy watcher": lambda registry: PolicyWatcher(EmbeddedHub(), registry=registry),
}

OF_EACH_PROCESS = frozenset(
    family.name + ("_total" if family.type == "counter" else "") for family in REGISTRY.collect()
)
"""What prometheus_client says of each process: `process_*` and `python_*`."""


def _registered(register: Callable[[CollectorRegistry], object]) -> Iterator[ExposedMetric]:
    registry = CollectorRegistry()
    register(registry)
    for collector in registry._collector_to_names:
        for family in collector.collect():
            named = collector if hasattr(collector, "_labelnames") else family
            total = "_total" if family.type == "counter" else ""
            yield ExposedMetric(
                name=family.name + total,
                type=family.type,
                labels=tuple(named._labelnames),
                meaning=family.documentation,
            )
