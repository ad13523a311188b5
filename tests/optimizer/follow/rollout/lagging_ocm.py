"""OCM in memory, which does each single thing as late as a seed says.

It has the generated objects of one namespace, and does with them what OCM, the MIG manager, the
work agents and the policy watchers do. Every `tick` does some of what is due.
"""

import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from dsf.api.names import REPLICA_SET_LABEL
from dsf.kube import kinds
from dsf.kube.changes import Change, Create, Delete
from dsf.kube.json_merge_patch import merged
from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import PolicyEnforcement
from optimizer.follow.placement_status.hub_state import (
    PLACEMENT_LABEL,
    ObservedPlacement,
    read_placements,
)
from optimizer.follow.rollout.rollout_state import ObjectKey, Replica, RolloutState, key_of
from optimizer.follow.rollout.step_requirements import RolloutFacts, rollout_facts
from optimizer.snapshot.observation import Observation
from tests.dsf.sim.builders import NOW, make

CLAIM = "policy-watcher-claim"
TICK = timedelta(seconds=10)
WATCHER_TICKS = 3
"""A policy watcher looks at least so often, in ticks: half of the default of minReadySeconds."""


class LaggingOcm:
    """The objects of a namespace and what has come of them; `drawn` says what is late."""

    def __init__(self, fleet: Fleet, drawn: random.Random) -> None:
        self.fleet = fleet
        self.drawn = drawn
        self.now: datetime = NOW
        self.objects: dict[ObjectKey, Object] = {}
        self.selected: dict[str, set[str]] = {}
        self.works: dict[Replica, bool] = {}
        """Whether each ManifestWork is available."""
        self.deleting: set[Replica] = set()
        self.compliant: dict[PolicyEnforcement, bool] = {}
        self.claims: dict[str, str] = {}
        self._looked = {cluster.name: 0 for cluster in fleet.clusters}

    def settle(self) -> None:
        """Do all that is due."""
        for _ in range(10):
            self._tick(late=0.0)

    def tick(self) -> None:
        """Let time pass; do some of what is due."""
        self.now += TICK
        self._tick(late=self.drawn.choice((0.1, 0.5, 0.9)))

    def write(self, change: Change) -> None:
        """Make a change of the generated objects."""
        key = change.kind.kind, change.name
        match change:
            case Create(_, obj):
                self.objects[key] = obj
            case Delete():
                del self.objects[key]
            case _:
                self.objects[key] = merged(self.objects[key], change.body)

    def running(self) -> set[Replica]:
        """Return the replicas that are available and stay."""
        return {item for item, there in self.works.items() if there} - self.deleting

    def facts(self, workloads: Iterable[str]) -> RolloutFacts:
        """Return what a rollout reads."""
        return rollout_facts(self.observation(), owner=self.fleet.owner, workloads=set(workloads))

    def observation(self) -> Observation:
        """Return the objects of the hub."""
        return Observation(
            works=tuple(self._works()),
            managed_clusters=tuple(
                make(
                    kinds.MANAGED_CLUSTER,
                    name,
                    status={"clusterClaims": [{"name": CLAIM, "value": value}] if value else []},
                )
                for name in self._looked
                for value in [self.claims.get(name, "")]
            ),
            policies=tuple(self._policies()),
            workloads=tuple(self._replica_sets()),
            placements=self._of(kinds.PLACEMENT.kind),
            bindings=self._of(kinds.PLACEMENT_BINDING.kind),
            decisions=tuple(
                make(
                    kinds.PLACEMENT_DECISION,
                    f"{name}-decision",
                    "default",
                    metadata={"labels": {PLACEMENT_LABEL: name}},
                    status={"decisions": [{"clusterName": at} for at in sorted(clusters)]},
                )
                for name, clusters in self.selected.items()
            ),
            observed_at=self.now,
        )

    def _tick(self, late: float) -> None:
        for name, placement in self._placements().items():
            if self._due(late):
                self.selected[name] = set(self._choice(placement))
        for name in self.selected.keys() - self._placements().keys():
            del self.selected[name]
        for workload in self.fleet.workloads:
            if workload.placement in self.selected and self._due(late):
                self._deliver(workload.name, self.selected[workload.placement])
        self._run_work_agents(late)
        bound = set(self._bound())
        self.compliant = {
            item: self.compliant.get(item, False) or self._due(late) for item in bound
        }
        for name, ticks in self._looked.items():
            self._looked[name] = ticks + 1
            if ticks + 1 >= WATCHER_TICKS or self._due(late):
                self._looked[name] = 0
                self.claims[name] = self._claim(name)

    def _run_work_agents(self, late: float) -> None:
        for item in list(self.works):
            if self._due(late):
                self.works[item] = True
                if item in self.deleting:
                    del self.works[item]
                    self.deleting.discard(item)

    def _claim(self, cluster: str) -> str:
        own = [done for item, done in self.compliant.items() if item.cluster == cluster]
        if not own:
            return "empty"
        return "compliant" if all(own) else "noncompliant"

    def _due(self, late: float) -> bool:
        return self.drawn.random() >= late

    def _deliver(self, workload: str, clusters: set[str]) -> None:
        for cluster in clusters:
            self.works.setdefault(Replica(workload, cluster), False)
        for item in self.works:
            if item.workload == workload and item.cluster not in clusters:
                self.deleting.add(item)

    def _choice(self, placement: ObservedPlacement) -> list[str]:
        met = [
            name
            for name in placement.clusters
            if not placement.claims[name] or self.claims.get(name) == "compliant"
        ]
        return met[: placement.number]

    def _placements(self) -> dict[str, ObservedPlacement]:
        clusters = [make(kinds.MANAGED_CLUSTER, name) for name in self._looked]
        return read_placements(self._of(kinds.PLACEMENT.kind), (), clusters)

    def _bound(self) -> Iterator[PolicyEnforcement]:
        for binding in self._of(kinds.PLACEMENT_BINDING.kind):
            for cluster in self.selected.get(binding["placementRef"]["name"], ()):
                for subject in binding["subjects"]:
                    yield PolicyEnforcement(cluster, subject["name"])

    def _of(self, kind: str) -> tuple[Object, ...]:
        return tuple(obj for key, obj in self.objects.items() if key[0] == kind)

    def _works(self) -> Iterator[Object]:
        for item, there in self.works.items():
            yield make(
                kinds.MANIFEST_WORK,
                item.workload,
                item.cluster,
                metadata={
                    "labels": {REPLICA_SET_LABEL: f"default.{item.workload}"},
                    **({"deletionTimestamp": "x"} if item in self.deleting else {}),
                },
                status={"conditions": _true("Applied") + (_true("Available") if there else [])},
            )

    def _policies(self) -> Iterator[Object]:
        names = {item.policy for cluster in self.fleet.clusters for item in cluster.candidates}
        for name in sorted(names):
            listed = [
                {"clustername": at.cluster, "compliant": "Compliant" if done else "NonCompliant"}
                for at, done in self.compliant.items()
                if at.policy == name
            ]
            yield make(kinds.POLICY, name, "default", status={"status": listed})

    def _replica_sets(self) -> Iterator[Object]:
        for workload in self.fleet.workloads:
            own = [at for at in self.works if at.workload == workload.name]
            here = [at for at in own if at not in self.deleting]
            ready = sum(self.works[at] for at in here)
            yield make(
                kinds.MANIFEST_WORK_REPLICA_SET,
                workload.name,
                "default",
                spec={"placementRefs": [{"name": workload.placement}]},
                status={"summary": {"total": len(here), "applied": ready, "available": ready}},
            )


def started(fleet: Fleet, objects: Iterable[Object], drawn: random.Random) -> LaggingOcm:
    """Return an OCM in which everything of these objects has landed."""
    ocm = LaggingOcm(fleet, drawn)
    ocm.objects = {key_of(obj): obj for obj in objects}
    ocm.settle()
    return ocm


def not_idle(ocm: LaggingOcm, before: RolloutState, after: RolloutState) -> set[Replica]:
    """Return what runs on clusters that change a policy, and belongs to neither state."""
    changed = {choice.cluster for choice in before.policies ^ after.policies}
    known = before.replicas | after.replicas
    return {item for item in ocm.works if item.cluster in changed and item not in known}


def _true(kind: str) -> list[Object]:
    return [{"type": kind, "status": "True"}]
