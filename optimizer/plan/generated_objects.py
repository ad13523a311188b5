"""The generated objects of a namespace: what a decision changes of them, what a reset deletes."""

from collections.abc import Iterable, Mapping

from dsf.kube.changes import Change, ChangeResult, Create, Delete, Patch, diff
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY, Kind
from dsf.kube.port import Object
from optimizer.snapshot.object_readers import is_generated, name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.result import Action, FailedChange, PlannedChange

_ACTIONS: Mapping[type[Change], Action] = {Create: "create", Patch: "patch", Delete: "delete"}


def changes(desired: Iterable[Object], observation: Observation) -> tuple[Change, ...]:
    """Return the changes that make the generated objects equal to the desired ones.

    Equal objects have no change. Deletes come first, bindings before Placements, so that no cluster
    is ever bound to two policies. A binding is created after its Placement and its generated
    policy. A generated policy that a desired binding names is not deleted.
    """
    objects = list(desired)
    named = {subject["name"] for obj in objects for subject in obj.get("subjects", ())}
    made = {name_of(obj) for obj in objects if obj["kind"] == POLICY.kind}
    unneeded = [obj for obj in observation.policies if name_of(obj) not in named - made]
    policies = _diff(POLICY, objects, unneeded)
    placements = _diff(PLACEMENT, objects, observation.placements)
    bindings = _diff(PLACEMENT_BINDING, objects, observation.bindings)
    every = (*policies, *placements, *bindings)
    deletes = [change for change in reversed(every) if isinstance(change, Delete)]
    others = [change for change in every if not isinstance(change, Delete)]
    return (*deletes, *others)


def reset_changes(observation: Observation) -> tuple[Change, ...]:
    """Return what a reset deletes: every generated object, and nothing else."""
    return changes((), observation)


def not_generated(desired: Iterable[Object], observation: Observation) -> tuple[str, ...]:
    """Return the desired objects whose names belong to objects that were not generated."""
    foreign = {
        (kind.kind, name_of(obj))
        for kind, objects in (
            (PLACEMENT, observation.placements),
            (PLACEMENT_BINDING, observation.bindings),
            (POLICY, observation.policies),
        )
        for obj in objects
        if not is_generated(obj)
    }
    names = sorted((obj["kind"], name_of(obj)) for obj in desired)
    return tuple(f"{kind} {name}" for kind, name in names if (kind, name) in foreign)


def describe(change: Change) -> PlannedChange:
    """Return a change as a value that can be shown."""
    return PlannedChange(
        action=_ACTIONS[type(change)],
        kind=change.kind.kind,
        namespace=change.namespace or "",
        name=change.name,
    )


def failures(outcomes: Iterable[ChangeResult]) -> tuple[FailedChange, ...]:
    """Return the changes that the API server refused."""
    return tuple(
        FailedChange(**describe(outcome.change).model_dump(), message=str(outcome.error))
        for outcome in outcomes
        if outcome.error is not None
    )


def successes(outcomes: Iterable[ChangeResult]) -> tuple[PlannedChange, ...]:
    """Return the changes that were made."""
    return tuple(describe(outcome.change) for outcome in outcomes if outcome.error is None)


def _diff(kind: Kind, desired: Iterable[Object], observed: Iterable[Object]) -> list[Change]:
    return diff(
        kind,
        [obj for obj in desired if obj["kind"] == kind.kind],
        [obj for obj in observed if is_generated(obj)],
    )
