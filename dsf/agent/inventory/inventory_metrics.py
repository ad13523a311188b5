"""The metrics of an agent's inventory. Each help text is a row in docs/reference/metrics.md."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge


class InventoryMetrics:
    """Nodes and Pods that were counted, and what became of the inventory on the hub."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float]) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            text = f"With --inventory: {text}"
            return Gauge(f"dynamic_scoring_inventory_{name}", text, labels, registry=registry)

        self.nodes = gauge("nodes", "nodes that were counted.")
        self.pods = gauge("pods", "Pods that were counted: bound to a node, or pending.", "state")
        self.bytes = gauge("bytes", "size of the NodeInventory as JSON when it last changed.")
        self.publish = Counter(
            "dynamic_scoring_inventory_publish",
            "With --inventory: writes of the NodeInventory: success, or the reason of a failure.",
            ["status"],
            registry=registry,
        )
        self.confirmed_at: float | None = None
        gauge(
            "age_seconds",
            "seconds since the managed cluster confirmed what the hub has; NaN before that.",
        ).set_function(
            lambda: float("nan") if self.confirmed_at is None else now() - self.confirmed_at
        )
