"""Reads single objects: a policy, a workload, a managed cluster and its selector."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from dsf.api import names
from dsf.api.optimization import generating_optimization
from dsf.api.scoring.quantity import parse_quantity
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import InvalidInput, UntrustedName, listed, quoted
from dsf.kube.port import Object
from dsf.placement import Toleration
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    NodeLayout,
    Selector,
    Supply,
    TopologySpread,
    Workload,
)
from optimizer.domain.issue import Issue
from optimizer.domain.mig.policy_spec import parse_layout
from optimizer.snapshot.annotations import PREFIX, merge_specs, read_annotations
from optimizer.wire.object_specs import (
    NO_END,
    ClusterSpec,
    DrainSpec,
    GpuLayoutSpec,
    PolicySpec,
    SupplySpec,
    TolerationSpec,
    WorkloadSpec,
)

NEWER_CLUSTER_LABEL = "name"


def name_of(obj: Object) -> str:
    """Return an object's name."""
    return str(obj["metadata"]["name"])


def labels_of(obj: Object) -> Mapping[str, str]:
    """Return an object's labels."""
    return obj["metadata"].get("labels") or {}


def claims_of(cluster: Object) -> dict[str, str]:
    """Return the values of a managed cluster's ClusterClaims, by name."""
    claims = (cluster.get("status") or {}).get("clusterClaims") or ()
    return {str(item.get("name")): str(item.get("value") or "") for item in claims}


def is_generated(obj: Object) -> bool:
    """Return whether an object has the label of generated objects."""
    return generating_optimization(labels_of(obj)) is not None


def is_workload(obj: Object) -> bool:
    """Return whether a ManifestWorkReplicaSet has the labels of a request."""
    return names.REQUEST_KIND in labels_of(obj)


class NotEnforced(NamedTuple):
    """Why OCM enforces a Policy nowhere, whatever binds it: a reason, and the predicate of it."""

    reason: str
    message: str


def not_enforced(policy: Object) -> NotEnforced | None:
    """Return why OCM enforces a Policy nowhere; None if it enforces it where it is bound."""
    spec = policy.get("spec") or {}
    if spec.get("disabled"):
        return NotEnforced("PolicyDisabled", "is disabled")
    if str(spec.get("remediationAction", "")).lower() == "inform":
        return NotEnforced("PolicyInforms", "only informs (spec.remediationAction)")
    return None


def generated_by(objects: Iterable[Object], optimization: str | None) -> list[Object]:
    """Return the objects that an optimization generated; with None, those that any generated."""
    named = ((obj, generating_optimization(labels_of(obj))) for obj in objects)
    return [obj for obj, name in named if name is not None and optimization in (None, name)]


def replica_set_of(work: Object) -> tuple[str, str]:
    """Return namespace and name of the ManifestWorkReplicaSet that a ManifestWork is of."""
    namespace, _, name = labels_of(work).get(names.REPLICA_SET_LABEL, "").partition(".")
    return namespace, name


def read_policy(
    policy: Object, cluster: str = "", requested: PolicySpec | None = None
) -> CandidatePolicy | Issue:
    """Return the candidate of a Policy; its supplies are in an annotation or in labels.

    `requested`: what the request says about the policy; it wins over annotations.
    """
    name = name_of(policy)
    if why := not_enforced(policy):
        message = f"policy {name} {why.message}, so it supplies nothing"
        return Issue(reason=why.reason, message=message, policy=name)
    annotated = read_annotations(policy, PolicySpec)
    if isinstance(annotated, InvalidInput):
        return _invalid("InvalidSupply", "policy", name, annotated.message)
    spec = merge_specs(requested, annotated)
    if spec.get("cluster", cluster) != cluster:
        message = f"policy {name} is made for cluster {spec['cluster']}, not for {cluster}"
        return Issue(reason="PolicyOfAnotherCluster", message=message, policy=name, cluster=cluster)
    supplies = _supplies(spec["supplies"]) if "supplies" in spec else _labelled_supply(policy)
    if isinstance(supplies, str):
        return _invalid("InvalidSupply", "policy", name, supplies)
    return CandidatePolicy(
        policy=name,
        supplies=supplies,
        pool=spec.get("pool", ""),
        cost=spec.get("change_cost", 0.0),
        uses=spec.get("uses", ()),
        declared_layouts=_layouts(spec.get("layouts", ())),
        tolerations=tolerations_of(spec.pop("tolerations", ())),
    )


def read_workload(replica_set: Object, requested: WorkloadSpec | None = None) -> Workload | Issue:
    """Return the workload of a ManifestWorkReplicaSet, with its first placement reference.

    `requested`: what the request says about the workload; it wins over annotations. Every field of
    a WorkloadSpec except `spread`, `spread_group` and `tolerations` is the field of a Workload with
    the same name.
    """
    labels, name = labels_of(replica_set), name_of(replica_set)
    annotated = read_annotations(replica_set, WorkloadSpec)
    if isinstance(annotated, InvalidInput):
        return _invalid("InvalidRequest", "workload", name, annotated.message)
    labelled = _labelled(labels, names.APP, names.REQUEST_KIND, names.REQUEST_AMOUNT)
    if isinstance(labelled, str):
        return _invalid("InvalidRequest", "workload", name, labelled)
    app, request_kind, amount = labelled
    placement = placement_of(replica_set)
    if not placement:
        message = f"workload {name}: spec.placementRefs[0].name is missing"
        return Issue(reason="NoPlacementRef", message=message, workload=name)
    spec = merge_specs(requested, annotated)
    if request_kind in dict(spec.get("requests", ())):
        return _invalid(
            "InvalidRequest",
            "workload",
            name,
            f"requests names {request_kind}, which its labels request already",
        )
    spreads, group = spec.pop("spread", ()), spec.pop("spread_group", "")
    return Workload(
        name=name,
        app=app,
        kind=request_kind,
        amount=amount,
        placement=placement,
        labels=labels,
        tolerations=tolerations_of(spec.pop("tolerations", ())),
        spread=tuple(dict.fromkeys(TopologySpread(i.key, i.most, group) for i in spreads)),
        **spec,
    )


def read_cluster(
    cluster: Object,
    selector: Selector,
    requested: ClusterSpec | None = None,
    now: datetime | None = None,
) -> Cluster | Issue:
    """Return a ManagedCluster without candidates, with what it supplies without any policy.

    That is `status.allocatable`; for each kind the annotation wins over it, and the request over
    both. Every other field of a ClusterSpec is the field of a Cluster with the same name; `drain`
    counts at an aware time, if one is given.
    """
    name = name_of(cluster)
    annotated = read_annotations(cluster, ClusterSpec)
    if isinstance(annotated, InvalidInput):
        return _invalid("InvalidAllocatable", "cluster", name, annotated.message)
    spec = merge_specs(requested, annotated)
    supplies, drain = spec.pop("allocatable", ()), spec.pop("drain", None)
    named = frozenset(item.kind for item in supplies)
    found = [Supply(item.kind, item.device, item.amount) for item in supplies]
    for kind, text in ((cluster.get("status") or {}).get("allocatable") or {}).items():
        amount = parse_quantity(str(text))
        if amount is None:
            return _invalid(
                "InvalidAllocatable",
                "cluster",
                name,
                f"status.allocatable: {UntrustedName(kind)} is no quantity",
            )
        if kind not in named:
            found.append(Supply(UntrustedName(kind), "", amount))
    drained = until_text(drain.drained_until(now)) if drain and now else ""
    return Cluster(name, selector, (), labels_of(cluster), tuple(found), drained=drained, **spec)


def until_text(end: datetime | None) -> str:
    """Return until when a cluster is drained, in words; empty if it is not."""
    if end == NO_END:
        return "until somebody says otherwise"
    return f"until {rfc3339(end)}" if end else ""


def stated_drain(cluster: Object, requested: ClusterSpec | None) -> DrainSpec | None:
    """Return when the request or an annotation says that no workload may run on a cluster."""
    annotated = read_annotations(cluster, ClusterSpec)
    if isinstance(annotated, InvalidInput):
        return requested.drain if requested else None
    found: DrainSpec | None = merge_specs(requested, annotated).get("drain")
    return found


def has_unread_drain(cluster: Object) -> bool:
    """Return whether a cluster has a drain, and annotations of which one can't be read."""
    stated = f"{PREFIX}drain" in (cluster["metadata"].get("annotations") or {})
    return stated and isinstance(read_annotations(cluster, ClusterSpec), InvalidInput)


def stated_allocatable(cluster: Object, requested: ClusterSpec | None) -> tuple[SupplySpec, ...]:
    """Return what the request or an annotation says that a cluster supplies without a policy."""
    annotated = read_annotations(cluster, ClusterSpec)
    if isinstance(annotated, InvalidInput):
        return ()
    found: tuple[SupplySpec, ...] = merge_specs(requested, annotated).get("allocatable", ())
    return found


def cluster_selectors(managed_clusters: Iterable[Object], key: str) -> dict[str, Selector]:
    """Return a selector for each managed cluster.

    It uses the label `key`, or else the label `name`, if the value is the cluster's name and no
    other cluster has it; otherwise it uses `metadata.name`.
    """
    keys = tuple(dict.fromkeys((key, NEWER_CLUSTER_LABEL)))
    labels = {name_of(cluster): labels_of(cluster) for cluster in managed_clusters}
    carried = Counter((k, found.get(k)) for found in labels.values() for k in keys)
    return {
        name: Selector(
            name, next((k for k in keys if found.get(k) == name and carried[k, name] == 1), "")
        )
        for name, found in labels.items()
    }


def tolerations_of(specs: Iterable[TolerationSpec]) -> tuple[Toleration, ...]:
    """Return each toleration once."""
    return tuple(dict.fromkeys(item.toleration for item in specs))


def _labelled_supply(policy: Object) -> tuple[Supply, ...] | str:
    found = _labelled(
        labels_of(policy), names.SUPPLY_KIND, names.SUPPLY_DEVICE, names.SUPPLY_AMOUNT
    )
    return found if isinstance(found, str) else (Supply(*found),)


def _layouts(specs: Iterable[GpuLayoutSpec]) -> tuple[NodeLayout, ...]:
    """Return the layouts by node."""
    nodes = members_by_key((item.node, item) for item in specs)
    return tuple(
        NodeLayout(
            node, tuple(parse_layout(item.layout) for item in sorted(gpus, key=lambda gpu: gpu.gpu))
        )
        for node, gpus in nodes.items()
    )


def _supplies(specs: Iterable[SupplySpec]) -> tuple[Supply, ...]:
    """Return one supply for each (kind, device), with the sum of the amounts."""
    amounts: dict[tuple[str, str], float] = {}
    for item in specs:
        key = item.kind, item.device
        amounts[key] = amounts.get(key, 0.0) + item.amount
    return tuple(Supply(kind, device, amount) for (kind, device), amount in amounts.items())


def placements_of(replica_set: Object) -> list[str]:
    """Return the names of the Placements that a ManifestWorkReplicaSet refers to; one at least."""
    references: list[Object] = (replica_set.get("spec") or {}).get("placementRefs") or [{}]
    return [str(item.get("name") or "") for item in references]


def placement_of(replica_set: Object) -> str:
    """Return the name of the Placement that a decision writes for a ManifestWorkReplicaSet."""
    return placements_of(replica_set)[0]


def _invalid(reason: str, kind: str, name: str, wrong: str) -> Issue:
    """Return an issue of a policy, workload or cluster, which `kind` tells."""
    return Issue(reason=reason, message=f"{kind} {name}: {wrong}", **{kind: name})


_AMOUNT = re.compile(r"[0-9]{1,9}")


def _labelled(
    labels: Mapping[str, str], first: str, second: str, amount: str
) -> tuple[str, str, int] | str:
    """Return the values of three labels, or what is wrong with them."""
    if missing := [key for key in (first, second, amount) if not labels.get(key)]:
        return f"label {listed(missing)} is missing"
    if not _AMOUNT.fullmatch(labels[amount]):
        return f"label {amount} is {quoted(labels[amount])}, not a whole number of at most 9 digits"
    return UntrustedName(labels[first]), UntrustedName(labels[second]), int(labels[amount])
