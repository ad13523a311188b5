"""Metrics of controllers, leader election and writes."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dsf.kube.apply import WriteLimiter
from dsf.kube.errors import FLOW_SCHEMA_UID, PRIORITY_LEVEL_UID, KubeError, TooManyRequests


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
            "Reconciliations: success, error (tried again), broken (a bug).",
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
            "dsf_queue_depth", "Names waiting to be reconciled.", ["controller"], registry=registry
        ),
        leader=Gauge(
            "leader_election_master_status",
            "1 while this process leads; the name is that of its Lease.",
            ["name"],
            registry=registry,
        ),
    )


def measure_writes(limiter: WriteLimiter, registry: CollectorRegistry) -> None:
    """Register the metrics of a limiter's writes."""
    seconds = Histogram("dsf_write_seconds", "Seconds that a write took.", registry=registry)
    refused = Counter(
        "dsf_writes_refused",
        "Writes that the API server refused with 429, by the UIDs that API"
        " priority and fairness sends.",
        ["flow_schema", "priority_level"],
        registry=registry,
    )

    def ended(taken: float, error: KubeError | None) -> None:
        seconds.observe(taken)
        if isinstance(error, TooManyRequests):
            refused.labels(
                error.details.get(FLOW_SCHEMA_UID, ""), error.details.get(PRIORITY_LEVEL_UID, "")
            ).inc()

    limiter.on_write = ended
    gauges = {
        "dsf_write_floor_seconds": lambda: limiter.floor_seconds or 0.0,
        "dsf_writes_in_flight": lambda: limiter.in_flight,
        "dsf_writes_in_flight_limit": lambda: limiter.limit,
    }
    helps = (
        "Latency of writes when the fewest are in flight; 0 before it is known.",
        "Writes in flight.",
        "Writes that may be in flight now.",
    )
    for (name, value), text in zip(gauges.items(), helps, strict=True):
        Gauge(name, text, registry=registry).set_function(value)
