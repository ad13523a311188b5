"""Sums of what Pods request, by node and by ManifestWork; one changed Pod costs one subtraction."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from dsf.agent.inventory.amounts import add
from dsf.agent.inventory.applied_works import WorkIndex
from dsf.agent.inventory.pod_use import PodUse

Key = tuple[str, str]


@dataclass(slots=True)
class NodeSums:
    """What the Pods of a node request, all and by ManifestWork; Pods by unreadable resource."""

    requested: dict[str, int] = field(default_factory=dict)
    works: dict[str, dict[str, int]] = field(default_factory=dict)
    unreadable: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class WorkSums:
    """The Pods of a ManifestWork and what they request; `pending` are their keys."""

    running: int = 0
    ready: int = 0
    requested: dict[str, int] = field(default_factory=dict)
    pending: set[Key] = field(default_factory=set)
    pods: int = 0


@dataclass(slots=True)
class OtherSums:
    """The Pods of no ManifestWork: those that are bound to a node, and those that are not yet."""

    bound: int = 0
    unbound: int = 0
    requested: dict[str, int] = field(default_factory=dict)
    pending_requested: dict[str, int] = field(default_factory=dict)


class PodSums:
    """The Pods of a cluster, and their sums. `changed` are nodes whose sums have changed."""

    def __init__(self) -> None:
        self.pods: dict[Key, PodUse] = {}
        self.nodes: dict[str, NodeSums] = {}
        self.works: dict[str, WorkSums] = {}
        self.others = OtherSums()
        self.unreadable: set[Key] = set()
        self.pending: set[Key] = set()
        self.changed: set[str] = set()
        self._work: dict[Key, str] = {}
        self._index = WorkIndex()

    def put(self, key: Key, pod: PodUse | None) -> None:
        """Count a Pod as it is now; None: it is gone or has ended."""
        before = self.pods.pop(key, None)
        if before:
            self._count(key, before, self._work.pop(key, ""), -1)
        if pod:
            self.pods[key] = pod
            self._assign(key, pod, self._index.work(pod.owner))
        for kept, is_in in (
            (self.unreadable, pod is not None and bool(pod.unreadable)),
            (self.pending, pod is not None and pod.pending is not None),
        ):
            (kept.add if is_in else kept.discard)(key)

    def set_works(self, index: WorkIndex) -> None:
        """Assign all Pods to ManifestWorks anew."""
        self._index = index
        for key, pod in self.pods.items():
            work, before = index.work(pod.owner), self._work.get(key, "")
            if work != before:
                self._count(key, pod, before, -1)
                self._work.pop(key, None)
                self._assign(key, pod, work)

    def waiting(self, work: str) -> Iterator[PodUse]:
        """Yield the pending Pods of a ManifestWork."""
        return (self.pods[key] for key in self.works[work].pending)

    def works_by_pod(self) -> dict[Key, str]:
        """Return the ManifestWork of each Pod that is one's."""
        return dict(self._work)

    def _assign(self, key: Key, pod: PodUse, work: str) -> None:
        if work:
            self._work[key] = work
        self._count(key, pod, work, 1)

    def _count(self, key: Key, pod: PodUse, work: str, sign: int) -> None:
        if pod.node:
            self._count_on_node(pod, work, sign)
        if work:
            self._count_of_work(key, pod, work, sign)
        elif pod.node:
            self.others.bound += sign
            add(self.others.requested, pod.requests, sign)
        else:
            self.others.unbound += sign
            add(self.others.pending_requested, pod.requests, sign)

    def _count_on_node(self, pod: PodUse, work: str, sign: int) -> None:
        node = self.nodes.setdefault(pod.node, NodeSums())
        add(node.requested, pod.requests, sign)
        add(node.unreadable, ((name, 1) for name in pod.unreadable), sign)
        if work:
            held = node.works.setdefault(work, {})
            add(held, pod.requests, sign)
            if not held:
                del node.works[work]
        if not node.requested:  # Each Pod requests `pods`, so there is none.
            del self.nodes[pod.node]
        self.changed.add(pod.node)

    def _count_of_work(self, key: Key, pod: PodUse, work: str, sign: int) -> None:
        sums = self.works.setdefault(work, WorkSums())
        sums.pods += sign
        sums.running += sign * pod.running
        sums.ready += sign * (pod.running and pod.ready)
        add(sums.requested, pod.requests, sign)
        if pod.pending:
            (sums.pending.add if sign > 0 else sums.pending.discard)(key)
        if not sums.pods:
            del self.works[work]
