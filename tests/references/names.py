"""Writes docs/reference/names.md: labels, annotations, claims and names of objects.

Run `make references` after a change. A name of the code without a meaning here is an error.
"""

from collections.abc import Iterator, Mapping

from dsf.api import names
from dsf.hub.dispatch.queue_preferences import PREFERENCES_ANNOTATION
from dsf.hub.snapshot.manifests import PRIORITY_ANNOTATION, REQUESTS_ANNOTATION
from policy_watcher.compliance import POLICIES_ANNOTATION
from tests.repository import ROOT

PAGE = ROOT / "docs/reference/names.md"

_HEAD = """# Labels, annotations, claims and names

A reference for people who write manifests or look at what the framework wrote, written from the
code by `make references`.
"""
LABELS: Mapping[str, tuple[str, str]] = {
    names.APP: (
        "ManifestWorkReplicaSet",
        "yours: the app that a workload is, as in scores of `${app};${device}`",
    ),
    names.REQUEST_KIND: (
        "ManifestWorkReplicaSet",
        "yours: the kind that it requests, such as `gpu`",
    ),
    names.REQUEST_AMOUNT: ("ManifestWorkReplicaSet", "yours: how much of that kind"),
    names.SUPPLY_KIND: ("Policy", "yours: the kind that it supplies once it is enforced"),
    names.SUPPLY_DEVICE: ("Policy", "yours: the device, such as `3g.48gb`"),
    names.SUPPLY_AMOUNT: ("Policy", "yours: how many of them"),
    names.DISTRIBUTE_LABEL: (
        "Secret on the hub",
        "yours: `true` lets the controller copy it to managed clusters",
    ),
    names.SCORE_NAME_LABEL: ("AddOnPlacementScore", "the name of the score, with `_`"),
    names.MANAGED_BY_LABEL: (
        "all objects that we write",
        "`dynamic-scoring-framework`: who writes them",
    ),
    names.GENERATED_LABEL: (
        "Placement, PlacementBinding, generated Policy",
        "`true`: the optimizer generated it, and `POST /reset` deletes it",
    ),
    names.OPTIMIZATION_LABEL: (
        "generated objects, PlacementPlan",
        "their [optimization](../explanation/what-a-plan-is.md#named-optimizations)",
    ),
    names.ROLLOUT_LABEL: ("PlacementPlan", "`in-progress` while its steps are made"),
    names.ROOT_POLICY_LABEL: (
        "Policy in a cluster's namespace",
        "OCM's: the policy of which it is a copy",
    ),
    names.PLACEMENT_LABEL: ("PlacementDecision", "OCM's: the Placement that it decides"),
    names.REPLICA_SET_LABEL: (
        "ManifestWork",
        "OCM's: the ManifestWorkReplicaSet that it is of, as `namespace.name`",
    ),
    names.WORK_PLACEMENT_LABEL: ("ManifestWork", "OCM's: the Placement that selected its cluster"),
}
ANNOTATIONS: Mapping[str, tuple[str, str]] = {
    names.APPROVED_DIGEST_ANNOTATION: (
        "PlacementOptimization",
        "yours: the digest of the plan that is to be applied, in mode Approve",
    ),
    names.PLAN_REQUESTED_ANNOTATION: (
        "PlacementOptimization",
        "yours: any value; it plans at once when the value changes",
    ),
    names.ALLOWED_HOSTS_ANNOTATION: ("Secret", "yours: the hosts to which the agents may send it"),
    PRIORITY_ANNOTATION: ("ManifestWorkReplicaSet", "yours: its priority, for plans and scorers"),
    PREFERENCES_ANNOTATION: (
        "LocalQueue of Kueue",
        "yours: the scores that decide, with weights, as a JSON list",
    ),
    REQUESTS_ANNOTATION: ("ManifestWorkReplicaSet", "yours: further kinds that it requests"),
    names.PLAN_DIGEST_ANNOTATION: (
        "generated objects, Lease",
        "the digest of the plan that wrote it",
    ),
    names.PLAN_OBJECTIVE_ANNOTATION: ("generated objects", "the objective value of that plan"),
    names.REQUEST_DIGEST_ANNOTATION: ("generated objects", "the digest of the request"),
    POLICIES_ANNOTATION: (
        "ClusterClaim",
        "a digest of the policies and states that the claim was made of",
    ),
}
CLAIMS = {
    names.CLUSTER_CLAIM: (
        "ClusterClaim, ManagedCluster",
        "`empty`, `noncompliant` or `compliant`: workload Placements wait for the last",
    )
}
OBJECTS = {
    names.SCORING_CONFIG: (
        "DynamicScoringConfig on the hub, ConfigMap on managed clusters",
        f"the only one; the ConfigMap's key `{names.SUMMARIES_KEY}` has the scorers",
    ),
    names.MANIFEST_WORK: (
        "ManifestWork",
        "what OCM delivers to a managed cluster: the ConfigMap and the Role",
    ),
    names.AGENT_SECRETS_ROLE: (
        "Role, RoleBinding",
        "on managed clusters: the agent gets the Secrets that its scorers reference",
    ),
    names.SECRETS_MANIFEST_WORK: (
        "ManifestWork",
        "the Secrets of scorers, where they are distributed",
    ),
    names.ADDON: ("ClusterManagementAddOn, ManagedClusterAddOn, Lease", "the add-on of the agents"),
    names.HUB_KUBECONFIG_SECRET: ("Secret", "the identity that OCM gives the agent on the hub"),
    names.OPTIMIZATION_FINALIZER: (
        "finalizer of a PlacementOptimization with deletionPolicy Reset",
        "what it generated is deleted before it is",
    ),
    names.SCORING_CONFIG_FINALIZER: (
        "finalizer",
        "what was distributed is removed before the config",
    ),
}


def page() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *_sections()))


def _sections() -> Iterator[str]:
    yield from _table("Labels", "label", LABELS)
    yield from _table("Annotations", "annotation", ANNOTATIONS)
    yield (
        "The optimizer reads more annotations of workloads, policies and managed clusters, all with"
        f" the prefix `{names.GROUP}/`: see"
        " [fields and annotations](optimizer.md#fields-and-annotations).\n"
    )
    yield from _table("Claims", "claim", CLAIMS)
    yield from _table("Objects", "name", OBJECTS)


def _table(title: str, what: str, rows: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    yield f"## {title}\n\n| {what} | on | meaning |\n|---|---|---|"
    for name, (where, meaning) in rows.items():
        yield f"| `{name}` | {where} | {meaning} |"
    yield ""
