"""The Pods that a ManifestWorkReplicaSet starts on a cluster, read from what it deploys.

Sources: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/;
https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/; the tolerations of DaemonSets:
https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dsf.api.pod_spec import PodSpec, read_part
from dsf.api.untrusted_text import InvalidInput, UntrustedName, cleaned
from dsf.api.wire_model import WireModel
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, label_selector_of
from dsf.placement import Toleration
from optimizer.domain.dra.device_sets import DeviceClaim
from optimizer.domain.nodes import NodeSelectorTerm, PodGroup
from optimizer.snapshot.capacity.device_claims import ClaimManifests, claim_manifests, read_claims

MAX_PODS = 1_000_000
"""Pods of one manifest: more than any cluster runs."""

NODE_NAME = "metadata.name"
"""The key of a condition on the name of a node."""

_OF_DAEMON_SETS = tuple(
    Toleration(f"node.kubernetes.io/{key}", "Exists", "", effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)

Counted = Iterator[tuple[int, PodSpec]]
"""How many of which Pods run at the same time."""


class _Template(WireModel):
    """A Pod template."""

    spec: PodSpec


class _PodSource(WireModel):
    """The spec of something that starts Pods."""

    @abstractmethod
    def pods(self) -> Counted:
        """Yield the Pods that run at the same time."""


class _Spec(_PodSource):
    """The spec of a controller of equal Pods."""

    template: _Template
    replicas: int | None = None

    def pods(self) -> Counted:
        """Yield the Pods of its replicas."""
        yield _or_one(self.replicas), self.template.spec


class _JobSpec(_PodSource):
    """The spec of a Job."""

    template: _Template
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None

    def pods(self) -> Counted:
        """Yield the Pods of its parallelism."""
        most = _or_one(self.parallelism)
        if not self.suspend:
            wanted = most if self.completions is None else min(most, self.completions)
            yield wanted, self.template.spec


class _JobTemplate(WireModel):
    """The template of a Job."""

    spec: _JobSpec


class _CronJobSpec(_PodSource):
    """The spec of a CronJob."""

    job_template: _JobTemplate
    suspend: bool | None = None

    def pods(self) -> Counted:
        """Yield the Pods of one run."""
        if not self.suspend:
            yield from self.job_template.spec.pods()


class _ReplicatedJob(WireModel):
    """Equal Jobs of a JobSet."""

    template: _JobTemplate
    replicas: int | None = None


class _JobSetSpec(_PodSource):
    """The spec of a JobSet."""

    replicated_jobs: tuple[_ReplicatedJob, ...] = ()
    suspend: bool | None = None

    def pods(self) -> Counted:
        """Yield the Pods of all its Jobs."""
        for one in () if self.suspend else self.replicated_jobs:
            for count, pod in one.template.spec.pods():
                yield count * _or_one(one.replicas), pod


class _LonePod(PodSpec, _PodSource):
    """The spec of a Pod without a controller."""

    def pods(self) -> Counted:
        """Yield the Pod."""
        yield 1, self


LASTING = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
"""Kinds that always have `spec.replicas` Pods, 1 by default."""

_SPECS: Mapping[str, type[_PodSource]] = {
    "Pod": _LonePod,
    "Job": _JobSpec,
    "CronJob": _CronJobSpec,
    "JobSet": _JobSetSpec,
    **dict.fromkeys((*LASTING, "DaemonSet"), _Spec),
}

KINDS_WITH_PODS = frozenset(_SPECS)
"""Kinds that are known to start Pods."""


def work_template(replica_set: Object) -> Mapping[str, Any]:
    """Return the template of a workload's ManifestWorks."""
    return (replica_set.get("spec") or {}).get("manifestWorkTemplate") or {}


def manifests_of(replica_set: Object) -> Sequence[Any]:
    """Return what a workload deploys on each cluster."""
    return (work_template(replica_set).get("workload") or {}).get("manifests") or ()


def pods_of(replica_set: Object) -> tuple[PodGroup, ...] | InvalidInput:
    """Return the Pods that a replica of a workload starts, or what can't be read of them.

    Equal Pods of several manifests are one group. What has no Pod template starts none.
    """
    counts, manifests = dict[PodGroup, int](), manifests_of(replica_set)
    claims = claim_manifests(manifests)
    for index, manifest in enumerate(manifests):
        found = _groups(manifest, f"manifests[{index}]", claims)
        if isinstance(found, InvalidInput):
            return found
        for group in found:
            alone = replace(group, count=0)
            counts[alone] = counts.get(alone, 0) + group.count
    return tuple(
        replace(group, count=count) for group, count in counts.items() if count or group.per_node
    )


def _groups(manifest: Any, path: str, known: ClaimManifests) -> list[PodGroup] | InvalidInput:
    """Return the Pods of a manifest; of a kind that is not known, those of its `spec.template`."""
    spec = manifest.get("spec") if isinstance(manifest, Mapping) else None
    if not isinstance(spec, Mapping):
        return []
    kind = str(manifest.get("kind"))
    model = _SPECS.get(kind, _Spec if _has_template(spec) else None)
    if model is None:
        return []
    path = f"{path} ({UntrustedName(kind)})"
    read = read_part(model, spec, f"{path}: spec")
    if isinstance(read, InvalidInput):
        return read
    groups = list[PodGroup]()
    for count, pod in read.pods():
        if not 0 <= count <= MAX_PODS:
            return InvalidInput("Unreadable", f"{path} starts {count} Pods, not 0 to {MAX_PODS}")
        alone = 0 if kind == "DaemonSet" else count
        claims = read_claims(pod, _namespace(manifest), alone, known)
        group = _group(count, pod, claims)
        if isinstance(group, InvalidInput):
            return InvalidInput(group.reason, f"{path}{group.message}")
        if kind == "DaemonSet":
            tolerated = (*group.tolerations, *_OF_DAEMON_SETS)
            group = replace(group, count=0, per_node=True, tolerations=tolerated)
        groups.append(group)
    return groups


def _group(
    count: int, pod: PodSpec, claims: tuple[DeviceClaim, ...] | InvalidInput
) -> PodGroup | InvalidInput:
    affinity = _affinity(pod)
    if affinity is None:
        why = "requires a node that meets one of nodeSelectorTerms, which are all empty"
        return InvalidInput("Unreadable", f" {why}")
    if isinstance(claims, InvalidInput):
        return InvalidInput(claims.reason, f": {claims.message}")
    if isinstance(wrong := _expressions(pod), InvalidInput):
        return InvalidInput("Unreadable", f" requires nodes: {cleaned(wrong.message, 200)}")
    return PodGroup(count, pod.requested(), affinity, _tolerations(pod), claims=claims)


def _namespace(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, Mapping) else ""


def _has_template(spec: Mapping[str, Any]) -> bool:
    template = spec.get("template")
    inner = template.get("spec") if isinstance(template, Mapping) else None
    return isinstance(inner, Mapping) and "containers" in inner


def _or_one(number: int | None) -> int:
    return 1 if number is None else number


def _affinity(pod: PodSpec) -> tuple[tuple[NodeSelectorTerm, ...], ...] | None:
    """Return which nodes a Pod may run on; None if no node at all."""
    always = [
        NodeSelectorTerm(key, "In", (value,)) for key, value in (pod.node_selector or {}).items()
    ]
    if pod.node_name:
        always.append(NodeSelectorTerm(NODE_NAME, "In", (pod.node_name,)))
    nodes = pod.affinity.node_affinity if pod.affinity else None
    if nodes is None or nodes.required is None:
        return (tuple(always),) if always else ()
    terms = tuple(
        (*always, *(NodeSelectorTerm(i.key, i.operator, i.values or ()) for i in term.requirements))
        for term in nodes.required.node_selector_terms
        if term.requirements
    )
    return terms or None


def _expressions(pod: PodSpec) -> LabelSelector | InvalidInput:
    """Return the expressions of all terms, or which of them kube-scheduler can't read."""
    nodes = pod.affinity.node_affinity if pod.affinity else None
    terms = nodes.required.node_selector_terms if nodes and nodes.required else ()
    found = (item.model_dump() for term in terms for item in term.match_expressions or ())
    return label_selector_of({"matchExpressions": list(found)})


def _tolerations(pod: PodSpec) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(item.key or "", item.operator or "Equal", item.value or "", item.effect or "")
        for item in pod.tolerations or ()
    )
