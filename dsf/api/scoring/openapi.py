"""The contract of the scoring API as documents: OpenAPI 3.1, and JSON Schemas of its three bodies.

Both are generated from the wire types in `dsf.api.scoring.scoring_api`.
Source: https://spec.openapis.org/oas/v3.1.1.html; its schemas are JSON Schema 2020-12.
"""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from dsf.api import names
from dsf.api.scoring import scoring_api

Document = dict[str, Any]

BODIES: Mapping[str, type[BaseModel]] = {
    "config": scoring_api.ScorerConfig,
    "scoring-request": scoring_api.ScoringRequest,
    "scoring-response": scoring_api.ScoringResponse,
}
"""The types of the bodies, by the names of their schemas."""

EXAMPLES: Mapping[type[BaseModel], Document] = {
    scoring_api.ScorerConfig: {
        "name": "cpu-scorer",
        "description": "CPU cores that a pod used over the last hour",
        "displayName": "CPU use",
        "unit": "cores",
        "direction": "LowerIsBetter",
        "range": {"min": 0},
        "source": {
            "type": "Prometheus",
            "host": "http://prometheus.monitoring.svc:9090",
            "path": "/api/v1/query_range",
            "params": {
                "query": "sum by (node, namespace, pod)"
                " (rate(container_cpu_usage_seconds_total[1m]))",
                "range": 3600,
                "step": 60,
            },
        },
        "scoring": {
            "path": "/scoring",
            "params": {"name": "cpu_score", "interval": 30},
            "normalize": {"min": 0, "max": 4, "invert": True},
        },
    },
    scoring_api.ScoringRequest: {
        "data": [
            {
                "metric": {"node": "node-1", "namespace": "shop", "pod": "cart-0"},
                "values": [[1700000000, "1.5"], [1700000060, "0.5"], [1700000120, "NaN"]],
            }
        ]
    },
    scoring_api.ScoringResponse: {
        "results": [
            {"metric": {"node": "node-1", "namespace": "shop", "pod": "cart-0"}, "score": 1.0}
        ]
    },
}
"""A body of each type."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ANY_CASE = "(?i)"
_KUBERNETES = "x-kubernetes-"
_CEL = f"{_KUBERNETES}validations"
_HEADERS = {
    scoring_api.CLUSTER_HEADER: "Name of the managed cluster, percent-encoded.",
    scoring_api.SCORE_HEADER: "Name of the score, percent-encoded.",
    scoring_api.SCORER_HEADER: "Name of the DynamicScorer, percent-encoded.",
}
_INFO = (
    "What a program serves to be registered as a DynamicScorer. The hub asks for the health and the"
    " config; the agent of each managed cluster posts series and publishes the scores. The paths of"
    " the config and of the scoring call are free: spec.configURL names the first, the config names"
    " the second. The health endpoint is at the root of the same server."
)


def openapi() -> Document:
    """Return the OpenAPI document of the scoring API."""
    _, schemas = models_json_schema(
        [(model, "validation") for model in BODIES.values()],
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Scoring API of the Dynamic Scoring Framework",
            "version": names.VERSION,
            "description": _INFO,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            scoring_api.HEALTH_PATH: {"get": _health()},
            "/config": {"get": _config()},
            "/scoring": {"post": _scoring()},
        },
        "components": {
            "schemas": {name: _portable(schema) for name, schema in schemas["$defs"].items()},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of spec.scoring.auth.tokenSecretRef, if it is set.",
                }
            },
        },
    }


def json_schemas() -> dict[str, Document]:
    """Return the JSON Schema of each body, by the name of its schema."""
    return {
        name: {
            "$schema": _DIALECT,
            **_portable(model.model_json_schema(by_alias=True)),
            "examples": [EXAMPLES[model]],
        }
        for name, model in BODIES.items()
    }


def _health() -> Document:
    return {
        "operationId": "getHealth",
        "summary": "Tell whether the scorer works.",
        "description": "Any status of 2xx means that it does; the body is not used. Asked without"
        " a token.",
        "responses": {"200": {"description": "The scorer works."}},
    }


def _config() -> Document:
    return {
        "operationId": "getConfig",
        "summary": "Return the source, the name of the score and the interval.",
        "description": "The hub asks without a token, and sends the entity tag of the last answer.",
        "responses": {
            "200": {"description": "The config.", "content": _body(scoring_api.ScorerConfig)},
            "304": {"description": "The config still has the entity tag of If-None-Match."},
        },
    }


def _header(name: str, meaning: str) -> Document:
    return {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}


def _scoring() -> Document:
    return {
        "operationId": "score",
        "summary": "Score series.",
        "description": "Called by the agent of each managed cluster, once an interval.",
        "security": [{}, {"token": []}],
        "parameters": [_header(name, meaning) for name, meaning in _HEADERS.items()],
        "requestBody": {"required": True, "content": _body(scoring_api.ScoringRequest)},
        "responses": {
            "200": {"description": "The scores.", "content": _body(scoring_api.ScoringResponse)},
            "400": {"description": "The body is not JSON."},
            "401": {"description": "The token is missing or wrong."},
            "413": {"description": "The body is larger than this scorer takes."},
            "415": {"description": "The body has another content type than application/json."},
            "422": {"description": "The body is JSON, but not a scoring request."},
            "429": {"description": "Too many calls; Retry-After is honoured."},
            "503": {"description": "The scorer cannot score now; Retry-After is honoured."},
        },
    }


def _body(model: type[BaseModel]) -> Document:
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"application/json": {"schema": schema, "example": EXAMPLES[model]}}


def _portable(node: Any) -> Any:
    """Return a schema that every validator can read.

    It has no keywords of Kubernetes, no titles and no null defaults.

    The message of each rule joins the description. Regular expressions of ECMA 262, which JSON
    Schema names for patterns, have no inline flags.
    """
    if isinstance(node, list):
        return [_portable(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    kept = {
        key: _in_any_case(value) if key == "pattern" else _portable(value)
        for key, value in node.items()
        if not key.startswith(_KUBERNETES) and not (key == "title" and isinstance(value, str))
    }
    if kept.get("default", ...) is None:
        del kept["default"]
    for rule in node.get(_CEL, ()):
        kept["description"] += f" Rule: {rule['message']}."
    return kept


def _in_any_case(pattern: Any) -> Any:
    if not isinstance(pattern, str) or not pattern.startswith(_ANY_CASE):
        return pattern
    return re.sub(
        "[a-z]", lambda letter: f"[{letter[0].upper()}{letter[0]}]", pattern.removeprefix(_ANY_CASE)
    )
