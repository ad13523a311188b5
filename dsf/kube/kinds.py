"""The kinds of objects that the product reads and writes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dsf.api import names


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that an API server serves: what a client needs to build its URLs."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects: `v1` for the core group, otherwise `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The qualified resource, such as `placements.cluster.open-cluster-management.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def object(self, **fields: Any) -> dict[str, Any]:
        """Return an object of the kind with these fields, such as `metadata` and `spec`."""
        return {"apiVersion": self.api_version, "kind": self.kind, **fields}

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the REST path of the collection or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


_cluster_scoped = partial(Kind, namespaced=False)

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
EVENT = Kind("", "v1", "Event", "events")
NAMESPACE = _cluster_scoped("", "v1", "Namespace", "namespaces")
NODE = _cluster_scoped("", "v1", "Node", "nodes")
POD = Kind("", "v1", "Pod", "pods")
SECRET = Kind("", "v1", "Secret", "secrets")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CUSTOM_RESOURCE_DEFINITION = _cluster_scoped(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"
)
TOKEN_REVIEW = _cluster_scoped("authentication.k8s.io", "v1", "TokenReview", "tokenreviews")
SELF_SUBJECT_REVIEW = _cluster_scoped(
    "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews"
)
SELF_SUBJECT_ACCESS_REVIEW = _cluster_scoped(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews"
)
SUBJECT_ACCESS_REVIEW = _cluster_scoped(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews"
)

DYNAMIC_SCORER = Kind(names.GROUP, names.VERSION, "DynamicScorer", "dynamicscorers")
DYNAMIC_SCORING_CONFIG = Kind(
    names.GROUP, names.VERSION, "DynamicScoringConfig", "dynamicscoringconfigs"
)
NODE_INVENTORY = Kind(names.GROUP, names.VERSION, "NodeInventory", "nodeinventories")
PLACEMENT_PLAN = Kind(names.GROUP, names.VERSION, "PlacementPlan", "placementplans")
PLACEMENT_OPTIMIZATION = Kind(
    names.GROUP, names.VERSION, "PlacementOptimization", "placementoptimizations"
)

_CLUSTER = "cluster.open-cluster-management.io"
ADD_ON_PLACEMENT_SCORE = Kind(_CLUSTER, "v1alpha1", "AddOnPlacementScore", "addonplacementscores")
CLUSTER_CLAIM = _cluster_scoped(_CLUSTER, "v1alpha1", "ClusterClaim", "clusterclaims")
MANAGED_CLUSTER = _cluster_scoped(_CLUSTER, "v1", "ManagedCluster", "managedclusters")
MANAGED_CLUSTER_SET = _cluster_scoped(
    _CLUSTER, "v1beta2", "ManagedClusterSet", "managedclustersets"
)
MANAGED_CLUSTER_SET_BINDING = Kind(
    _CLUSTER, "v1beta2", "ManagedClusterSetBinding", "managedclustersetbindings"
)
PLACEMENT = Kind(_CLUSTER, "v1beta1", "Placement", "placements")
PLACEMENT_DECISION = Kind(_CLUSTER, "v1beta1", "PlacementDecision", "placementdecisions")

CLUSTER_MANAGER = _cluster_scoped(
    "operator.open-cluster-management.io", "v1", "ClusterManager", "clustermanagers"
)
"""How OCM's operator was told to install the hub; other ways of installing OCM have none."""

_ADDON = "addon.open-cluster-management.io"
MANAGED_CLUSTER_ADD_ON = Kind(_ADDON, "v1alpha1", "ManagedClusterAddOn", "managedclusteraddons")

DEVICE_CLASS = _cluster_scoped("resource.k8s.io", "v1", "DeviceClass", "deviceclasses")
RESOURCE_CLAIM = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
RESOURCE_SLICE = _cluster_scoped("resource.k8s.io", "v1", "ResourceSlice", "resourceslices")

_WORK = "work.open-cluster-management.io"
APPLIED_MANIFEST_WORK = _cluster_scoped(_WORK, "v1", "AppliedManifestWork", "appliedmanifestworks")
MANIFEST_WORK = Kind(_WORK, "v1", "ManifestWork", "manifestworks")
MANIFEST_WORK_REPLICA_SET = Kind(
    _WORK, "v1alpha1", "ManifestWorkReplicaSet", "manifestworkreplicasets"
)

_POLICY = "policy.open-cluster-management.io"
POLICY = Kind(_POLICY, "v1", "Policy", "policies")
PLACEMENT_BINDING = Kind(_POLICY, "v1", "PlacementBinding", "placementbindings")

_KUEUE = "kueue.x-k8s.io"
ADMISSION_CHECK = _cluster_scoped(_KUEUE, "v1beta2", "AdmissionCheck", "admissionchecks")
LOCAL_QUEUE = Kind(_KUEUE, "v1beta2", "LocalQueue", "localqueues")
MULTI_KUEUE_CLUSTER = _cluster_scoped(_KUEUE, "v1beta2", "MultiKueueCluster", "multikueueclusters")
MULTI_KUEUE_CONFIG = _cluster_scoped(_KUEUE, "v1beta2", "MultiKueueConfig", "multikueueconfigs")
WORKLOAD = Kind(_KUEUE, "v1beta2", "Workload", "workloads")

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
"""The kinds of this module."""

_BY_NAME = {(kind.api_version, kind.kind): kind for kind in KINDS}


def find(obj: Mapping[str, Any]) -> Kind | None:
    """Return the kind with this `apiVersion` and `kind`, or None if the product does not use it."""
    return _BY_NAME.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
