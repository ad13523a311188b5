"""Owner references: the graph of dependents, and the decision to keep or collect an object.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from dsf.kube.port import Object, Propagation
from dsf.kube.schema.object_metadata import FOREGROUND, ORPHAN, is_deleting

OwnerState = Literal["solid", "dangling", "waiting", "unresolvable"]
ObjectKey = tuple[str, str]
"""A qualified resource and the key of one of its objects."""


@dataclass(slots=True)
class OwnerGraph:
    """The keys of objects by uid, and the keys of the dependents of each uid."""

    places: dict[str, ObjectKey] = field(default_factory=dict)
    dependents: dict[str, dict[ObjectKey, None]] = field(default_factory=dict)

    def copy(self) -> "OwnerGraph":
        """Return an independent copy."""
        return OwnerGraph(dict(self.places), {uid: dict(of) for uid, of in self.dependents.items()})

    def record(self, place: ObjectKey, before: Object | None, after: Object | None) -> None:
        """Update the graph for one write."""
        if before:
            self.places.pop(before["metadata"]["uid"], None)
            for uid in owner_uids(before):
                self.dependents.get(uid, {}).pop(place, None)
        if after:
            self.places[after["metadata"]["uid"]] = place
            for uid in owner_uids(after):
                self.dependents.setdefault(uid, {})[place] = None

    def dependents_of(self, obj: Object) -> list[ObjectKey]:
        """Return the objects that name this one as their owner."""
        return list(self.dependents.get(obj["metadata"]["uid"], ()))


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep the object; drop its references to these owners."""

    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Collect:
    """Delete the object."""

    propagation: Propagation


def decide(
    obj: Object, owners: Iterable[tuple[str, OwnerState]], *, has_dependents: bool
) -> Keep | Collect:
    """Return whether to keep or collect an object, given its owners as (uid, state)."""
    states = list(owners)
    if not states or is_deleting(obj) or any(state == "unresolvable" for _, state in states):
        return Keep()
    if any(state == "solid" for _, state in states):
        return Keep(frozenset(uid for uid, state in states if state != "solid"))
    if has_dependents and any(state == "waiting" for _, state in states):
        return Collect("Foreground")
    return Collect(_own_propagation(obj))


def waits_for(obj: Object, finalizer: str) -> bool:
    """Return whether an object is being deleted and has the finalizer."""
    return is_deleting(obj) and finalizer in obj["metadata"].get("finalizers", ())


def blocks(dependent: Object, owner: Object) -> bool:
    """Return whether a dependent blocks the foreground deletion of its owner."""
    uid = owner["metadata"]["uid"]
    return any(
        reference.get("uid") == uid and reference.get("blockOwnerDeletion")
        for reference in dependent["metadata"].get("ownerReferences", ())
    )


def owner_uids(obj: Object) -> list[str]:
    """Return the uids of an object's owners."""
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences", ())]


def finalizers_for(obj: Object, propagation: Propagation | None) -> list[str]:
    """Return the finalizers of an object after a delete with that propagation policy."""
    present = obj["metadata"].get("finalizers", [])
    if propagation is None:
        return list(present)
    others = [name for name in present if name not in {ORPHAN, FOREGROUND}]
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND], "Background": []}[propagation]
    return [*others, *added]


def without(obj: Object, finalizer: str) -> Object:
    """Return an object without a finalizer."""
    kept = [name for name in obj["metadata"].get("finalizers", ()) if name != finalizer]
    meta = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
    return {**obj, "metadata": {**meta, **({"finalizers": kept} if kept else {})}}


def without_owners(obj: Object, uids: frozenset[str]) -> Object:
    """Return an object without references to some owners."""
    owners = obj["metadata"].get("ownerReferences", ())
    kept = [owner for owner in owners if owner["uid"] not in uids]
    meta = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    return {**obj, "metadata": {**meta, **({"ownerReferences": kept} if kept else {})}}


def _own_propagation(obj: Object) -> Propagation:
    finalizers = obj["metadata"].get("finalizers", ())
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
