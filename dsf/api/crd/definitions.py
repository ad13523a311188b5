"""The three CustomResourceDefinitions, generated from the wire types."""

from typing import Any

from pydantic import BaseModel

from dsf.api import names
from dsf.api.crd.dynamic_scorer import DynamicScorerSpec, DynamicScorerStatus
from dsf.api.crd.dynamic_scoring_config import DynamicScoringConfigSpec, DynamicScoringConfigStatus
from dsf.api.crd.placement_plan import PlacementPlanSpec, PlacementPlanStatus
from dsf.api.crd.structural_schema import rule, rules, structural

CustomResourceDefinition = dict[str, Any]


def crds() -> list[CustomResourceDefinition]:
    """Return the CRDs of DynamicScorer, DynamicScoringConfig and PlacementPlan, to apply."""
    return [_dynamic_scorer(), _dynamic_scoring_config(), _placement_plan()]


def _dynamic_scorer() -> CustomResourceDefinition:
    return _definition(
        kind="DynamicScorer",
        plural="dynamicscorers",
        short_names=["ds", "dscorer"],
        description="DynamicScorer registers a scoring API with the fleet.",
        spec=DynamicScorerSpec,
        status=DynamicScorerStatus,
        columns=[
            _column("Health", ".status.healthStatus"),
            _column("Mode", ".spec.configSyncMode"),
            _column("Score", ".status.scoreName"),
            _column("Scoring", ".status.clusters.scoring", "integer"),
            _column("Failing", ".status.clusters.failing", "integer"),
            _column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
            _column("Reason", ".status.conditions[?(@.type=='Ready')].reason", priority=1),
            _column("Direction", ".status.meaning.direction", priority=1),
            _column("Unit", ".status.meaning.unit", priority=1),
            _column("Desired", ".status.clusters.desired", "integer", priority=1),
            _column("Config URL", ".spec.configURL", priority=1),
        ],
    )


def _dynamic_scoring_config() -> CustomResourceDefinition:
    definition = _definition(
        kind="DynamicScoringConfig",
        plural="dynamicscoringconfigs",
        short_names=["dsc"],
        description="DynamicScoringConfig distributes the registered scorers to the fleet.",
        spec=DynamicScoringConfigSpec,
        status=DynamicScoringConfigStatus,
        columns=[
            _column("Scorers", ".status.scorers", type_="integer"),
            _column("Clusters", ".status.clusters", type_="integer"),
            _column("Desired", ".status.desiredClusters", type_="integer"),
            _column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
            _column("Reason", ".status.conditions[?(@.type=='Ready')].reason", priority=1),
        ],
    )
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema |= rules(
        rule(
            f"self.metadata.name == '{names.SCORING_CONFIG}'",
            f"a DynamicScoringConfig must be named {names.SCORING_CONFIG}",
        )
    )
    return definition


def _placement_plan() -> CustomResourceDefinition:
    return _definition(
        kind="PlacementPlan",
        plural="placementplans",
        short_names=["pp"],
        description="PlacementPlan is the record of a plan that the optimizer applied.",
        spec=PlacementPlanSpec,
        status=PlacementPlanStatus,
        columns=[
            _column("Optimization", ".spec.optimization"),
            _column("Revision", ".spec.revision", "integer"),
            _column("Phase", ".status.phase"),
            _column("Objective", ".spec.objective", "number"),
            _column("Gap", ".spec.gap", "number"),
            _column("Requested by", ".spec.requestedBy"),
            _column("Digest", ".spec.digest", priority=1),
            _column("Restores", ".spec.rollback.toRevision", "integer", priority=1),
        ],
    )


def _definition(
    *,
    kind: str,
    plural: str,
    short_names: list[str],
    description: str,
    spec: type[BaseModel],
    status: type[BaseModel],
    columns: list[dict[str, Any]],
) -> CustomResourceDefinition:
    schema = {
        "type": "object",
        "description": description,
        "properties": {
            "apiVersion": {"type": "string", "description": f"{names.GROUP}/{names.VERSION}"},
            "kind": {"type": "string", "description": kind},
            "metadata": {"type": "object"},  # the API server refuses a description here
            "spec": structural(spec),
            "status": structural(status),
        },
        **({"required": ["spec"]} if _has_required(spec) else {}),
    }
    version = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            *columns,
            _column("Age", ".metadata.creationTimestamp", "date"),
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": short_names,
                "categories": ["ocm"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _has_required(spec: type[BaseModel]) -> bool:
    return any(field.is_required() for field in spec.model_fields.values())


def _column(name: str, path: str, type_: str = "string", *, priority: int = 0) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": type_, "jsonPath": path}
    return {**column, "priority": priority} if priority else column
