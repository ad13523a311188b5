"""Metrics of controllers and leader election.

dsf_reconcile_total{controller, result}   result: success, error, broken
dsf_reconcile_seconds{controller}         histogram
dsf_queue_depth{controller}
leader_election_master_status{name}       1 while leading, as in Kubernetes' own controllers
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


@dataclass(frozen=True, slots=True)
class ControllerMetrics:
    """The metrics that all controllers and leader electors of one registry share."""

    results: Counter
    seconds: Histogram
    depth: Gauge
    leader: Gauge


_REGISTERED: WeakKeyDictionary[CollectorRegistry, ControllerMetrics] = WeakKeyDictionary()


def controller_metrics(registry: CollectorRegistry) -> ControllerMetrics:
    """Return the metrics of a registry; the first call registers them."""
    if registry not in _REGISTERED:
        _REGISTERED[registry] = _register(registry)
    return _REGISTERED[registry]


def _register(registry: CollectorRegistry) -> ControllerMetrics:
    return ControllerMetrics(
        results=Counter(
            "dsf_reconcile",
            "Reconciliations by their result.",
            ["controller", "result"],
            registry=registry,
        ),
        seconds=Histogram(
            "dsf_reconcile_seconds",
            "Seconds that a reconciliation took.",
            ["controller"],
            registry=registry,
        ),
        depth=Gauge(
            "dsf_queue_depth",
            "Names waiting to be reconciled.",
            ["controller"],
            registry=registry,
        ),
        leader=Gauge(
            "leader_election_master_status",
            "Whether this process leads.",
            ["name"],
            registry=registry,
        ),
    )
