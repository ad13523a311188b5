"""Placements and what OCM's placement controller selects for them: one table, two controllers.

`decide_every_case` puts the world of the table into a hub and returns what each Placement selects.
The simulated controller decides it in the quick suite, OCM's own in the suite of the real hub.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsf.kube import kinds
from dsf.kube.client.connect import connect
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import AlreadyExists
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object
from dsf.sim.simulation import Simulation
from tests.dsf.sim.builders import NOW
from tests.eventually import eventually

LONG_AGO = "2020-01-01T00:00:00Z"
UNAVAILABLE = "cluster.open-cluster-management.io/unavailable"
UNREACHABLE = "cluster.open-cluster-management.io/unreachable"
SET = "cluster.open-cluster-management.io/clusterset"
WORLD = "scheduling-contract"
"""The label of every cluster here; each Placement selects by it, so that others do not count."""

YEARS = 100 * 365 * 24 * 3600
"""Seconds: a toleration that a taint from 2020 does not outlive soon."""


@dataclass(frozen=True)
class World:
    """A managed cluster of the table."""

    name: str
    cluster_set: str = "default"
    taints: tuple[dict[str, Any], ...] = ()
    available: str = "True"
    labels: dict[str, str] = field(default_factory=dict)


def taint(key: str, effect: str = "NoSelect", **more: Any) -> dict[str, Any]:
    return {"key": key, "effect": effect, "timeAdded": LONG_AGO, **more}


CLUSTERS = (
    World("a1"),
    World("a2", labels={"zone": "z2"}),
    World("g1", cluster_set="contract-gpu"),
    World("n1", cluster_set=""),
    World("t1", taints=(taint("dedicated", value="ml"),)),
    World("p1", taints=(taint("soft", "PreferNoSelect"),)),
    World("i1", taints=(taint("maintenance", "NoSelectIfNew"),)),
    World("u1", available="False"),
    World("r1", available="Unknown"),
    World("s1"),
)
FREE = ("a1", "a2", "p1", "s1")
"""Clusters of the set `default` that a Placement without tolerations selects."""


@dataclass(frozen=True)
class Case:
    """The sets that a namespace is bound to, a Placement's spec, and the clusters it selects."""

    name: str
    selected: tuple[str, ...]
    bindings: tuple[str, ...] = ("default",)
    spec: dict[str, Any] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    reason: str = "AllDecisionsScheduled"


def tolerating(**toleration: Any) -> dict[str, Any]:
    return {"tolerations": [toleration]}


EXACT = {"prioritizerPolicy": {"mode": "Exact"}}
NONE, EMPTY = "NoManagedClusterSetBindings", "NoManagedClusterMatched"
CASES = (
    Case("bound-to-default", FREE),
    Case("bound-to-global", ("a1", "a2", "g1", "n1", "p1", "s1"), ("global",)),
    Case("bound-to-gpu", ("g1",), ("contract-gpu",)),
    Case("bound-to-two", (*FREE, "g1"), ("default", "contract-gpu")),
    Case("bound-by-selector", ("a2",), ("contract-zone",)),
    Case("bound-to-nothing", (), (), reason=NONE),
    Case("bound-to-a-missing-set", (), ("contract-ghost",), reason=NONE),
    Case(
        "one-of-two-sets", ("g1",), ("default", "contract-gpu"), {"clusterSets": ["contract-gpu"]}
    ),
    Case(
        "a-set-that-is-not-bound",
        (),
        spec={"clusterSets": ["contract-gpu"]},
        reason="NoIntersection",
    ),
    Case("an-empty-set", (), ("contract-empty",), reason="AllManagedClusterSetsEmpty"),
    Case("label", ("a2",), labels={"zone": "z2"}),
    Case("no-label", (), labels={"zone": "z9"}, reason=EMPTY),
    Case("equal", (*FREE, "t1"), spec=tolerating(key="dedicated", value="ml")),
    Case("equal-other-value", FREE, spec=tolerating(key="dedicated", value="web")),
    Case("exists", (*FREE, "t1"), spec=tolerating(key="dedicated", operator="Exists")),
    Case("everything", (*FREE, "i1", "r1", "t1", "u1"), spec=tolerating(operator="Exists")),
    Case("no-key-needs-exists", (), spec=tolerating(operator="Equal", value="ml"), reason=EMPTY),
    Case(
        "exists-with-value",
        (),
        spec=tolerating(key="dedicated", operator="Exists", value="ml"),
        reason=EMPTY,
    ),
    Case("one-effect", (*FREE, "i1"), spec=tolerating(operator="Exists", effect="NoSelectIfNew")),
    Case("lost", (*FREE, "u1"), spec=tolerating(key=UNAVAILABLE, operator="Exists")),
    Case("silent", (*FREE, "r1"), spec=tolerating(key=UNREACHABLE, operator="Exists")),
    Case(
        "toleration-is-over",
        FREE,
        spec=tolerating(key="dedicated", operator="Exists", tolerationSeconds=5),
    ),
    Case(
        "toleration-lasts",
        (*FREE, "t1"),
        spec=tolerating(key="dedicated", operator="Exists", tolerationSeconds=YEARS),
    ),
    Case("two-by-name", ("a1", "a2"), spec={**EXACT, "numberOfClusters": 2}),
    Case("too-few", FREE, spec={**EXACT, "numberOfClusters": 9}, reason="NotAllDecisionsScheduled"),
    Case(
        "another-scheduler",
        (),
        annotations={"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"},
        reason="",
    ),
)


Outcome = tuple[str, tuple[str, ...]]
"""Why a Placement is satisfied or not, and the names of the clusters that it selects."""

Settle = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]
"""Waits until a condition holds, or until the controllers change nothing any more."""

REAL = os.environ.get("DSF_CONTRACT_KUBECONFIG")
CONTROLLERS = ("simulated", "ocm") if REAL else ("simulated",)


@asynccontextmanager
async def placement_controller(name: str) -> AsyncIterator[tuple[Kube, Settle]]:
    """Yield a hub with a placement controller, and how its decisions are waited for."""
    if name == "ocm":
        async with connect(Path(str(REAL))) as kube:
            yield kube, _until
        return
    hub = EmbeddedHub(now=lambda: NOW)
    simulation = Simulation(hub, {}, now=lambda: NOW)

    async def settle(_: Callable[[], Awaitable[bool]]) -> None:
        await simulation.settle()

    yield hub, settle


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    await eventually(condition, every=0.2)


async def decide_every_case(kube: Kube, settle: Settle) -> dict[str, Outcome]:
    """Create the world and the Placements; return what was decided, by the name of the case."""
    await create_world(kube)
    for case in CASES:
        await create_case(kube, case)

    async def decided() -> bool:
        return all([await outcome(kube, case.name) == expected(case) for case in CASES])

    await settle(decided)
    return {case.name: await outcome(kube, case.name) for case in CASES}


def expected(case: Case) -> Outcome:
    return case.reason, tuple(sorted(case.selected))


async def create_world(kube: Kube) -> None:
    """Create the cluster sets and clusters; clusters that another suite left get their taints."""
    for name, spec in (
        ("contract-gpu", {}),
        ("contract-empty", {}),
        (
            "contract-zone",
            {
                "clusterSelector": {
                    "selectorType": "LabelSelector",
                    "labelSelector": {"matchLabels": {"zone": "z2"}},
                }
            },
        ),
    ):
        with suppress(AlreadyExists):
            await kube.create(
                kinds.MANAGED_CLUSTER_SET, _object(kinds.MANAGED_CLUSTER_SET, name, spec)
            )
    for cluster in CLUSTERS:
        await create_cluster(kube, cluster)


async def create_cluster(kube: Kube, cluster: World) -> None:
    labels = {WORLD: "yes", **cluster.labels}
    if cluster.cluster_set:
        labels[SET] = cluster.cluster_set
    spec: Object = {"hubAcceptsClient": True, "leaseDurationSeconds": 3600}
    if cluster.taints:
        spec["taints"] = list(cluster.taints)
    obj = _object(kinds.MANAGED_CLUSTER, cluster.name, spec)
    obj["metadata"]["labels"] = labels
    try:
        await kube.create(kinds.MANAGED_CLUSTER, obj)
    except AlreadyExists:
        taints = {"spec": {"taints": list(cluster.taints)}}
        await kube.patch(kinds.MANAGED_CLUSTER, cluster.name, taints)
    await report_availability(kube, cluster.name, cluster.available)


async def retire_world(kube: Kube) -> None:
    """Taint the clusters, so that no Placement of another suite selects them."""
    for cluster in CLUSTERS:
        await _taint(kube, cluster.name, {"key": "contract.example/over", "effect": "NoSelect"})


async def report_availability(kube: Kube, cluster: str, status: str) -> None:
    condition = {
        "type": "ManagedClusterConditionAvailable",
        "status": status,
        "reason": "Contract",
        "message": "",
        "lastTransitionTime": LONG_AGO,
    }
    body = {"status": {"conditions": [condition]}}
    await kube.patch(kinds.MANAGED_CLUSTER, cluster, body, subresource="status")


async def create_case(kube: Kube, case: Case) -> None:
    await kube.create(kinds.NAMESPACE, {"metadata": {"name": case.name}})
    await bind(kube, case.name, case.bindings)
    await create_placement(kube, case.name, {WORLD: "yes", **case.labels}, case)


async def bind(kube: Kube, namespace: str, cluster_sets: Iterable[str]) -> None:
    for cluster_set in cluster_sets:
        spec = {"clusterSet": cluster_set}
        obj = _object(kinds.MANAGED_CLUSTER_SET_BINDING, cluster_set, spec)
        obj["metadata"]["namespace"] = namespace
        await kube.create(kinds.MANAGED_CLUSTER_SET_BINDING, obj)


async def create_placement(
    kube: Kube, namespace: str, labels: dict[str, str], case: Case, name: str = "p"
) -> None:
    predicate = {"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}
    obj = _object(kinds.PLACEMENT, name, {"predicates": [predicate], **case.spec})
    obj["metadata"] |= {"namespace": namespace, "annotations": case.annotations}
    await kube.create(kinds.PLACEMENT, obj)


async def outcome(kube: Kube, namespace: str, name: str = "p") -> Outcome:
    placement = await kube.get(kinds.PLACEMENT, name, namespace)
    conditions = (placement.get("status") or {}).get("conditions") or []
    reasons = [item["reason"] for item in conditions if item["type"] == "PlacementSatisfied"]
    listed = (await kube.list(kinds.PLACEMENT_DECISION, namespace)).items
    clusters = [
        item["clusterName"]
        for obj in listed
        if obj["metadata"]["labels"][f"{_GROUP}/placement"] == name
        for item in (obj.get("status") or {}).get("decisions") or ()
    ]
    return "".join(reasons), tuple(sorted(clusters))


_GROUP = "cluster.open-cluster-management.io"


def _object(kind: Kind, name: str, spec: Object) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


async def follow_a_cluster(kube: Kube, settle: Settle) -> list[tuple[str, ...]]:
    """Return what a Placement for `s1` selects while taints come, and the cluster goes.

    A taint NoSelectIfNew keeps what is selected and admits nobody new; NoSelect ends the
    selection; PreferNoSelect does not.
    """
    await kube.create(kinds.NAMESPACE, {"metadata": {"name": "follow"}})
    await bind(kube, "follow", ["default"])
    seen = list[tuple[str, ...]]()

    async def look(name: str, wanted: tuple[str, ...]) -> None:
        async def reached() -> bool:
            found = await outcome(kube, "follow", name)
            return bool(found[0]) and found[1] == wanted

        await settle(reached)
        seen.append((await outcome(kube, "follow", name))[1])

    only = {WORLD: "yes", "follow": "yes"}
    await kube.patch(kinds.MANAGED_CLUSTER, "s1", {"metadata": {"labels": {"follow": "yes"}}})
    await create_placement(kube, "follow", only, Case("follow", ()), "first")
    await look("first", ("s1",))
    await _taint(kube, "s1", taint("drain", "NoSelectIfNew"))
    await create_placement(kube, "follow", only, Case("follow", ()), "second")
    await look("second", ())
    await look("first", ("s1",))
    await _taint(kube, "s1", taint("drain", "PreferNoSelect"))
    await look("second", ("s1",))
    await _taint(kube, "s1", taint("drain", "NoSelect"))
    await look("first", ())
    return seen


FOLLOWED = [("s1",), (), ("s1",), ("s1",), ()]
"""What `follow_a_cluster` returns on OCM."""


async def _taint(kube: Kube, cluster: str, wanted: dict[str, Any]) -> None:
    await kube.patch(kinds.MANAGED_CLUSTER, cluster, {"spec": {"taints": [wanted]}})
