"""Simulated work agent: applies the manifests of a ManifestWork to its managed cluster.

Of a work with Pods it keeps an AppliedManifestWork there, as OCM's own agent does of each.

Source: https://open-cluster-management.io/docs/concepts/work-distribution/manifestwork/
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dsf.api.conditions import Condition, merged
from dsf.kube.changes import Change, Delete, Patch
from dsf.kube.kinds import APPLIED_MANIFEST_WORK, MANIFEST_WORK, POD
from dsf.kube.port import Object
from dsf.sim.controllers.musthave import Observed, Reference, ensure, reference_of, set_status

FINALIZER = "cluster.open-cluster-management.io/manifest-work-cleanup"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The changes of one ManifestWork: on its managed cluster first, then on the hub."""

    on_cluster: tuple[Change, ...] = ()
    on_hub: tuple[Change, ...] = ()


def references(work: Object) -> list[Reference]:
    """Return the objects of a work on its managed cluster, without unknown kinds."""
    return [reference for reference, _ in (*_manifests(work), *_applied_work(work))]


def deliver(work: Object, observed: Observed, *, now: str) -> Delivery:
    """Return the changes of one ManifestWork; `observed` is the cluster's object by reference."""
    if work["metadata"].get("deletionTimestamp"):
        return _remove(work, observed)
    if FINALIZER not in (work["metadata"].get("finalizers") or []):
        return Delivery(on_hub=(_finalizers(work, [FINALIZER]),))
    changes = tuple(
        change
        for reference, manifest in (*_manifests(work), *_applied_work(work))
        for change in ensure(reference, manifest, observed)
    )
    changes = changes or tuple(_applied_resources(work, observed))
    return Delivery(on_cluster=changes, on_hub=_report(work, settled=not changes, now=now))


def _applied_work(work: Object) -> Iterator[tuple[Reference, Object]]:
    if not any(kind is POD for (kind, _, _), _ in _manifests(work)):
        return
    name = work["metadata"]["name"]
    manifest = APPLIED_MANIFEST_WORK.object(
        metadata={"name": f"hub-{name}"}, spec={"hubHash": "hub", "manifestWorkName": name}
    )
    yield (APPLIED_MANIFEST_WORK, None, f"hub-{name}"), manifest


def _applied_resources(work: Object, observed: Observed) -> Iterator[Change]:
    """Yield the write that tells what was applied, once all of it is there."""
    resources = [
        {
            "group": kind.group,
            "version": kind.version,
            "resource": kind.plural,
            "namespace": namespace or "",
            "name": name,
            "uid": obj["metadata"]["uid"],
        }
        for (kind, namespace, name), _ in _manifests(work)
        if (obj := observed.get((kind, namespace, name)))
    ]
    for reference, _ in _applied_work(work):
        if own := observed.get(reference):
            yield from set_status(APPLIED_MANIFEST_WORK, own, {"appliedResources": resources})


def _remove(work: Object, observed: Observed) -> Delivery:
    if FINALIZER not in (work["metadata"].get("finalizers") or []):
        return Delivery()
    left = tuple(
        Delete(kind, name, namespace)
        for (kind, namespace, name) in references(work)
        if observed.get((kind, namespace, name)) is not None
        and not _orphaned(work, (kind, namespace, name))
    )
    return Delivery(on_cluster=left) if left else Delivery(on_hub=(_finalizers(work, []),))


def _orphaned(work: Object, reference: Reference) -> bool:
    option = work["spec"].get("deleteOption") or {}
    policy = option.get("propagationPolicy", "Foreground")
    if policy == "SelectivelyOrphan":
        rules = (option.get("selectivelyOrphans") or {}).get("orphaningRules") or []
        kind, namespace, name = reference
        return any(
            (rule.get("group", ""), rule.get("resource"), rule.get("name"))
            == (kind.group, kind.plural, name)
            and rule.get("namespace", "") == (namespace or "")
            for rule in rules
        )
    return bool(policy == "Orphan")


def _report(work: Object, *, settled: bool, now: str) -> tuple[Change, ...]:
    unknown = [
        f"{manifest.get('apiVersion')} {manifest.get('kind')}"
        for manifest in _raw(work)
        if reference_of(manifest) is None
    ]
    if unknown:
        message = f"not served: {unknown}"
        desired = [Condition("Applied", "False", "AppliedManifestWorkFailed", message)]
    elif settled:
        desired = [
            Condition("Applied", "True", "AppliedManifestWorkComplete"),
            Condition("Available", "True", "ResourcesAvailable"),
        ]
    else:
        return ()
    before = work.get("status", {}).get("conditions") or []
    conditions = merged(before, desired, now=now, generation=work["metadata"].get("generation"))
    return tuple(set_status(MANIFEST_WORK, work, {"conditions": conditions}))


def _finalizers(work: Object, finalizers: list[str]) -> Change:
    metadata = work["metadata"]
    body = {"metadata": {"finalizers": finalizers}}
    return Patch(MANIFEST_WORK, metadata["name"], metadata["namespace"], body)


def _manifests(work: Object) -> Iterator[tuple[Reference, Object]]:
    for manifest in _raw(work):
        if reference := reference_of(manifest):
            yield reference, manifest


def _raw(work: Object) -> list[Object]:
    manifests = (work["spec"].get("workload") or {}).get("manifests") or []
    return list(manifests)
