"""The CustomResourceDefinitions, generated from the wire types.

That of PlacementOptimization is generated from the types of the optimizer's requests, which `dsf`
does not know: `make crds` writes it into this folder.
"""

from importlib import resources
from typing import Any

import yaml
from pydantic import BaseModel

from dsf.api import names
from dsf.api.crd.dynamic_scorer import DynamicScorerSpec, DynamicScorerStatus
from dsf.api.crd.dynamic_scoring_config import DynamicScoringConfigSpec, DynamicScoringConfigStatus
from dsf.api.crd.node_inventory import NodeInventoryStatus
from dsf.api.crd.placement_plan import PlacementPlanSpec, PlacementPlanStatus
from dsf.api.crd.structural_schema import rule, rules, structural

CustomResourceDefinition = dict[str, Any]


def crds() -> list[CustomResourceDefinition]:
    """Return the CRDs of all our kinds, to apply."""
    own = [
        custom_resource_definition(
            kind="DynamicScorer",
            plural="dynamicscorers",
            short_names=["ds", "dscorer"],
            description="DynamicScorer registers a scoring API with the fleet.",
            spec=DynamicScorerSpec,
            status=DynamicScorerStatus,
            columns=[
                column("Health", ".status.healthStatus"),
                column("Mode", ".spec.configSyncMode"),
                column("Score", ".status.scoreName"),
                column("Scoring", ".status.clusters.scoring", "integer"),
                column("Failing", ".status.clusters.failing", "integer"),
                column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
                column("Reason", ".status.conditions[?(@.type=='Ready')].reason", priority=1),
                column("Direction", ".status.meaning.direction", priority=1),
                column("Unit", ".status.meaning.unit", priority=1),
                column("Desired", ".status.clusters.desired", "integer", priority=1),
                column("Config URL", ".spec.configURL", priority=1),
            ],
        ),
        _dynamic_scoring_config(),
        custom_resource_definition(
            kind="NodeInventory",
            plural="nodeinventories",
            short_names=["ninv"],
            description="NodeInventory is what the nodes of a managed cluster have, as its agent"
            " sees it. It has the cluster's name, in the cluster's namespace.",
            spec=None,
            status=NodeInventoryStatus,
            columns=[
                column("Nodes", ".status.nodeCount", "integer"),
                column("Ready", ".status.readyNodes", "integer"),
                column("Pending pods", ".status.pendingPods", "integer"),
                column("Observed", ".status.observedTime", "date"),
                column("Complete", ".status.conditions[?(@.type=='Complete')].status"),
                column("Valid until", ".status.validUntil", priority=1),
            ],
        ),
        custom_resource_definition(
            kind="PlacementPlan",
            plural="placementplans",
            short_names=["pp"],
            description="PlacementPlan is the record of a plan that the optimizer applied.",
            spec=PlacementPlanSpec,
            status=PlacementPlanStatus,
            columns=[
                column("Optimization", ".spec.optimization"),
                column("Revision", ".spec.revision", "integer"),
                column("Phase", ".status.phase"),
                column("Objective", ".spec.objective", "number"),
                column("Gap", ".spec.gap", "number"),
                column("Requested by", ".spec.requestedBy"),
                column("Digest", ".spec.digest", priority=1),
                column("Restores", ".spec.rollback.toRevision", "integer", priority=1),
            ],
        ),
    ]
    return [*own, _placement_optimization()]


def _dynamic_scoring_config() -> CustomResourceDefinition:
    definition = custom_resource_definition(
        kind="DynamicScoringConfig",
        plural="dynamicscoringconfigs",
        short_names=["dsc"],
        description="DynamicScoringConfig distributes the registered scorers to the fleet.",
        spec=DynamicScoringConfigSpec,
        status=DynamicScoringConfigStatus,
        columns=[
            column("Scorers", ".status.scorers", type_="integer"),
            column("Clusters", ".status.clusters", type_="integer"),
            column("Desired", ".status.desiredClusters", type_="integer"),
            column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
            column("Reason", ".status.conditions[?(@.type=='Ready')].reason", priority=1),
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


def _placement_optimization() -> CustomResourceDefinition:
    text = resources.files(__package__) / "placementoptimizations.yaml"
    found: CustomResourceDefinition = yaml.load(text.read_bytes(), yaml.CSafeLoader)
    return found


def custom_resource_definition(
    *,
    kind: str,
    plural: str,
    short_names: list[str],
    description: str,
    spec: type[BaseModel] | None,
    status: type[BaseModel],
    columns: list[dict[str, Any]],
) -> CustomResourceDefinition:
    """Return the definition of a namespaced kind of ours whose status is a subresource.

    `spec` is None for a kind that only reports.
    """
    required = spec and any(field.is_required() for field in spec.model_fields.values())
    schema = {
        "type": "object",
        "description": description,
        "properties": {
            "apiVersion": {"type": "string", "description": f"{names.GROUP}/{names.VERSION}"},
            "kind": {"type": "string", "description": kind},
            "metadata": {"type": "object"},  # the API server refuses a description here
            **({"spec": structural(spec)} if spec else {}),
            "status": structural(status),
        },
        **({"required": ["spec"]} if required else {}),
    }
    version = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            *columns,
            column("Age", ".metadata.creationTimestamp", "date"),
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


def column(name: str, path: str, type_: str = "string", *, priority: int = 0) -> dict[str, Any]:
    """Return a column of kubectl's table; with a priority above 0 only in the wide one."""
    column: dict[str, Any] = {"name": name, "type": type_, "jsonPath": path}
    return {**column, "priority": priority} if priority else column
