"""The simulated OCM: runs every simulated controller against a hub and its managed clusters.

It reads objects, lets the pure `controllers` decide, and applies their changes until a whole pass
changes nothing. Where every write is noted, only the controllers run that read what was written.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from dsf.api.names import PLACEMENT_LABEL, REPLICA_SET_LABEL
from dsf.api.scoring.placement_scores import validity_of
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.changes import Change, diff
from dsf.kube.errors import NotFound
from dsf.kube.port import Kube, Object, find_object
from dsf.sim.controllers import (
    manifest_work_replica_set,
    mig_manager,
    placement,
    policy_framework,
    registration,
    scheduler,
    work_agent,
)
from dsf.sim.controllers.musthave import Observed, Reference
from dsf.sim.controllers.placement import LiveScores

MAX_PASSES = 50
"""Passes before `settle` fails: far above the longest chain of controllers."""

PAUSE_SECONDS = 0.2
"""Seconds between two runs; people who watch the demo do not notice so short a delay."""


class DidNotSettle(RuntimeError):
    """The simulated controllers still change objects after MAX_PASSES passes."""


_READERS: Mapping[kinds.Kind, tuple[str, ...]] = {
    kinds.MANAGED_CLUSTER: ("cluster sets", "registration", "placements"),
    kinds.MANAGED_CLUSTER_SET: ("cluster sets", "placements"),
    kinds.MANAGED_CLUSTER_SET_BINDING: ("placements",),
    kinds.MANIFEST_WORK: ("work", "replica sets"),
    kinds.MANIFEST_WORK_REPLICA_SET: ("replica sets",),
    kinds.PLACEMENT: ("placements",),
    kinds.PLACEMENT_BINDING: ("policies",),
    kinds.PLACEMENT_DECISION: ("placements", "replica sets", "policies"),
    kinds.POLICY: ("configuration policies", "policies"),
}
"""The controllers that read a kind of the hub's objects, except the scores."""


class Simulation:
    """The simulated controllers over one hub and its managed clusters by name.

    A cluster in `lost` is not reachable: nothing is read from it and nothing is written to it.
    """

    def __init__(
        self, hub: Kube, clusters: Mapping[str, Kube], *, now: Callable[[], datetime]
    ) -> None:
        self._hub = hub
        self._clusters = dict(clusters)
        self._now = now
        self.lost = set[str]()
        self._on_clusters = {
            "registration": self._registration,
            "work": self._work,
            "configuration policies": self._configuration_policies,
            "pods": self._pods,
        }
        self._on_hub = {
            "cluster sets": self._cluster_sets,
            "placements": self._placements,
            "replica sets": self._replica_sets,
            "policies": self._policies,
        }
        self._due = set[tuple[str, str]]()

    async def run(self) -> None:
        """Run until cancelled; contradicting policies then change their objects without end."""
        while True:
            with contextlib.suppress(DidNotSettle):
                await self.settle()
            await asyncio.sleep(PAUSE_SECONDS)

    async def settle(self) -> None:
        """Run every controller until a whole pass changes nothing."""
        changed: list[Change] = []
        for _ in range(MAX_PASSES):
            changed = await self.step()
            if not changed:
                return
        raise DidNotSettle(f"still changing after {MAX_PASSES} passes: {changed[-1]}")

    async def step(self) -> list[Change]:
        """Run every controller once; return the changes that were applied."""
        self._due = {(controller, "") for controller in self._on_hub}
        self._due |= {(one, name) for one in self._on_clusters for name in self._clusters}
        return await self._step_due()

    def note(self, kind: kinds.Kind, namespace: str | None, cluster: str = "") -> None:
        """Note a write on the hub, or on a cluster: the controllers that read it are due."""
        if cluster:
            pods = kind in (kinds.NODE, kinds.POD)
            self._due |= {(one, cluster) for one in self._on_clusters if pods or one != "pods"}
            return
        for controller in _READERS.get(kind, ()):
            if controller in self._on_hub:
                self._due.add((controller, ""))
            elif namespace in self._clusters:
                self._due.add((controller, str(namespace)))

    @property
    def is_due(self) -> bool:
        """Whether any controller has to read what was noted."""
        return bool(self._due)

    async def settle_due(self) -> None:
        """Run the controllers that read what was noted, until none is due."""
        changed: list[Change] = []
        for _ in range(MAX_PASSES):
            if not self._due:
                return
            changed = await self._step_due()
        raise DidNotSettle(f"still changing after {MAX_PASSES} passes: {changed[-1:]}")

    async def _step_due(self) -> list[Change]:
        due, self._due = self._due, set()
        changed = list[Change]()
        for name, cluster in self._clusters.items():
            for controller, run in self._on_clusters.items():
                if (controller, name) in due and name not in self.lost:
                    changed += await run(name, cluster)
        for controller, run_on_hub in self._on_hub.items():
            if (controller, "") in due:
                changed += await run_on_hub()
        return changed

    def _timestamp(self) -> str:
        return rfc3339(self._now())

    async def _registration(self, name: str, cluster: Kube) -> list[Change]:
        managed = await find_object(self._hub, kinds.MANAGED_CLUSTER, name)
        if managed is None:
            return []
        claims = await _items(cluster, kinds.CLUSTER_CLAIM)
        return await _applied(self._hub, registration.report_claims(managed, claims))

    async def _cluster_sets(self) -> list[Change]:
        existing = await _items(self._hub, kinds.MANAGED_CLUSTER_SET)
        changed = await _applied(self._hub, registration.default_sets(existing))
        for cluster in await _items(self._hub, kinds.MANAGED_CLUSTER):
            changed += await _applied(
                self._hub, registration.availability_taints(cluster, now=self._timestamp())
            )
        return changed

    async def _work(self, name: str, cluster: Kube) -> list[Change]:
        changed: list[Change] = []
        for manifest_work in await _items(self._hub, kinds.MANIFEST_WORK, name):
            observed = await _observe(cluster, work_agent.references(manifest_work))
            delivery = work_agent.deliver(manifest_work, observed, now=self._timestamp())
            changed += await _applied(cluster, delivery.on_cluster)
            changed += await _applied(self._hub, delivery.on_hub)
        return changed

    async def _pods(self, _name: str, cluster: Kube) -> list[Change]:
        pods = await _items(cluster, kinds.POD)
        if all((pod.get("spec") or {}).get("nodeName") for pod in pods):
            return []
        nodes = await _items(cluster, kinds.NODE)
        return await _applied(cluster, scheduler.schedule(nodes, pods, now=self._timestamp()))

    async def _placements(self) -> list[Change]:
        placements = await _items(self._hub, kinds.PLACEMENT)
        if not placements:
            return []
        clusters = await _items(self._hub, kinds.MANAGED_CLUSTER)
        cluster_sets = await _items(self._hub, kinds.MANAGED_CLUSTER_SET)
        bindings = await _items(self._hub, kinds.MANAGED_CLUSTER_SET_BINDING)
        ranked = any(map(placement.ranks_by_score, placements))
        written = await _items(self._hub, kinds.ADD_ON_PLACEMENT_SCORE) if ranked else ()
        scores = _live_scores(written, self._now())
        decisions = _by_placement(await _items(self._hub, kinds.PLACEMENT_DECISION))
        changed: list[Change] = []
        for item in placements:
            namespace, name = item["metadata"]["namespace"], item["metadata"]["name"]
            view = placement.HubView(
                clusters,
                cluster_sets,
                [b for b in bindings if b["metadata"]["namespace"] == namespace],
                scores,
                {key: placement.clusters_of(obj) for key, obj in decisions.items()},
                self._now(),
            )
            changes = placement.decide(item, view, decisions.get((namespace, name)))
            if changes:
                changed += await _applied(self._hub, changes)
                decisions = _by_placement(await _items(self._hub, kinds.PLACEMENT_DECISION))
        return changed

    async def _decided(self) -> dict[tuple[str, str], list[str]]:
        decisions = _by_placement(await _items(self._hub, kinds.PLACEMENT_DECISION))
        return {key: placement.clusters_of(obj) for key, obj in decisions.items()}

    async def _replica_sets(self) -> list[Change]:
        sets = await _items(self._hub, kinds.MANIFEST_WORK_REPLICA_SET)
        decided = await self._decided()
        desired = manifest_work_replica_set.works(sets, decided)
        owned = await _items(self._hub, kinds.MANIFEST_WORK, labels=REPLICA_SET_LABEL)
        observed = manifest_work_replica_set.governed(owned, sets, decided)
        changes = diff(kinds.MANIFEST_WORK, desired, observed)
        for item in sets:
            changes += manifest_work_replica_set.report(item, decided, owned, now=self._timestamp())
        return await _applied(self._hub, changes)

    async def _policies(self) -> list[Change]:
        everything = await _items(self._hub, kinds.POLICY)
        observed = [obj for obj in everything if _is_replica(obj)]
        roots = [obj for obj in everything if not _is_replica(obj)]
        bindings = await _items(self._hub, kinds.PLACEMENT_BINDING)
        desired = policy_framework.replicated(roots, bindings, await self._decided())
        changes = diff(kinds.POLICY, desired, observed)
        for root in roots:
            full_name = f"{root['metadata']['namespace']}.{root['metadata']['name']}"
            replicas = [obj for obj in observed if obj["metadata"]["name"] == full_name]
            changes += diff(
                kinds.POLICY, [{**root, "status": policy_framework.root_status(replicas)}], [root]
            )
        return await _applied(self._hub, changes)

    async def _configuration_policies(self, name: str, cluster: Kube) -> list[Change]:
        desired = [
            _bare(obj) for obj in await _items(self._hub, kinds.POLICY, name) if _is_replica(obj)
        ]
        changed = await _applied(
            cluster, diff(kinds.POLICY, desired, await _items(cluster, kinds.POLICY, name))
        )
        nodes = await _items(cluster, kinds.NODE)
        for replica in await _items(cluster, kinds.POLICY, name):
            named = policy_framework.with_selected_nodes(replica, nodes)
            observed = await _observe(cluster, policy_framework.objects_of(named))
            changed += await _applied(cluster, policy_framework.enforce(named, observed))
            changed += await _nodes(cluster)
            observed = await _observe(cluster, policy_framework.objects_of(named))
            reported = {**_bare(replica), "status": policy_framework.status(named, observed)}
            changed += await _applied(cluster, diff(kinds.POLICY, [reported], [replica]))
            on_hub = await find_object(self._hub, kinds.POLICY, replica["metadata"]["name"], name)
            if on_hub is not None:
                changed += await _applied(self._hub, diff(kinds.POLICY, [reported], [on_hub]))
        return changed


async def _applied(kube: Kube, changes: Iterable[Change]) -> list[Change]:
    outcomes = await apply(kube, changes)
    return [outcome.change for outcome in outcomes if outcome.error is None]


async def _nodes(cluster: Kube) -> list[Change]:
    """Let the MIG manager withdraw its result before compliance with a new profile is evaluated."""
    nodes = await _items(cluster, kinds.NODE)
    return await _applied(cluster, [change for node in nodes for change in mig_manager.start(node)])


async def _items(
    kube: Kube, kind: kinds.Kind, namespace: str | None = None, *, labels: str = ""
) -> list[Object]:
    try:
        return list((await kube.list(kind, namespace, labels=labels)).items)
    except NotFound:
        return []


async def _observe(kube: Kube, references: Iterable[Reference]) -> Observed:
    return {
        (kind, namespace, name): await find_object(kube, kind, name, namespace)
        for kind, namespace, name in references
    }


def _bare(obj: Object) -> Object:
    metadata = obj["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata}
    return {**{key: obj[key] for key in ("apiVersion", "kind", "spec")}, "metadata": kept}


def _is_replica(obj: Object) -> bool:
    return policy_framework.ROOT_LABEL in (obj["metadata"].get("labels") or {})


def _by_placement(decisions: Iterable[Object]) -> dict[tuple[str, str], Object]:
    return {
        (obj["metadata"]["namespace"], obj["metadata"]["labels"][PLACEMENT_LABEL]): obj
        for obj in decisions
        if PLACEMENT_LABEL in (obj["metadata"].get("labels") or {})
    }


def _live_scores(scores: Iterable[Object], now: datetime) -> LiveScores:
    return {
        (obj["metadata"]["namespace"], obj["metadata"]["name"], entry["name"]): entry["value"]
        for obj in scores
        if not validity_of(obj, now)[1]
        for entry in obj.get("status", {}).get("scores") or []
    }
