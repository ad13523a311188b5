"""The results of the tools that write: structured, and in a few lines of text.

Every text from the cluster is quoted, except names of Kubernetes objects.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from dsf.api.untrusted_text import (
    MESSAGE_LIMIT,
    UntrustedName,
    counted,
    joined,
    listed,
    quoted,
    quoted_name,
)
from mcp_server.results.tool_result import LIST_LIMIT, Omitted, bounded
from optimizer.follow.overview.constraints.constraint_fields import (
    ConstraintList,
    RememberedConstraint,
)
from optimizer.follow.rollout.text import rollout_headline
from optimizer.operations.recorded_plans import RepeatedPlan
from optimizer.plan.generated_objects import describe
from optimizer.plan.text.approval_questions import first_lines, whose
from optimizer.service.plan_writer import PlannedReset
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.placement_optimization import KeptList
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.result import (
    Applied,
    FailedChange,
    ObjectRef,
    PlannedChange,
    ResetResult,
    WorkloadClusters,
)
from optimizer.wire.rollout import UncoveredOthers

_NAMED = 12
"""Objects and workloads that a question about a reset names."""


class AppliedView(ResultPart):
    """The changes of a plan that were applied, and those that failed."""

    digest: str
    record: Annotated[Name, Field(description="The PlacementPlan that records the plan.")] = ""
    repeated: Annotated[
        bool, Field(description="True: it was applied before, and nothing was written now.")
    ] = False
    steps: Annotated[int, Field(description="Of its rollout, which writes them one by one.")] = 0
    rollout: Annotated[Sentence, Field(description="How far it is, of a repeat.")] = ""
    applied: tuple[PlannedChange, ...]
    failed: tuple[FailedChange, ...]
    omitted: Omitted = Field(default_factory=dict)


class ConstraintsView(ResultPart):
    """What is remembered, and the commands that would have written the same."""

    items: tuple[RememberedConstraint, ...]
    commands: tuple[Sentence, ...]
    omitted: Omitted = Field(default_factory=dict)


class ResetView(ResultPart):
    """What a reset would delete, or what it deleted and could not delete."""

    namespace: str
    digest: Annotated[str, Field(description="Of what goes. Nothing is deleted without it.")] = ""
    goes: Annotated[tuple[ObjectRef, ...], Field(description="Not deleted yet.")] = ()
    empties: Annotated[
        tuple[ObjectRef, ...], Field(description="Placements that will select nothing.")
    ] = ()
    deleted: tuple[ObjectRef, ...] = ()
    failed: tuple[FailedChange, ...] = ()
    running: Annotated[
        tuple[WorkloadClusters, ...], Field(description="What goes on running without a Placement.")
    ] = ()
    stopping: Annotated[tuple[WorkloadClusters, ...], Field(description="What OCM stops now.")] = ()
    uncovers_others: Annotated[
        tuple[UncoveredOthers, ...], Field(description="Workloads of others that are uncovered.")
    ] = ()
    omitted: Omitted = Field(default_factory=dict)


def applied_view(applied: Applied) -> AppliedView:
    """Return the result of an applied plan for a model."""
    return bounded(AppliedView(**dict(applied)))


def repeated_view(repeated: RepeatedPlan) -> AppliedView:
    """Return the result of a plan that was applied before, and how far its rollout is."""
    rollout = rollout_headline(repeated.rollout) if repeated.rollout else ""
    return applied_view(repeated.applied).model_copy(update={"repeated": True, "rollout": rollout})


def reset_view(namespace: str, result: ResetResult) -> ResetView:
    """Return the result of a reset for a model."""
    return bounded(ResetView(namespace=namespace, **dict(result)))


def planned_reset_view(planned: PlannedReset) -> ResetView:
    """Return all that a reset would delete, empty and stop."""
    writes, outcome = tuple(map(describe, planned.writes)), planned.outcome
    return ResetView(
        namespace=planned.namespace,
        digest=planned.digest,
        goes=tuple(ObjectRef(**dict(i)) for i in writes if i.action == "delete"),
        empties=tuple(ObjectRef(**dict(i)) for i in writes if i.action != "delete"),
        running=outcome.running,
        stopping=outcome.stopping,
        uncovers_others=outcome.uncovers_others,
    )


def applied_text(view: AppliedView) -> str:
    """Return how many changes were written, and which failed."""
    done = len(view.applied) + view.omitted.get("applied", 0)
    named = f"PlacementPlan {UntrustedName(view.record)}"
    if view.rollout:
        return (
            "This plan was applied before; nothing was written now."
            f" {quoted(view.rollout, MESSAGE_LIMIT)}. Next: follow_rollout."
        )
    if view.steps:
        return (
            f"The rollout of {named} writes its {counted(view.steps, 'step')} one by one."
            " Next: follow_rollout."
        )
    if view.repeated:
        return (
            f"This plan was applied before, and is in force as {named} with its"
            f" {counted(done, 'change')}; nothing was written now. Next: follow_rollout."
        )
    if not done and not view.failed:
        return "Nothing was to be written: the hub is as the plan wants it. Next: follow_rollout."
    head = f"Applied {counted(done, 'change')}. Next: follow_rollout."
    return "\n".join([head, *_failures(view.failed, view.omitted)])


def may_move_back(keepers: Sequence[str]) -> str:
    """Return a line that keepers may undo a plan, and how it lasts; empty without keepers."""
    names = listed(keepers, _NAMED)
    return names and (
        f"\nPlacementOptimization {names} plans again at its next look, and may move this back:"
        " keep_constraints keeps a pin, or a drain, for its plans too; all of it lasts while the"
        " PlacementOptimization is suspended."
    )


def _places_again(keepers: Sequence[str]) -> Iterator[str]:
    """Yield that PlacementOptimizations which apply plans by themselves undo a reset."""
    if keepers:
        yield (
            f"PlacementOptimization {listed(keepers, _NAMED)} places again at its next look, unless"
            " it is suspended or deleted first."
        )


def reset_text(view: ResetView, keepers: Sequence[str] = ()) -> str:
    """Return which objects were deleted, which could not be, and what keepers do then."""
    done = len(view.deleted) + view.omitted.get("deleted", 0)
    head = (
        f"Deleted {counted(done, 'generated object')} of namespace {UntrustedName(view.namespace)}."
    )
    names = joined(map(_ref, view.deleted), LIST_LIMIT, of=done)
    lines = [head, *([names] if names else []), *_effects(view, UntrustedName)]
    lines += _places_again(keepers)
    return "\n".join([*lines, *_failures(view.failed, view.omitted)])


def _effects(view: ResetView, shown: Callable[[str], str], most: int = _NAMED) -> Iterator[str]:
    """Yield what a reset does to what runs."""

    def places(name: str) -> str:
        found: Sequence[WorkloadClusters] = getattr(view, name)
        named = (f"{shown(i.workload)} on {joined(map(shown, i.clusters), _NAMED)}" for i in found)
        return joined(named, most, separator="; ", of=_number(view, name))

    if view.running:
        yield (
            f"These go on running: {places('running')};"
            " seldom OCM stops one even so. A reset with stop_workloads stops them all."
        )
    if view.stopping:
        yield f"OCM stops: {places('stopping')}."
    others = (
        f"Others: {counted(item.count, 'workload')} on {shown(item.cluster)} lose the claim,"
        " because its last policy goes."
        for item in view.uncovers_others
    )
    yield from first_lines(others, most, what=" clusters with workloads of others")


def planned_reset_text(
    page: ResetView,
    whole: ResetView,
    status: PlacementStatus,
    planned: PlannedReset,
    keepers: Sequence[str] = (),
) -> str:
    """Return what a reset would stop, delete and empty, names of that on a page, how to go on."""
    optimization, left_empty, view = planned.optimization, planned.left_empty, whole
    where = f"namespace {UntrustedName(view.namespace)}"
    if not view.goes and not view.empties:
        if not left_empty:
            whose = f" for optimization {UntrustedName(optimization)}" if optimization else ""
            return f"Nothing is generated{whose} in {where}."
        left = counted(left_empty, "generated Placement")
        return (
            f"Nothing is left to stop in {where}. It has {left} without clusters: a reset without"
            " stop_workloads deletes what is generated."
        )
    then = "show them to the user, then call reset_placements with digest"
    return "\n".join(
        [
            f"Nothing was written. A reset {_amounts(view, 's')}.",
            *_reset_lines(page, status, UntrustedName, LIST_LIMIT),
            *_places_again(keepers),
            f"To do exactly this, {then} {UntrustedName(view.digest)}",
        ]
    )


def reset_question(
    hub: str, planned: PlannedReset, status: PlacementStatus, keepers: Sequence[str] = ()
) -> str:
    """Return the question that a user answers before a reset; it begins with how much stops."""
    view, where = planned_reset_view(planned), whose(hub, planned.namespace, planned.optimization)
    head = f"{_amounts(view).capitalize()} on {where}?"
    lines = _reset_lines(view, status, quoted_name, _NAMED)
    again = _places_again(keepers)
    return "\n".join([head, *lines, *again, f"Digest: {planned.digest}"])


def _reset_lines(
    view: ResetView, status: PlacementStatus, shown: Callable[[str], str], most: int
) -> Iterator[str]:
    """Yield what a reset would do; `most`: objects that it names."""
    for what, name in (("deletes", "goes"), ("keeps without clusters", "empties")):
        objects = (_ref(item, shown) for item in getattr(view, name))
        if names := joined(objects, most, of=_number(view, name)):
            yield f"It {what}: {names}."
    yield from _loses(status, shown)
    yield from _effects(view, shown, most)


def _amounts(view: ResetView, ending: str = "") -> str:
    """Return how much a reset stops, deletes and empties; `ending`: that of the verbs."""
    stops, empties = _number(view, "stopping"), _number(view, "empties")
    parts = [
        f"stop{ending} {counted(stops, 'workload') if stops else 'nothing'}",
        f"delete{ending} {counted(_number(view, 'goes'), 'generated object')}",
    ]
    if empties:
        emptied = "empties" if ending else "empty"
        parts.append(f"{emptied} {counted(empties, 'Placement')}")
    return f"{', '.join(str(part) for part in parts[:-1])} and {parts[-1]}"


def _number(view: ResetView, name: str) -> int:
    """Return how many items a list of a view has, with those that are left out."""
    return len(getattr(view, name)) + view.omitted.get(name, 0)


def _loses(status: PlacementStatus, shown: Callable[[str], str]) -> Iterator[str]:
    """Yield what a reset takes away: enforced policies, and the Placements of workloads."""
    clusters = dict.fromkeys(shown(item.cluster) for item in status.policies)
    policies = counted(len(status.policies), "policy", "policies")
    if clusters:
        yield f"No longer enforced: {policies} on {joined(clusters, _NAMED)}."
    placed = [f"{shown(item.workload)} on {shown(item.cluster)}" for item in status.workloads]
    if placed:
        yield f"No plan places any more: {joined(placed, _NAMED)}."


def _failures(failed: Sequence[FailedChange], omitted: Mapping[str, int]) -> list[str]:
    lines = [f"Failed: {item.action} {_ref(item)}: {quoted(item.message)}" for item in failed]
    every = len(failed) + omitted.get("failed", 0)
    return first_lines(lines, LIST_LIMIT, of=every, what=" failures")


def _ref(ref: ObjectRef, shown: Callable[[str], str] = UntrustedName) -> str:
    kind = ref.kind if ref.kind.isalnum() else quoted(ref.kind)
    return f"{kind} {shown(ref.namespace)}/{shown(ref.name)}"


def constraints_view(told: ConstraintList) -> ConstraintsView:
    """Return constraints for a model."""
    return bounded(ConstraintsView(items=told.items, commands=told.commands))


def constraints_text(view: ConstraintsView, kept: KeptList | None) -> str:
    """Return what was written and what moves then, then a line for each constraint.

    `kept`: what is kept placed in the namespace; None: the caller may not see it.
    """
    done = "Written" if view.commands else "Nothing had to be written"
    head = f"{done}. Each plan keeps what is listed. {_moves_by_itself(kept)}"
    count = len(view.items) + view.omitted.get("items", 0)
    lines = (f"{quoted(item.message, MESSAGE_LIMIT)} [{item.constraint}]" for item in view.items)
    shown = first_lines(lines, _NAMED, of=count, what=" constraints: fleet_overview lists all")
    return "\n".join([head, *(shown or ["No constraint is kept."])])


def _moves_by_itself(kept: KeptList | None) -> str:
    if kept is None:
        return "What a PlacementOptimization keeps placed moves by itself; else plan_placement."
    by_mode = {
        mode: listed([item.name for item in kept.items if item.mode == mode], _NAMED)
        for mode in ("Apply", "Approve")
    }
    says = [f"{by_mode['Apply']} moves what it keeps placed"] if by_mode["Apply"] else []
    says += [f"{by_mode['Approve']} waits for an approval first"] if by_mode["Approve"] else []
    if not says:
        return (
            "Nothing moves by itself, also when a drain begins: no PlacementOptimization applies"
            " plans here. Next: plan_placement."
        )
    return (
        f"Also when a drain begins, PlacementOptimization {'; '.join(says)}. What nobody keeps"
        " placed moves with the next plan: plan_placement."
    )


def constraints_question(told: ConstraintList, hub: str) -> str:
    """Return the question that a user answers before constraints are written."""
    head = f"Annotate workloads and clusters of {whose(hub, told.namespace, '')}?"
    return "\n".join([head, *first_lines(told.commands, _NAMED, what=" commands")])
