"""What-if questions: how a request changes, and what the hub is pretended to have."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from dsf.api.names import APP, REQUEST_AMOUNT, REQUEST_KIND, score_object_name
from dsf.api.scoring.quantity import format_quantity
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube import kinds
from dsf.kube.port import Object
from optimizer.domain.nodes import GPU_KIND, WHOLE_GPU, kind_and_device, resource_of
from optimizer.follow.overview.constraints.constraint_fields import Constraints
from optimizer.snapshot.added_gpus import (
    MAX_GPUS,
    AddedNode,
    GpusOfModel,
    added_nodes,
    cluster_with,
    nodes_with,
)
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.capacity.pod_templates import pods_of
from optimizer.snapshot.object_readers import labels_of, name_of
from optimizer.wire.base import Name, ObjectName, RequestPart
from optimizer.wire.object_specs import Supplies

DRAIN = f"{PREFIX}drain"

MAX_CHANGES = 100
"""Changes of one kind in a question."""

Names = Annotated[tuple[ObjectName, ...], Field(max_length=MAX_CHANGES)]


class AddedCluster(RequestPart):
    """A managed cluster that does not exist, and an existing one that it is a copy of."""

    name: ObjectName
    like: Annotated[
        ObjectName,
        Field(
            description="Default: the first cluster that has the first of the `gpus`. Its drain is"
            " not copied.",
            examples=["worker01"],
        ),
    ] = ""
    gpus: Annotated[
        tuple[GpusOfModel, ...],
        Field(
            min_length=1,
            max_length=8,
            description="Its GPUs, instead of those of the other cluster.",
        ),
    ] = ()

    @model_validator(mode="after")
    def _says_what(self) -> Self:
        if not self.like and not self.gpus:
            raise ValueError("say like which cluster it is, or which gpus it has")
        if sum(item.count for item in self.gpus) > MAX_GPUS:
            raise ValueError(f"gpus: a cluster has at most {MAX_GPUS} in all")
        return self

    @property
    def nodes(self) -> Sequence[AddedNode]:
        """The nodes that have its GPUs; none: the copied ones."""
        return added_nodes(self.gpus)


class AddedWorkload(RequestPart):
    """A workload that does not exist: one Pod that asks for an amount of a kind.

    It has the scores, labels and annotations of `like`. Without it, its scores count as 1, as
    those of others do where they are missing.
    """

    name: ObjectName = "new"
    amount: Annotated[float, Field(gt=0, le=1e15)]
    kind: Annotated[ObjectName, Field(description="As resource-request-kind states it.")] = "gpu"
    device: Annotated[
        ObjectName | None,
        Field(
            description="Such as 3g.40gb. Default: whole GPUs; with `like`, those that it may use."
        ),
    ] = None
    like: Annotated[str, Field(max_length=253, description="An existing workload.")] = ""


class AddedPolicy(RequestPart):
    """A policy that does not exist; each cluster of the question may enforce it, or only some."""

    name: ObjectName = "new-policy"
    supplies: Annotated[Supplies, Field(description="Such as gpu/3g.40gb=2.")]
    clusters: Annotated[Names, Field(description="Empty: all of the question.")] = ()


class ScoreChange(RequestPart):
    """Another value for entries of a score: all of a cluster's, or those that contain a text.

    The last of several changes of an entry counts.
    """

    score: Annotated[Name, Field(max_length=253)]
    cluster: ObjectName
    entry: Annotated[Name, Field(max_length=1024, description="Part of an entry's name.")] = ""
    value: Annotated[int, Field(ge=-100, le=100)]


class WhatIf(Constraints):
    """Changes to plan with. `add`, `run`, `policies` and `scores` pretend; the rest applies."""

    lose: Annotated[Names, Field(description="Clusters that are gone.")] = ()
    add: Annotated[tuple[AddedCluster, ...], Field(max_length=MAX_CHANGES)] = ()
    run: Annotated[
        tuple[AddedWorkload, ...],
        Field(max_length=MAX_CHANGES, description="Workloads that do not exist."),
    ] = ()
    policies: Annotated[
        tuple[AddedPolicy, ...],
        Field(max_length=MAX_CHANGES, description="Policies that do not exist."),
    ] = ()
    scores: Annotated[tuple[ScoreChange, ...], Field(max_length=MAX_CHANGES)] = ()
    budget: Annotated[
        dict[Name, Annotated[float, Field(ge=0)]],
        Field(max_length=MAX_CHANGES, description="Score to the most of its sum."),
    ] = Field(default_factory=dict)

    def pretended(
        self, namespace: str, workloads: Mapping[str, Object], now: datetime
    ) -> "PretendedObjects | None":
        """Return what the hub is pretended to have now; None if only the request changes.

        `workloads`: those of the namespace, by name.
        """
        if not (self.add or self.scores or self.run or self.policies):
            return None
        run = [_added(item, namespace, workloads.get(item.like, {})) for item in self.run]
        besides = {
            kinds.MANIFEST_WORK_REPLICA_SET: run,
            kinds.POLICY: [_policy(item, namespace) for item in self.policies],
        }
        unscored = tuple(item.name for item in self.run if not item.like)
        return PretendedObjects(self.add, self.scores, now, besides, unscored)


@dataclass(frozen=True)
class PretendedObjects:
    """Managed clusters that are copies of others, changed scores, new workloads and policies.

    `new`: objects by kind. `now`: when the nodes of the copies are pretended to be observed.
    `unscored`: the new workloads that are like no other.
    """

    added: tuple[AddedCluster, ...]
    scores: tuple[ScoreChange, ...]
    now: datetime
    new: Mapping[kinds.Kind, Sequence[Object]] = field(default_factory=dict)
    unscored: tuple[str, ...] = ()

    @property
    def policies(self) -> Sequence[str]:
        """The names of the new policies."""
        return [*map(name_of, self.new.get(kinds.POLICY, ()))]

    def seen(self, kind: kinds.Kind, objects: Iterable[Object]) -> Iterator[Object]:
        """Yield the objects of one kind as the question pretends them: changed, then copied."""
        for obj in objects:
            changed = self._rescored(obj) if kind == kinds.ADD_ON_PLACEMENT_SCORE else obj
            yield changed
            for added in self.added:
                copy = _copied(kind, obj, added, self.now)
                yield from () if copy is None else (self._rescored(copy),)

    def besides(self, kind: kinds.Kind, namespace: str | None) -> Iterator[Object]:
        """Yield the objects of one kind that a list of a namespace has besides; None: of all."""
        for obj in self.new.get(kind, ()):
            if namespace in (None, obj["metadata"]["namespace"]):
                yield obj

    def effective(self, objects: Iterable[Object]) -> Iterator[ScoreChange]:
        """Yield the changes that decide the value of an entry of these AddOnPlacementScores."""
        for obj in objects:
            cluster = obj["metadata"].get("namespace", "")
            copies = (item.name for item in self.added if item.like == cluster)
            for place in (cluster, *copies):
                changes = self._changes(place, name_of(obj))
                entries = _entries(obj) if changes else ()
                yield from filter(None, (_last_change(entry, changes) for entry in entries))

    def without_effect(self, effective: Collection[ScoreChange]) -> Iterator[str]:
        """Yield what is wrong with each change but the effective ones."""
        for item in self.scores:
            if item in effective:
                continue
            score, entry = UntrustedName(item.score), UntrustedName(item.entry)
            where = f"{score} on {UntrustedName(item.cluster)}"
            replaced = any(
                (other.score, other.cluster) == (item.score, item.cluster)
                and other.entry in item.entry
                for other in self.scores[self.scores.index(item) + 1 :]
            )
            if replaced:
                yield f"later changes replace that of {entry if item.entry else 'all'} in {where}"
            elif item.entry:
                yield f"no entry of {where} contains {entry}, or later changes replace it"
            else:
                yield f"{where} has no entry, or later changes replace all of them"

    def _rescored(self, obj: Object) -> Object:
        changes = self._changes(obj["metadata"].get("namespace", ""), name_of(obj))
        if not changes or not _entries(obj):
            return obj
        entries = [_changed(entry, _last_change(entry, changes)) for entry in _entries(obj)]
        return {**obj, "status": {**obj["status"], "scores": entries}}

    def _changes(self, cluster: str, score: str) -> list[ScoreChange]:
        return [
            item
            for item in self.scores
            if item.cluster == cluster and score_object_name(item.score) == score
        ]


def policy_of_copy(policy: str, name: str, like: str) -> str:
    """Return the name that a policy of one cluster has for its copy; empty if it is no such."""
    return f"{policy.removesuffix(like)}{name}" if policy.endswith(f"-{like}") else ""


def _added(item: AddedWorkload, namespace: str, like: Object) -> Object:
    """Return the ManifestWorkReplicaSet of a workload that does not exist, with one Pod."""
    metadata = like.get("metadata") or {}
    own = {APP: item.name, **labels_of(like)} if like else {APP: item.name}
    amount = format_quantity(item.amount)
    own |= {REQUEST_KIND: item.kind, REQUEST_AMOUNT: amount}
    annotations = {**(metadata.get("annotations") or {})}
    device = item.device or ("" if like or item.kind != GPU_KIND else WHOLE_GPU)
    if device:
        annotations[f"{PREFIX}devices"] = device
    requests = {resource_of(item.kind, device or _device_of_pods(like)): amount}
    pod = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": item.name}, "spec": pod}
    return {
        "metadata": {
            "name": item.name,
            "namespace": namespace,
            "labels": own,
            "annotations": annotations,
        },
        "spec": {
            "placementRefs": [{"name": item.name}],
            "manifestWorkTemplate": {"workload": {"manifests": [manifest]}},
        },
    }


def _policy(item: AddedPolicy, namespace: str) -> Object:
    supplies = ",".join(
        f"{'/'.join(filter(None, (one.kind, one.device)))}={format_quantity(one.amount)}"
        for one in item.supplies
    )
    annotations = {f"{PREFIX}supplies": supplies}
    return {"metadata": {"name": item.name, "namespace": namespace, "annotations": annotations}}


def _device_of_pods(workload: Object) -> str:
    """Return the GPU device that a workload's Pods request; whole GPUs if it can't be told."""
    pods = pods_of(workload) if workload else ()
    groups = () if isinstance(pods, InvalidInput) else pods
    named = (kind_and_device(resource) for group in groups for resource in group.requests)
    return next((device for kind, device in named if kind == GPU_KIND), WHOLE_GPU)


def _entries(obj: Object) -> list[dict[str, Any]]:
    return (obj.get("status") or {}).get("scores") or []


def _last_change(entry: Mapping[str, Any], changes: Sequence[ScoreChange]) -> ScoreChange | None:
    name = str(entry.get("name"))
    return next((item for item in reversed(changes) if item.entry in name), None)


def _changed(entry: dict[str, Any], change: ScoreChange | None) -> dict[str, Any]:
    return {**entry, "value": change.value} if change else entry


def _copied(kind: kinds.Kind, obj: Object, added: AddedCluster, now: datetime) -> Object | None:
    """Return the object that a copy of a cluster has where the cluster has this one; else None."""
    metadata, name, like = obj["metadata"], added.name, added.like
    if kind == kinds.MANAGED_CLUSTER and name_of(obj) == like:
        labels = {key: name if value == like else value for key, value in labels_of(obj).items()}
        stated = {**(metadata.get("annotations") or {})}
        stated.pop(DRAIN, None)  # who takes one cluster out of use says nothing of a new one
        own = {**metadata, "name": name, "labels": labels, "annotations": stated}
        copy = {**obj, "metadata": own}
        return cluster_with(copy, added.nodes) if added.gpus else copy
    if kind == kinds.POLICY and policy_of_copy(name_of(obj), name, like):
        return {**obj, "metadata": {**metadata, "name": policy_of_copy(name_of(obj), name, like)}}
    if kind == kinds.ADD_ON_PLACEMENT_SCORE and metadata.get("namespace") == like:
        return {**obj, "metadata": {**metadata, "namespace": name}}
    if kind == kinds.NODE_INVENTORY and metadata.get("namespace") == like:
        moved = {**metadata, "name": name, "namespace": name}
        status = {**(obj.get("status") or {}), "observedTime": rfc3339(now), "validUntil": None}
        if added.gpus:
            status = {**status, "nodes": nodes_with(status.get("nodes") or (), added.nodes)}
        return {**obj, "metadata": moved, "status": _without_pods(status)}
    return None


def _without_pods(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a NodeInventory whose nodes run nothing."""
    nodes = []
    for item in status.get("nodes") or ():
        sets = [{**one, "allocated": []} for one in item.get("devices") or ()]
        nodes.append({**item, "requested": {}, "works": [], "devices": sets})
    rest = {key: value for key, value in status.items() if key not in {"works", "others"}}
    return {**rest, "nodes": nodes}
