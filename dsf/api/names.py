"""Fixed names of the wire contract: API groups, objects, labels, ports."""

import re

GROUP = "dynamic-scoring.open-cluster-management.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

HUB_NAMESPACE = "open-cluster-management"
AGENT_NAMESPACE = "dynamic-scoring"

ADDON = "dynamic-scoring-framework"
RECORD_KEY_SECRET = "dynamic-scoring-optimizer-record-key"  # noqa: S105 - an object name
AGENT_SECRETS_ROLE = "dynamic-scoring-agent-secrets"
HUB_KUBECONFIG_SECRET = "dynamic-scoring-framework-hub-kubeconfig"  # noqa: S105 - an object name

SCORING_CONFIG = "dynamic-scoring-config"
SCORING_CONFIG_FINALIZER = f"{GROUP}/dynamic-scoring-config-finalizer"
MANIFEST_WORK = "dynamic-scoring-config-manifestwork"
SECRETS_MANIFEST_WORK = "dynamic-scoring-secrets-manifestwork"
CONFIG_MAP = "dynamic-scoring-config"
SUMMARIES_KEY = "summaries"
CONTROLLER_LEASE = "dynamic-scoring-controller"

GENERATED_LABEL = "dynamic-scoring-framework-mcp/generated"
OPTIMIZATION_LABEL = f"{GROUP}/optimization"
DEFAULT_OPTIMIZATION = "default"

ROOT_POLICY_LABEL = "policy.open-cluster-management.io/root-policy"
"""The label of a policy that OCM has replicated for a cluster.

Source: https://github.com/open-cluster-management-io/governance-policy-propagator
"""

PLACEMENT_LABEL = "cluster.open-cluster-management.io/placement"
"""The label of a PlacementDecision that names its Placement.

Source: open-cluster-management.io/api, cluster/v1beta1, PlacementLabel.
"""

SCHEDULING_DISABLED = "cluster.open-cluster-management.io/experimental-scheduling-disable"
"""The annotation of a Placement that OCM's placement controller leaves alone.

Source: open-cluster-management.io/api, cluster/v1beta1, PlacementDisableAnnotation.
"""

REPLICA_SET_LABEL = "work.open-cluster-management.io/manifestworkreplicaset"
"""The label of a ManifestWork that names its ManifestWorkReplicaSet as `namespace.name`.

OCM copies the labels of the replica set beside it. Source: open-cluster-management.io/api,
work/v1alpha1, ManifestWorkReplicaSetControllerNameLabelKey.
"""

WORK_PLACEMENT_LABEL = "work.open-cluster-management.io/placementname"
"""The label of such a ManifestWork that names the Placement that selected its cluster.

Source: the same, ManifestWorkReplicaSetPlacementNameLabelKey.
"""

APP = "app"
REQUEST_KIND = "resource-request-kind"
REQUEST_AMOUNT = "resource-request-amount"
"""The labels of a ManifestWorkReplicaSet that is a workload."""

SUPPLY_KIND = "resource-supply-kind"
SUPPLY_DEVICE = "resource-supply-device"
SUPPLY_AMOUNT = "resource-supply-amount"
"""The labels of a Policy that supplies devices."""

ROLLOUT_LABEL, IN_PROGRESS = f"{GROUP}/rollout", "in-progress"
CLUSTER_CLAIM = "policy-watcher-claim"
SCORE_NAME_LABEL = f"{GROUP}/score-name"
PLAN_DIGEST_ANNOTATION = f"{GROUP}/plan-digest"
PLAN_OBJECTIVE_ANNOTATION = f"{GROUP}/plan-objective"
REQUEST_DIGEST_ANNOTATION = f"{GROUP}/request-digest"
APPROVED_DIGEST_ANNOTATION = f"{GROUP}/approved-digest"
PLAN_REQUESTED_ANNOTATION = f"{GROUP}/plan-requested-at"
OPTIMIZATION_FINALIZER = f"{GROUP}/placement-optimization"
ALLOWED_HOSTS_ANNOTATION = f"{GROUP}/allowed-hosts"
DISTRIBUTE_LABEL = f"{GROUP}/distribute"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"

OPTIMIZER_PORT = 8338

_NOT_DNS = re.compile(r"[^a-z0-9.-]+")


def score_object_name(score_name: str) -> str:
    """Return the AddOnPlacementScore name of a score: lower case, DNS-1123, at most 253 characters.

    `_` and every other character that DNS-1123 forbids become `-`. A `-` at either end of a label
    (the part between two dots) is removed. The result is empty if no usable character is left.
    """
    labels = _NOT_DNS.sub("-", score_name.lower())[:253].split(".")
    return ".".join(filter(None, (label.strip("-") for label in labels)))
