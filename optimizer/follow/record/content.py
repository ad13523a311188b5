"""The content of a record: what a plan was asked for, what it decided, generated and changed.

What the objects of the plan say themselves is kept too, and the hub is compared with it.
"""

import base64
import binascii
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from dsf.api.json_input import value_count
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy, Workload
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.plan.basis import requests_text, supplies_text
from optimizer.snapshot.annotations import merge_specs, read_annotations
from optimizer.snapshot.object_readers import (
    is_generated,
    labels_of,
    name_of,
    not_enforced,
    read_policy,
    read_workload,
)
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.requested_workloads import selected_keys
from optimizer.wire.base import GeneratedObject, ResultPart
from optimizer.wire.object_specs import ClusterSpec
from optimizer.wire.request import OptimizeRequest, RequestedCluster
from optimizer.wire.result import PlannedChange, Unplaced

DIGEST_CHARACTERS = 10
"""Characters of the digest of a field: enough that no edit by chance has the same."""

_COMPARED_OTHERWISE = {
    "policy": {"policy", "supplies", "current", "layouts"},
    "workload": {"name", "kind", "amount", "requests", "placement", "labels"}
    | {"current", "unselectable", "avoided", "pending"},
}
"""Fields that are compared in words or by name, or that no object says."""

_WORDS = {"cost": "change cost", "declared_layouts": "layouts"}


class RecordedFacts(NamedTuple):
    """What policies, workloads and clusters of a decision say, whatever others use.

    `stated`: `policy NAME` -> `supplies 2 gpu of 3g.48gb`, `workload NAME` -> `requests 2 gpu`.
    `digests`: `policy NAME`, `workload NAME` or `cluster NAME` -> field -> digest of what else it
    says. `placements`: workload -> the Placement that it refers to first. Generated policies are
    left out: they are compared as objects. An object that does not exist has no key.
    """

    stated: Mapping[str, str]
    digests: Mapping[str, Mapping[str, str]]
    placements: Mapping[str, str]


def recorded_facts(
    observation: Observation, request: OptimizeRequest, decision: Decision
) -> RecordedFacts:
    """Return what the objects say that a decision enforces, places, or places on."""
    assigned = {item.workload for item in decision.assignments}
    asked = {item.name: item for item in request.target_workloads}
    replica_sets = {name_of(obj): obj for obj in observation.workloads if name_of(obj) in assigned}
    read = {name: read_workload(obj, asked.get(name)) for name, obj in replica_sets.items()}
    workloads = [item for item in read.values() if isinstance(item, Workload)]
    stated, digests = _of_policies(observation, request, decision)
    keys = selected_keys(text for item in workloads for text in item.workload_selectors)
    for name, item in read.items():
        subject = f"workload {UntrustedName(name)}"
        stated[subject] = _requests(item)
        if isinstance(item, Workload):
            digests[subject] = _digests(_stated(item, "workload")) | _labels(
                replica_sets[name], keys
            )
    return RecordedFacts(
        stated,
        digests | _of_clusters(observation, request, decision, workloads),
        {item.name: item.placement for item in workloads},
    )


def _of_policies(
    observation: Observation, request: OptimizeRequest, decision: Decision
) -> tuple[dict[str, str], dict[str, Mapping[str, str]]]:
    """Return what enforced policies supply, and the digests of what else they say."""
    policies = {name_of(obj): obj for obj in observation.policies if not is_generated(obj)}
    specs = {
        (cluster.name, policy.name): policy
        for cluster in request.clusters
        for policy in cluster.available_policies
    }
    stated, digests = dict[str, str](), dict[str, Mapping[str, str]]()
    for choice in decision.policies:
        policy = policies.get(choice.policy)
        if policy is None:
            continue
        subject = f"policy {UntrustedName(choice.policy)}"
        read = read_policy(policy, choice.cluster, specs.get(choice))
        if isinstance(read, CandidatePolicy):
            stated[subject] = supplies_text(read.supplies)
            digests[subject] = _digests(_stated(read, "policy") | _spec(policy))
        elif not_enforced(policy) is None:
            stated[subject] = f"supplies nothing ({read.message})"
    return stated, digests


def _of_clusters(
    observation: Observation,
    request: OptimizeRequest,
    decision: Decision,
    workloads: Iterable[Workload],
) -> dict[str, Mapping[str, str]]:
    """Return the digests of what clusters say: annotations, and labels that constraints name."""
    named = {item.cluster for item in decision.policies}
    named |= {item.cluster for item in decision.assignments}
    asked = {item.name: item for item in request.clusters}
    keys = {item.key for workload in workloads for item in workload.spread}
    keys |= {limit.per for limit in request.limits if limit.per}
    keys |= selected_keys(text for item in workloads for text in item.cluster_selectors)
    keys |= selected_keys(limit.cluster_selector for limit in request.limits)
    return {
        f"cluster {name_of(obj)}": _digests(_allocatable(obj, asked.get(name_of(obj))))
        | _labels(obj, keys)
        for obj in observation.managed_clusters
        if name_of(obj) in named
    }


def _requests(item: Workload | Issue) -> str:
    if isinstance(item, Issue):
        return f"requests nothing that can be read ({item.message})"
    return requests_text(item)


def _stated(item: CandidatePolicy | Workload, kind: str) -> dict[str, Any]:
    """Return the fields that are not as by default: a later version may have further ones."""
    by_default = {field.name: field.default for field in fields(item)}
    return {
        key: value
        for key, value in asdict(item).items()
        if key not in _COMPARED_OTHERWISE[kind] and value != by_default[key]
    }


def _spec(policy: Object) -> dict[str, Any]:
    """Return the fields of a Policy's spec; one that is disabled is named as such."""
    return {
        f"spec.{key}": value
        for key, value in (policy.get("spec") or {}).items()
        if key != "disabled"
    }


def _allocatable(cluster: Object, asked: RequestedCluster | None) -> dict[str, Any]:
    """Return what a cluster supplies by its annotation or by the request."""
    annotated = read_annotations(cluster, ClusterSpec)
    if isinstance(annotated, InvalidInput):
        return {"allocatable": annotated.message}
    return merge_specs(asked, annotated)


def _labels(obj: Object, keys: Iterable[str]) -> dict[str, str]:
    own = labels_of(obj)
    return {f"label {UntrustedName(key)}": _digest(own[key]) for key in keys if key in own}


def _digests(said: Mapping[str, Any]) -> dict[str, str]:
    return {_WORDS.get(key, key.replace("_", " ")): _digest(said[key]) for key in said}


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=lambda part: part.model_dump(mode="json"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


MAX_CONTENT_CHARACTERS = 1_000_000
"""Etcd refuses requests above 1.5 MiB; the other fields of a record and its status need a part."""

MAX_CONTENT_BYTES = 16 * 1024 * 1024
"""Unpacked size of a content: four times that of 5,000 workloads on 1,000 clusters."""

MAX_CONTENT_VALUES = 400_000
"""Values of a content, nearly twice those of 5,000 workloads on 1,000 clusters.

They bound the memory and the time to read one: the worst takes 160 MB and 1.5 s on a slow core,
during which other threads wait. Source: python -m benchmarks.optimizer.records.
"""

Content = TypeVar("Content", bound=ResultPart)


class RecordContent(ResultPart):
    """The part of a record that is packed.

    `assumptions`: what each enforced policy supplied and each assigned workload requested, net of
    what others used. `stated`, `digests`, `placements`: what the objects said themselves, see
    RecordedFacts. All three and `unplaced` are empty in records of versions that did not keep them.
    """

    request: Mapping[str, Any]
    policies: tuple[PolicyEnforcement, ...]
    assignments: tuple[Assignment, ...]
    objects: tuple[GeneratedObject, ...]
    changes: tuple[PlannedChange, ...]
    assumptions: Mapping[str, str]
    unplaced: tuple[Unplaced, ...] = ()
    stated: Mapping[str, str] = {}
    digests: Mapping[str, Mapping[str, str]] = {}
    placements: Mapping[str, str] = {}

    def asked(self) -> OptimizeRequest | InvalidInput:
        """Return the request, as this version reads it."""
        try:
            return OptimizeRequest.model_validate(self.request)
        except ValidationError:
            return InvalidInput("UnreadableRecord", "its request is none that this version knows")

    @property
    def prunes(self) -> bool:
        """Whether the plan removed the objects of workloads that it does not name."""
        return bool(self.request.get("prune", True))

    @property
    def facts(self) -> RecordedFacts:
        """What the objects said themselves."""
        return RecordedFacts(self.stated, self.digests, self.placements)

    @property
    def decision(self) -> Decision:
        """The decision, in the order of the problem that it solved."""
        return Decision(self.policies, self.assignments)


def packed(content: ResultPart, most: int = MAX_CONTENT_CHARACTERS) -> str | None:
    """Return a content as JSON, compressed by gzip, in base64; None if it could not be read."""
    text = content.model_dump_json().encode()
    if not _is_admissible(text):
        return None
    found = base64.b64encode(gzip.compress(text, mtime=0)).decode()
    return found if len(found) <= most else None


def unpacked(text: str | None, of: type[Content]) -> Content | InvalidInput:
    """Return the content that was packed; it is None if it was too large.

    Await it in a thread: a large one takes a second.
    """
    if text is None:
        return InvalidInput("NoContent", "its content was too large for the hub")
    try:
        data = _decompressed(base64.b64decode(text))
        if not _is_admissible(data):
            return InvalidInput("UnreadableRecord", f"its content has {_TOO_MUCH}")
        return of.model_validate_json(data)
    except (binascii.Error, zlib.error, ValidationError, ValueError) as error:
        return InvalidInput(
            "UnreadableRecord", f"its content can't be read: {type(error).__name__}"
        )


_TOO_MUCH = f"more than {MAX_CONTENT_BYTES} bytes or {MAX_CONTENT_VALUES} values"


def _is_admissible(text: bytes) -> bool:
    return len(text) <= MAX_CONTENT_BYTES and value_count(text) <= MAX_CONTENT_VALUES


def _decompressed(data: bytes) -> bytes:
    """Return inflated data, or so much of it that it is known to be too large."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    found = stream.decompress(data, MAX_CONTENT_BYTES + 1)
    if not stream.eof and len(found) <= MAX_CONTENT_BYTES:
        raise ValueError("incomplete")
    return found
