"""Which Secrets of the hub go to which managed cluster: only what a scorer there references.

A Secret takes part if it has the label `.../distribute: "true"`. Only the keys that a scorer
references in `auth` or `tls` are sent, in a separate ManifestWork that
is deleted when nothing is referenced any more. If they exceed the size of one work, the first
Secrets by name that fit are sent.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.api import names
from dsf.api.crd.dynamic_scorer import DynamicScorerSpec, secret_references
from dsf.api.crd.scorer_source import SecretKeyRef
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.hub.snapshot.summaries_work import LIMIT_BYTES, ROOM_BYTES
from dsf.kube.changes import Change, diff, without_managed_fields
from dsf.kube.kinds import MANIFEST_WORK, SECRET
from dsf.kube.port import Object

SELECTOR = f"{names.DISTRIBUTE_LABEL}=true"
LONGEST_VALUE = 32 * 1024
"""Bytes in base64; tokens and CA certificates are far shorter."""
_TYPE = "Opaque"


@dataclass(frozen=True, slots=True)
class HubSecret:
    """A Secret of the hub that may be distributed; its values never appear in its repr."""

    name: str
    type: str
    data: Mapping[str, str] = field(repr=False)
    allowed_hosts: str | None = None


@dataclass(frozen=True, slots=True)
class WithheldSecret:
    """Why a reference is not distributed although its Secret takes part."""

    reference: SecretKeyRef
    reason: str
    message: str


def read_secret(obj: Object) -> HubSecret:
    """Read a Secret of core/v1; values stay in base64."""
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    return HubSecret(
        name=str(metadata["name"]),
        type=str(obj.get("type") or _TYPE),
        data=dict(obj.get("data") or {}),
        allowed_hosts=annotations.get(names.ALLOWED_HOSTS_ANNOTATION),
    )


def read_secrets_work(obj: Object) -> dict[str, Any]:
    """Return the fields of a ManifestWork that the plan compares."""
    return {**without_managed_fields({"metadata": obj["metadata"]}), "spec": obj.get("spec") or {}}


def references_in_summaries(summaries: Iterable[ScorerSummary]) -> frozenset[SecretKeyRef]:
    """Return the references in the summaries that agents have."""
    return frozenset[SecretKeyRef]().union(*(each.secret_references for each in summaries))


def references_in_spec(spec: DynamicScorerSpec) -> frozenset[SecretKeyRef]:
    """Return the references in the spec of a DynamicScorer."""
    sides = [side for side in (spec.source, *(spec.sources or ()), spec.scoring) if side]
    return frozenset(each for side in sides for each in secret_references(side))


def withheld(reference: SecretKeyRef, secret: HubSecret | None) -> WithheldSecret | None:
    """Return why a reference is not distributed; None if it is, or if its Secret takes no part."""
    if secret is None:
        return None
    where = f"Secret {secret.name}"
    if secret.type != _TYPE:
        return WithheldSecret(
            reference,
            "SecretTypeRefused",
            f"{where} is of type {secret.type}, which is never distributed: use one of {_TYPE}",
        )
    value = secret.data.get(reference.key)
    if value is None:
        message = f"{where} has no key {reference.key!r}: add it, or name another in the scorer"
        return WithheldSecret(reference, "SecretKeyMissing", message)
    if len(value) > LONGEST_VALUE:
        message = f"{where}: the value of {reference.key!r} is longer than {LONGEST_VALUE} bytes"
        return WithheldSecret(reference, "SecretTooLong", message)
    return None


def plan_secrets(
    needed: Mapping[str, frozenset[SecretKeyRef]],
    secrets: Mapping[str, HubSecret],
    works: Mapping[str, Object],
    agent_namespace: str,
) -> tuple[list[Change], dict[str, str]]:
    """Return the changes that bring each managed cluster the keys that it needs, and no others.

    Also returns the Secrets that do not fit into a work, each with the first cluster affected.
    `needed` and `works` are by managed cluster, `secrets` by name. A work that is being deleted is
    written again only once it is gone.
    """
    staying = {c: work for c, work in works.items() if "deletionTimestamp" not in work["metadata"]}
    leaving = works.keys() - staying.keys()
    sent: dict[frozenset[SecretKeyRef], list[Object]] = {}
    crowded: dict[str, str] = {}
    for cluster, references in sorted(needed.items()):
        if references not in sent:
            manifests = _manifests(references, secrets, agent_namespace)
            sent[references], others = _fitting(manifests)
            crowded = {**dict.fromkeys(others, cluster), **crowded}
    desired = [
        _work(cluster, sent[references], staying.get(cluster))
        for cluster, references in sorted(needed.items())
        if sent[references] and cluster not in leaving
    ]
    return diff(MANIFEST_WORK, desired, [dict(work) for work in staying.values()]), crowded


def too_large(reference: SecretKeyRef, cluster: str) -> WithheldSecret:
    """Return why a reference is not sent to a managed cluster, and perhaps to others."""
    message = (
        f"Secret {reference.name} is not sent to managed cluster {cluster}, and perhaps to others:"
        f" together with the Secrets before it by name it would exceed the {LIMIT_BYTES}"
        " bytes that one ManifestWork may have; reference fewer or smaller Secrets there"
    )
    return WithheldSecret(reference, "SecretsTooLarge", message)


def _fitting(manifests: Iterable[Object]) -> tuple[list[Object], list[str]]:
    """Return the manifests that fit into one work, and the names of the others."""
    fitting, others, room = list[Object](), list[str](), LIMIT_BYTES - ROOM_BYTES
    for manifest in manifests:
        size = len(json.dumps(manifest))
        if size > room:
            others.append(manifest["metadata"]["name"])
            continue
        room -= size
        fitting.append(manifest)
    return fitting, others


def _manifests(
    references: Iterable[SecretKeyRef], secrets: Mapping[str, HubSecret], agent_namespace: str
) -> Iterator[Object]:
    keys: dict[str, list[str]] = {}
    for reference in sorted(references, key=lambda each: (each.name, each.key)):
        secret = secrets.get(reference.name)
        if secret and not withheld(reference, secret):
            keys.setdefault(secret.name, []).append(reference.key)
    for name, of_it in keys.items():
        yield _manifest(secrets[name], of_it, agent_namespace)


def _manifest(secret: HubSecret, keys: Iterable[str], agent_namespace: str) -> Object:
    hosts = secret.allowed_hosts
    annotations = {names.ALLOWED_HOSTS_ANNOTATION: hosts} if hosts is not None else {}
    return SECRET.object(
        type=_TYPE,
        metadata={
            "name": secret.name,
            "namespace": agent_namespace,
            "labels": {names.MANAGED_BY_LABEL: names.ADDON},
            **({"annotations": annotations} if annotations else {}),
        },
        data={key: secret.data[key] for key in keys},
    )


def _work(cluster: str, manifests: list[Object], observed: Object | None) -> dict[str, Any]:
    version = observed["metadata"].get("resourceVersion") if observed else None
    return MANIFEST_WORK.object(
        metadata={
            "name": names.SECRETS_MANIFEST_WORK,
            "namespace": cluster,
            "labels": {names.MANAGED_BY_LABEL: names.ADDON},
            **({"resourceVersion": version} if version else {}),
        },
        spec={"workload": {"manifests": manifests}},
    )
