"""Objects of the hub, and what the plan's changes make of a snapshot."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dsf.api.scoring_api import ScorerConfig
from dsf.hub.snapshot import Object, Probe, Snapshot, Target
from dsf.kube import merge
from dsf.kube.changes import Change, Create, Delete, Patch
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK

HUB = "open-cluster-management"
NOW = "2026-11-20T10:00:00Z"


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


def answer(score_name: str = "cpu_score") -> Probe:
    return Probe(health=None, config=ScorerConfig.model_validate(api_config(score_name)))


def target(obj: Object) -> Target:
    return Target(obj["spec"]["configURL"], full=obj["spec"]["configSyncMode"].lower() == "full")


def cluster(name: str, *, accepted: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "resourceVersion": "1"},
        "spec": {"hubAcceptsClient": accepted},
    }


def scoring_config(*masks: tuple[str, str], finalizers: Iterable[str] = ()) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "dynamic-scoring-config",
            "namespace": HUB,
            "generation": 1,
            "resourceVersion": "1",
            **({"finalizers": list(finalizers)} if finalizers else {}),
        },
        "spec": {"masks": [{"clusterName": c, "scoreName": s} for c, s in masks]},
    }


def leaving(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": NOW}}


def after(snapshot: Snapshot, changes: Iterable[Change]) -> Snapshot:
    """Return what is observed once an API server has taken the changes."""
    for change in changes:
        snapshot = _after(snapshot, change)
    return snapshot


def _after(snapshot: Snapshot, change: Change) -> Snapshot:
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
    return _next(merge.merged(obj, body))


def _next(obj: Object) -> dict[str, Any]:
    version = int(obj["metadata"].get("resourceVersion", "0")) + 1
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
