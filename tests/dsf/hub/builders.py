"""Builds objects of the hub, and applies the changes of a plan to them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dsf.api.conditions import find
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub import plan
from dsf.hub.snapshot.distribution_rules import read_scoring_config as read_config
from dsf.hub.snapshot.hub_snapshot import HubSnapshot, read_score
from dsf.hub.snapshot.managed_cluster import read_add_on, read_managed_cluster
from dsf.hub.snapshot.manifests import NamespaceManifests
from dsf.hub.snapshot.registered_scorer import ProbeResult, ProbeTarget, read_scorer
from dsf.hub.snapshot.summaries_work import read_work
from dsf.kube import json_merge_patch
from dsf.kube.changes import Change, Create, Delete, Patch
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
)
from dsf.kube.port import Object

HUB = "open-cluster-management"
NOW = "2026-11-20T10:00:00Z"
LATER = "2026-11-20T11:00:00Z"
AGENTS = "dynamic-scoring"


@dataclass(frozen=True)
class World:
    """A hub's objects, and the scoring APIs' answers; `add_ons` None means on every cluster."""

    scorers: tuple[Object, ...] = ()
    config: Object | None = None
    clusters: tuple[Object, ...] = ()
    add_ons: tuple[Object, ...] | None = None
    works: tuple[Object, ...] = ()
    scores: tuple[Object, ...] = ()
    probes: Mapping[ProbeTarget, ProbeResult] = field(default_factory=dict)
    manifests: Mapping[str, NamespaceManifests] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()


def observed(world: World) -> HubSnapshot:
    """Return what the controller keeps of it."""
    add_ons = world.add_ons
    if add_ons is None:
        add_ons = tuple(add_on(each["metadata"]["name"]) for each in world.clusters)
    return HubSnapshot(
        scorers=tuple(read_scorer(obj) for obj in world.scorers),
        config=read_config(world.config) if world.config else None,
        clusters={obj["metadata"]["name"]: read_managed_cluster(obj) for obj in world.clusters},
        add_ons={obj["metadata"]["namespace"]: read_add_on(obj) for obj in add_ons},
        works={obj["metadata"]["namespace"]: read_work(AGENTS)(obj) for obj in world.works},
        scores={
            (obj["metadata"]["namespace"], obj["metadata"]["name"]): read_score(obj)
            for obj in world.scores
        },
        probes=world.probes,
        manifests=world.manifests,
        refusals=world.refusals,
        held=world.held,
    )


def planned(world: World, *, now: str = NOW) -> list[Change]:
    """Return what the controller would write."""
    return plan.plan(observed(world), now=now)


def settled(world: World, *, now: str = NOW) -> World:
    """Return the world once nothing is left to write."""
    for _ in range(6):
        changes = planned(world, now=now)
        if not changes:
            return world
        world = after(world, changes)
    raise AssertionError(f"still writing: {[str(change) for change in changes]}")


def condition(obj: Object | None, type_: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition."""
    assert obj is not None
    found = find(obj["status"]["conditions"], type_)
    assert found is not None, f"no condition {type_}"
    return found["status"], found["reason"], found["message"]


def scorer(
    name: str = "cpu",
    *,
    url: str = "http://cpu.scorers.svc:8000/config",
    mode: str = "Full",
    created: str = NOW,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": DYNAMIC_SCORER.api_version,
        "kind": "DynamicScorer",
        "metadata": {
            "name": name,
            "namespace": HUB,
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": created,
        },
        "spec": {
            "description": name,
            "configURL": url,
            "configSyncMode": mode,
            "location": "External",
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": "${app};${device}",
            **spec,
        },
        **({} if status is None else {"status": status}),
    }


def api_config(score_name: str = "cpu_score", **source: Any) -> dict[str, Any]:
    return {
        "name": "cpu-scorer",
        "description": "free CPU",
        "source": {
            "type": "Prometheus",
            "host": "http://prometheus.monitoring.svc:9090",
            "path": "/api/v1/query_range",
            "params": {"query": "up", "range": 3600, "step": 30},
            **source,
        },
        "scoring": {"path": "/scoring", "params": {"name": score_name, "interval": 30}},
    }


def answer(score_name: str = "cpu_score") -> ProbeResult:
    return ProbeResult(health=None, config=ScorerConfig.model_validate(api_config(score_name)))


def target(obj: Object) -> ProbeTarget:
    return ProbeTarget(
        obj["spec"]["configURL"], full=obj["spec"]["configSyncMode"].lower() == "full"
    )


def cluster(name: str, *, accepted: bool = True, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "resourceVersion": "1",
            **({"labels": labels} if labels else {}),
        },
        "spec": {"hubAcceptsClient": accepted},
    }


def unavailable(obj: dict[str, Any], type_: str = "ManagedClusterConditionAvailable") -> Any:
    """Return a ManagedCluster or an add-on that says that its agent is out of touch."""
    told = {
        "type": type_,
        "status": "Unknown",
        "reason": "LeaseUpdateStopped",
        "message": "agent stopped updating its lease",
        "lastTransitionTime": NOW,
    }
    return {**obj, "status": {"conditions": [told]}}


def add_on(name: str) -> dict[str, Any]:
    return {
        "apiVersion": MANAGED_CLUSTER_ADD_ON.api_version,
        "kind": "ManagedClusterAddOn",
        "metadata": {"name": "dynamic-scoring-framework", "namespace": name},
        "spec": {},
    }


def published(
    where: str,
    score_name: str = "cpu_score",
    *,
    until: str = "2026-11-20T12:00:00Z",
    failing: tuple[str, str] | None = None,
    message: str = "",
) -> dict[str, Any]:
    """Return an AddOnPlacementScore as an agent has written it; `failing` is stage and reason."""
    conditions = [
        {
            "type": stage,
            "status": "False" if failing and failing[0] == stage else "True",
            "reason": failing[1] if failing and failing[0] == stage else stage,
            "message": message if failing and failing[0] == stage else "",
            "lastTransitionTime": NOW,
        }
        for stage in ("SourceFetched", "Scored", "Published")
    ]
    return {
        "apiVersion": ADD_ON_PLACEMENT_SCORE.api_version,
        "kind": "AddOnPlacementScore",
        "metadata": {
            "name": score_name.replace("_", "-"),
            "namespace": where,
            "uid": f"{where}-{score_name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-20T09:00:00Z",
            "labels": {
                "app.kubernetes.io/managed-by": "dynamic-scoring-framework",
                "dynamic-scoring.open-cluster-management.io/score-name": score_name,
            },
        },
        "status": {
            "conditions": conditions,
            **({"validUntil": until, "scores": [{"name": "x", "value": 1}]} if until else {}),
        },
    }


def scoring_config(
    *masks: tuple[str, str], finalizers: Iterable[str] = (), **spec: Any
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "dynamic-scoring-config",
            "namespace": HUB,
            "generation": 1,
            "resourceVersion": "1",
            **({"finalizers": list(finalizers)} if finalizers else {}),
        },
        "spec": {"masks": [{"clusterName": c, "scoreName": s} for c, s in masks], **spec},
    }


def leaving(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": NOW}}


def after(snapshot: World, changes: Iterable[Change]) -> World:
    """Return the observed state after an API server has accepted the changes."""
    for change in changes:
        snapshot = _after(snapshot, change)
    return snapshot


def _after(snapshot: World, change: Change) -> World:
    if change.kind == ADD_ON_PLACEMENT_SCORE:
        assert isinstance(change, Delete)
        gone = (change.namespace, change.name)
        kept = [
            o
            for o in snapshot.scores
            if gone != (o["metadata"]["namespace"], o["metadata"]["name"])
        ]
        return replace(snapshot, scores=tuple(kept))
    if change.kind == MANIFEST_WORK:
        works = {work["metadata"]["namespace"]: work for work in snapshot.works}
        match change:
            case Create(_, obj):
                assert change.namespace not in works
                works[str(change.namespace)] = _next(obj)
            case Patch(_, _, namespace, body):
                works[namespace] = _patched(works[namespace], body)
            case Delete(_, _, namespace):
                del works[namespace]
        return replace(snapshot, works=tuple(works.values()))
    assert isinstance(change, Patch)
    if change.kind == DYNAMIC_SCORER:
        scorers = {obj["metadata"]["name"]: obj for obj in snapshot.scorers}
        scorers[change.name] = _patched(scorers[change.name], change.body)
        return replace(snapshot, scorers=tuple(scorers.values()))
    assert snapshot.config is not None
    config = _patched(snapshot.config, change.body)
    gone = "deletionTimestamp" in config["metadata"] and not config["metadata"].get("finalizers")
    return replace(snapshot, config=None if gone else config)


def _patched(obj: Object, body: dict[str, Any]) -> dict[str, Any]:
    version = body.get("metadata", {}).get("resourceVersion")
    assert version == obj["metadata"]["resourceVersion"], "a patch must say what it was made from"
    return _next(json_merge_patch.merged(obj, body))


def _next(obj: Object) -> dict[str, Any]:
    version = int(obj["metadata"].get("resourceVersion", "0")) + 1
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
