"""Objects of our kinds: minimal ones, ones that people have, and what becomes of them."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from dsf.api.names import API_VERSION
from tests.repository import ROOT

Object = dict[str, Any]

MANIFESTS = ("sample_scorers/*/manifests/dynamicscorer*.yaml", "docs/examples/**/*.yaml")


def ids(cases: Iterable[tuple[Any, ...]]) -> list[str]:
    """Return the names of cases, for a test's output."""
    return [case[0] for case in cases]


def scorer(**spec: Any) -> Object:
    """Return a DynamicScorer with the required fields, unless they are given as None."""
    whole = {"description": "d", "configURL": "http://scorer.example/config", **spec}
    given = {key: value for key, value in whole.items() if value is not None}
    return _object("DynamicScorer", "scorer", spec=given)


def config(**spec: Any) -> Object:
    """Return a DynamicScoringConfig."""
    return _object("DynamicScoringConfig", "dynamic-scoring-config", spec=spec)


def plan(optimization: str = "default", revision: int = 1, **spec: Any) -> Object:
    """Return a PlacementPlan with the required fields, unless they are given as None."""
    whole = {
        "optimization": optimization,
        "revision": revision,
        "digest": "a" * 64,
        "requestDigest": "b" * 64,
        "objectsDigest": "d" * 64,
        "objective": 115,
        "recordDigest": "c" * 64,
        **spec,
    }
    given = {key: value for key, value in whole.items() if value is not None}
    return _object("PlacementPlan", f"{optimization}-{revision}", spec=given)


def optimization(name: str = "kept", **spec: Any) -> Object:
    """Return a PlacementOptimization with the required fields."""
    whole = {"preference": {"addonPlacementScore": "performance"}, **spec}
    return _object("PlacementOptimization", name, spec=whole)


def inventory() -> Object:
    """Return a NodeInventory without a status."""
    return _object("NodeInventory", "worker01")


def with_status(status: Object, obj: Object | None = None) -> Object:
    """Return a DynamicScorer, or another object, with a status."""
    return {**(obj or scorer()), "status": status}


def _object(kind: str, name: str, **content: Any) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, **content}


def of_the_article() -> Object:
    """Return the DynamicScorer of the first article about the framework, which has other fields."""
    source = {
        "type": "Prometheus",
        "endpoint": {
            "host": "http://prometheus.monitoring.svc:9090",
            "path": "/api/v1/query_range",
        },
        "query": {
            "query": "rate(container_cpu_usage_seconds_total[5m])",
            "range": 3600,
            "step": 60,
        },
    }
    scoring = {
        "endpoint": {"host": "http://cpu-predictor-api.default.svc:8000", "path": "/scoring"},
        "params": {"model": "linear_regression", "horizon": 3600},
    }
    name = "cpu-predictor"
    return _object("DynamicScorer", name, spec={"name": name, "source": source, "scoring": scoring})


ADVICE_FOR_THE_ARTICLE = (
    "description is required",
    "configURL is required",
    "remove spec.name",
    "as source.host and source.path",
    "as source.params.query, source.params.range and source.params.step",
    "as scoring.host and scoring.path",
)
"""What the refusal of that object says, each about one field."""


def existing() -> Iterator[tuple[str, Object]]:
    """Yield manifests that people have: those that we ship, and those of the wire contract."""
    for pattern in MANIFESTS:
        for path in sorted(ROOT.glob(pattern)):
            text = re.sub(r"\$\{\w+_IP\}", "10.0.0.1", path.read_text(encoding="utf-8"))
            for obj in yaml.safe_load_all(text):
                if obj.get("apiVersion") == API_VERSION:
                    yield f"{path.relative_to(ROOT)} {obj['metadata']['name']}", obj
    masks = [{"clusterName": "cluster1", "scoreName": "something_gpu_score"}]
    yield "spec.mask", config(mask=masks)
    yield "spec.masks", config(masks=masks)
    yield "both spellings of masks", config(mask=masks, masks=masks)
    yield "a config without a spec", _object("DynamicScoringConfig", "dynamic-scoring-config")
    query = 'sum by (node) (rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))'
    source = {
        "type": "prometheus",
        "host": "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090",
        "path": "/api/v1/query_range",
        "params": {"query": query, "range": 3600, "step": 60},
        "auth": {"tokenSecretRef": {"name": "prometheus-token", "key": "token"}},
    }
    scoring = {
        "path": "/scoring",
        "params": {"name": "sample_my_score", "interval": 30},
        "auth": {"tokenSecretRef": {"name": "api-auth-secret", "key": "token"}},
    }
    for mode in ("Full", "full", "None", "none"):
        spec = {"configSyncMode": mode, "source": source, "scoring": scoring}
        yield f"a whole scorer, configSyncMode {mode}", scorer(**spec)


def defaulted() -> Iterator[tuple[str, Object, Object]]:
    """Yield objects and their specs as the server stores them."""
    minimal = scorer()
    defaults = {
        "configSyncMode": "Full",
        "location": "Internal",
        "scoreDestination": "AddOnPlacementScore",
        "scoreDimensionFormat": "${node};${namespace};${pod}",
    }
    yield "a minimal scorer", minimal, {**minimal["spec"], **defaults}
    whole = {**minimal["spec"], **defaults, "source": {"type": "Prometheus"}}
    yield "a source without a type", scorer(source={}), whole
    given = {
        **defaults,
        "configSyncMode": "none",
        "source": {"type": "none"},
        "location": "External",
    }
    chosen = scorer(**given, scoring={"params": {"name": "s"}})
    yield "what is given", chosen, chosen["spec"]
    nulls = scorer(**defaults)
    nulls["spec"] |= {"location": None, "scoring": None, "source": {"host": None}}
    yield "nulls", nulls, whole
    kept = {**_KNOWN["scoring"], "params": {"interval": 5, **_SURPRISE}}
    stored = {**minimal["spec"], **defaults, **_KNOWN, "scoring": kept}
    yield "unknown fields, kept only among params", _with_unknown_fields(), stored


# What a scoring API may have said, and what a merge patch makes of it.
SYNCED: Object = {"name": "n", "of": {"strangers": [1, None, {"a": None, "b": {"c": []}}]}}
STORED: Object = {"name": "n", "of": {"strangers": [1, None, {"b": {"c": []}}]}}

_SURPRISE: Object = {"surprise": {"a": 1}}
_KNOWN: Object = {
    "source": {"type": "None", "params": {"step": 5}},
    "scoring": {"params": {"interval": 5}, "auth": {"tokenSecretRef": {"name": "n", "key": "k"}}},
}


def _with_unknown_fields() -> Object:
    def extended(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {**_SURPRISE, **{key: extended(inner) for key, inner in value.items()}}

    return {**scorer(**_KNOWN), "spec": extended(scorer(**_KNOWN)["spec"])}


def keeps(stored: Any, written: Any) -> bool:
    """Tell whether all that was written is stored; defaults may have been added to it."""
    if isinstance(written, dict) and isinstance(stored, dict):
        return all(name in stored and keeps(stored[name], written[name]) for name in written)
    if isinstance(written, list) and isinstance(stored, list):
        return len(stored) == len(written) and all(map(keeps, stored, written))
    return bool(stored == written)
