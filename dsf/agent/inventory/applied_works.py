"""Whose a Pod is: the ManifestWork whose objects OCM's work agent applied here.

Source: AppliedManifestWork of `work.open-cluster-management.io/v1`. It names what was applied by
uid, which Pods name as their controller.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dsf.agent.inventory.pod_use import NamedOwner, PodOwner
from dsf.kube.port import Object

_OF_CORE = {"pods", "replicationcontrollers"}
_BY_NAME = {"deployments.apps", "cronjobs.batch", "jobsets.jobset.x-k8s.io"}


class AppliedWork(NamedTuple):
    """The name of a ManifestWork, and what of it may own Pods."""

    name: str
    owners: frozenset[str | NamedOwner]


def read_work(obj: Object) -> AppliedWork:
    """Return what the inventory keeps of an AppliedManifestWork."""
    return AppliedWork(
        str((obj.get("spec") or {}).get("manifestWorkName") or ""),
        frozenset(_owners((obj.get("status") or {}).get("appliedResources") or ())),
    )


def _owners(applied: Iterable[Mapping[str, object]]) -> Iterable[str | NamedOwner]:
    for one in applied:
        group, plural = str(one.get("group") or ""), str(one.get("resource") or "")
        if not group and plural not in _OF_CORE:
            continue
        if uid := str(one.get("uid") or ""):
            yield uid
        if (resource := f"{plural}.{group}") in _BY_NAME:
            yield str(one.get("namespace") or ""), resource, str(one.get("name") or "")


class WorkIndex:
    """Finds the ManifestWork of a Pod's owner."""

    def __init__(self, works: Iterable[AppliedWork] = ()) -> None:
        self._by_owner = {owner: work.name for work in works for owner in work.owners}

    def work(self, owner: PodOwner) -> str:
        """Return the name of the ManifestWork; empty if it is none's."""
        found = self._by_owner.get(owner.uid, "")
        return found or (self._by_owner.get(owner.named, "") if owner.named else "")
