"""The generated objects of a namespace: what a decision changes of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dsf.api.optimization import Optimization, generating_optimization
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.access_reviews import missing_right
from dsf.kube.changes import NOT_DATA, Change, ChangeResult, Create, Delete, Patch, diff
from dsf.kube.json_merge_patch import merged
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY, Kind
from dsf.kube.port import Object
from optimizer.snapshot.object_readers import generated_by, labels_of, name_of, placement_of
from optimizer.snapshot.observation import KeptObjects, Observation
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import ProblemKind, RequestProblem
from optimizer.wire.result import Action, FailedChange, PlannedChange

_ACTIONS: Mapping[type[Change], Action] = {Create: "create", Patch: "patch", Delete: "delete"}


def changes(
    desired: Iterable[Object],
    observation: Observation,
    optimization: str | None,
    kept: KeptObjects = frozenset(),
) -> tuple[Change, ...]:
    """Return the changes that make the objects of an optimization equal to the desired ones.

    With None as optimization, all generated objects of the namespace are its own. What is `kept`
    is not deleted.

    Equal objects have no change. Deletes come first, bindings before Placements, so that no cluster
    is ever bound to two policies. A binding is created after its Placement and its generated
    policy. A generated policy that a desired binding, or one of somebody else, names is not
    deleted. A Placement to which a ManifestWorkReplicaSet refers selects nothing instead of being
    deleted: OCM leaves the ManifestWorks of a Placement that is missing as they are.
    """
    objects = list(desired)
    objects += _stopped(objects, observation, optimization, kept)
    own = generated_by(observation.bindings, optimization)
    own_names = {name_of(obj) for obj in own}
    staying = [
        obj
        for obj in observation.bindings
        if name_of(obj) not in own_names or (PLACEMENT_BINDING, name_of(obj)) in kept
    ]
    named = {item["name"] for obj in (*objects, *staying) for item in obj.get("subjects") or ()}
    made = {name_of(obj) for obj in objects if obj["kind"] == POLICY.kind}
    unneeded = [obj for obj in observation.policies if name_of(obj) not in named - made]
    policies = _diff(POLICY, objects, generated_by(unneeded, optimization))
    placements = [
        *_diff(PLACEMENT, objects, generated_by(observation.placements, optimization)),
        *_left_by_others(objects, observation, optimization),
    ]
    bindings = _diff(PLACEMENT_BINDING, objects, own)
    every = (*policies, *placements, *bindings)
    deletes = [
        change
        for change in reversed(every)
        if isinstance(change, Delete) and (change.kind, change.name) not in kept
    ]
    return (*deletes, *(change for change in every if not isinstance(change, Delete)))


def selecting_nothing(placement: Object) -> Object:
    """Return a Placement that selects no cluster, so that OCM removes what runs by it."""
    spec = {**placement["spec"], "numberOfClusters": 0, "predicates": []}
    return {**placement, "spec": spec}


def selects_nothing(change: Change) -> bool:
    """Return whether a change lets a Placement select no cluster any more, or none at first."""
    if change.kind != PLACEMENT or isinstance(change, Delete):
        return False
    return selects_no_cluster(change.body if isinstance(change, Patch) else change.obj)


def selects_no_cluster(placement: Object) -> bool:
    """Return whether a Placement, or a patch of one, selects no cluster."""
    return (placement.get("spec") or {}).get("numberOfClusters") == 0


def taken_names(
    desired: Iterable[Object], observation: Observation, optimization: str
) -> dict[str, str | None]:
    """Return the desired objects that others have already, each with its optimization.

    That is None for an object that was not generated. A Placement that another optimization stopped
    is free to be taken.
    """
    taken = {
        (kind.kind, name_of(obj)): generating_optimization(labels_of(obj))
        for kind, objects in (
            (PLACEMENT, observation.placements),
            (PLACEMENT_BINDING, observation.bindings),
            (POLICY, observation.policies),
        )
        for obj in objects
        if generating_optimization(labels_of(obj)) != optimization and not _is_stopped(obj)
    }
    names = sorted((obj["kind"], name_of(obj)) for obj in desired)
    return {f"{kind} {name}": taken[kind, name] for kind, name in names if (kind, name) in taken}


def overwriting(
    desired: Iterable[Object], observation: Observation, request: OptimizeRequest
) -> RequestProblem | None:
    """Return a refusal if the plan would overwrite objects of others."""
    taken = taken_names(desired, observation, request.optimization)
    by_hand = [text for text, owner in taken.items() if owner is None]
    if by_hand:
        return ProblemKind.NOT_GENERATED.because(
            f"{', '.join(by_hand)} in namespace {request.namespace} would be overwritten;"
            " delete it, or refer to another Placement"
        )
    if not taken:
        return None
    name = UntrustedName(next(filter(None, taken.values())))
    owned = ", ".join(
        f"{text} of {Optimization(request.namespace, owner)}"
        for text, owner in taken.items()
        if owner is not None
    )
    return ProblemKind.OTHER_OPTIMIZATION.because(
        f"{owned} would be overwritten by {request.owner}; a workload belongs to one"
        f' optimization: name that one, as `"optimization": "{name}"` of the request, or take it'
        " out of the request; a reset of that one would delete all that it generated"
    )


def after_changes(observation: Observation, made: Iterable[Change]) -> Observation:
    """Return an observation with the Placements and PlacementBindings as changes leave them."""
    every = list(made)
    return replace(
        observation,
        placements=_after(PLACEMENT, observation.placements, every),
        bindings=_after(PLACEMENT_BINDING, observation.bindings, every),
    )


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
        FailedChange(
            **describe(outcome.change).model_dump(),
            message=str(outcome.error),
            missing_right=str(missing_right(outcome.error) or ""),
        )
        for outcome in outcomes
        if outcome.error is not None
    )


def successes(outcomes: Iterable[ChangeResult]) -> tuple[PlannedChange, ...]:
    """Return the changes that were made."""
    return tuple(describe(outcome.change) for outcome in outcomes if outcome.error is None)


def _diff(kind: Kind, desired: Iterable[Object], observed: Iterable[Object]) -> list[Change]:
    """Return the changes of one kind.

    Fields beside the `spec` that no generated object has are removed, such as the overrides of a
    PlacementBinding.
    """
    seen = {name_of(obj): obj for obj in observed}
    own = [obj for obj in desired if obj["kind"] == kind.kind]
    whole = [{**_absent_fields(seen.get(name_of(obj), {})), **obj} for obj in own]
    return diff(kind, whole, seen.values())


def _absent_fields(observed: Object) -> Object:
    return dict.fromkeys(field for field in observed if field not in NOT_DATA)


def _after(kind: Kind, objects: Iterable[Object], made: Iterable[Change]) -> tuple[Object, ...]:
    found = {name_of(obj): obj for obj in objects}
    for change in made:
        if change.kind != kind:
            continue
        match change:
            case Create():
                found[change.name] = change.obj
            case Patch():
                found[change.name] = merged(found[change.name], change.body)
            case Delete():
                found.pop(change.name)
    return tuple(found.values())


def _stopped(
    desired: Iterable[Object], observation: Observation, optimization: str | None, kept: KeptObjects
) -> Iterator[Object]:
    """Yield the generated Placements of workloads that are not desired, as they stop these."""
    names = {name_of(obj) for obj in desired if obj["kind"] == PLACEMENT.kind}
    referred = {placement_of(obj) for obj in observation.workloads}
    for obj in generated_by(observation.placements, optimization):
        name = name_of(obj)
        if name in referred and name not in names and (PLACEMENT, name) not in kept:
            metadata = {key: obj["metadata"][key] for key in ("name", "namespace", "labels")}
            yield selecting_nothing(PLACEMENT.object(metadata=metadata, spec=obj["spec"]))


def _left_by_others(
    desired: Iterable[Object], observation: Observation, optimization: str | None
) -> Iterator[Change]:
    """Yield the deletion of each desired Placement that another optimization stopped."""
    names = {name_of(obj) for obj in desired if obj["kind"] == PLACEMENT.kind}
    for obj in observation.placements if optimization is not None else ():
        if _is_stopped(obj) and name_of(obj) in names:
            metadata = obj["metadata"]
            if generating_optimization(labels_of(obj)) != optimization:
                yield Delete(PLACEMENT, name_of(obj), metadata["namespace"], metadata.get("uid"))


def _is_stopped(obj: Object) -> bool:
    """Return whether an object is a generated Placement that selects nothing."""
    stopped = obj.get("kind", PLACEMENT.kind) == PLACEMENT.kind and selects_no_cluster(obj)
    return stopped and generating_optimization(labels_of(obj)) is not None
