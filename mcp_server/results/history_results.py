"""The results of the tool about recorded plans: structured, and in a few lines of text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from dsf.api.crd.placement_plan import PlanPhase
from dsf.api.names import DEFAULT_OPTIMIZATION
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import (
    MESSAGE_LIMIT,
    UntrustedName,
    counted,
    joined,
    listed,
    plain,
    quoted,
)
from dsf.kube.changes import Delete, Patch
from dsf.kube.port import Object
from mcp_server.results.object_yaml import YAML_CHARACTERS, objects_yaml
from mcp_server.results.tool_result import Omitted, bare_name, bounded
from optimizer.domain.arrays import members_by_key
from optimizer.domain.issue import Issue
from optimizer.follow.record.plan_annotations import PLAN_ANNOTATIONS
from optimizer.follow.record.plan_history import meant_optimization
from optimizer.follow.record.plan_views import DIGEST_SHOWN, unknown_plan
from optimizer.operations.access.shown_plans import SHORTEST_DIGEST
from optimizer.operations.fleet import SHOWN_KINDS
from optimizer.plan.generated_objects import describe
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import (
    inversions,
    move_sentence,
    possible_gain,
    worst_first,
)
from optimizer.wire.base import Name, ResultPart
from optimizer.wire.plan_record import PlanRecord, PlanSummary
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import ProblemKind, RequestProblem, dry_request
from optimizer.wire.result import ObjectRef, PlannedChange, Unplaced, WorkloadMove

HISTORY_SHOWN = 10
"""Items of each list on one page."""


class PastPlan(ResultPart):
    """A plan that was applied."""

    revision: int
    digest: Name
    phase: PlanPhase
    intact: Annotated[
        bool, Field(description="False: edited, or not the optimizer's; the rest is not known.")
    ] = True
    requested_by: Name = ""
    created: datetime | None
    objective: float
    gap: float | None = None


class HistoryView(ResultPart):
    """The plans of an optimization, and what one of them changed; or objects that were shown."""

    plans: tuple[PastPlan, ...] = ()
    revision: int = 0
    objective: dict[Name, float] = Field(default_factory=dict, description="Weight by score.")
    moved: Annotated[
        tuple[WorkloadMove, ...] | None,
        Field(description="Against the plan before; null: it is not known."),
    ] = ()
    unplaced: tuple[Unplaced, ...] = ()
    issues: Annotated[
        tuple[Issue, ...], Field(description="What could not be used, of a plan not applied.")
    ] = ()
    changes: Annotated[
        tuple[PlannedChange, ...], Field(description="Objects that it writes and deletes.")
    ] = ()
    objects: tuple[ObjectRef, ...] = ()
    omitted: Omitted = Field(default_factory=dict)


def meant_plan(
    said: str,
    namespace: str,
    optimization: str | None,
    plans: Sequence[PlanSummary],
    elsewhere: Iterable[str] = (),
) -> PlanSummary | RequestProblem:
    """Return the plan that is meant: by a revision of the optimization, or by a digest of any.

    The first characters of a digest are enough. An empty text means the plan in force, or without
    one the newest. No
    optimization means `default` if that has plans, or else the only one that has. `elsewhere`: the
    namespaces with workloads, which a refusal names if this one has no plan.
    """
    if optimization is None:
        intact = [item for item in plans if item.intact] or plans
        meant = meant_optimization(namespace, {plain(item.optimization) for item in intact})
        if isinstance(meant, RequestProblem):
            return meant
        optimization = meant
    own = [item for item in plans if item.optimization == optimization]
    in_force = [item for item in own if item.phase == "Applied" and item.intact]
    found = [item for item in own if said == f"{item.revision}"] if said else in_force or own
    if not found and len(said) >= SHORTEST_DIGEST:
        found = [item for item in (*own, *plans) if item.digest.startswith(said.lower())]
    if not plans:
        others = listed((name for name in elsewhere if name != namespace), HISTORY_SHOWN)
        why = f"namespace {namespace} has no recorded plan"
        known = f"; other namespaces with workloads: {others}" if others else ""
        return ProblemKind.NO_EARLIER_PLAN.because(why + known)
    if not (found or said):
        others = listed({item.optimization: None for item in plans})
        return ProblemKind.UNKNOWN_PLAN.because(
            f"optimization {UntrustedName(optimization)} of namespace {namespace} has no recorded"
            f" plan; these have: {others}"
        )
    return found[0] if found else unknown_plan(said, namespace, own or plans)


def history_view(plans: Sequence[PlanSummary], record: PlanRecord) -> HistoryView:
    """Return the plans of the optimization of a recorded one, and what that one moved."""
    return HistoryView(
        plans=tuple(map(_past, _own(plans, record))),
        revision=record.revision,
        objective=_weights(dry_request(record.request)),
        moved=record.moved and tuple(worst_first(record.moved)),
        unplaced=record.unplaced,
        changes=record.changes,
    )


def not_applied_view(plan: Plan) -> HistoryView:
    """Return what a plan that is not applied would change."""
    return HistoryView(
        objective=_weights(plan.request),
        moved=tuple(worst_first(plan.moves)),
        unplaced=plan.unplaced,
        issues=plan.issues,
        changes=tuple(map(describe, plan.changes)),
    )


def not_applied_text(page: HistoryView, plan: Plan) -> str:
    """Return what is on a page of a plan that is not applied."""
    head = f"Plan {UntrustedName(plan.digest)} is not applied."
    return "\n".join([head, *_listed(page, failed=False)])


def planned_yaml(plan: Plan, offset: int = 0, most: int = YAML_CHARACTERS) -> str:
    """Return a page of the objects that a plan creates and changes, as they would be, as YAML."""
    objects, named = _written(plan), f"plan {UntrustedName(plan.digest[:DIGEST_SHOWN])}"
    deletes = (f"{i.kind.kind} {bare_name(i.name)}" for i in plan.changes if isinstance(i, Delete))
    deleted = joined(deletes, HISTORY_SHOWN)
    also = f"; it would delete {deleted}" if deleted else ""
    following = f"plan_history with objects plan, {named}, "
    shown = objects_yaml(objects, offset, most, following) if objects else "# none\n"
    added = f"# Applying it adds the annotations {listed(sorted(PLAN_ANNOTATIONS))} to each.\n"
    head = f"# Not applied; what {named} would write{also}:\n{added if objects else ''}"
    return head + shown


def _written(plan: Plan) -> list[Object]:
    """Return the objects that a plan creates and changes; of one that it stops, the change."""
    whole = {(obj["kind"], obj["metadata"]["name"]): obj for obj in plan.manifests}
    found = dict[tuple[str, str], Object]()
    for change in plan.changes:
        if not isinstance(change, Delete):
            key = change.kind.kind, change.name
            part = change.body if isinstance(change, Patch) else change.obj
            named = {"name": change.name, "namespace": change.namespace}
            metadata = {"metadata": named | part.get("metadata", {})}
            head = {"apiVersion": change.kind.api_version, "kind": change.kind.kind, **metadata}
            found[key] = whole.get(key) or head | part | metadata
    return list(found.values())


def history_text(
    page: HistoryView, plans: Sequence[PlanSummary], record: PlanRecord, offset: int = 0
) -> str:
    """Return what became of a plan, who asked for what, its proof then, and what it changed.

    Of its lists it returns what is on the page, whose first items are at `offset`.
    """
    if not record.intact:
        return (
            f"{_named(record)} is not as the optimizer wrote it: somebody edited the record, or"
            " made it. So who asked, for what, and what it changed is not known."
        )
    shown = _own(plans, record)[offset : offset + len(page.plans)]
    others = [f"{_named(item)}: {_what(item)}" for item in shown if item.name != record.name]
    lines = ["Other plans:", *others] if others else []
    made = _listed(page, failed=record.phase == "Failed")
    return "\n".join([*_told(record, page.objective), *made, *lines])


def _own(plans: Iterable[PlanSummary], record: PlanRecord) -> list[PlanSummary]:
    return [item for item in plans if item.optimization == record.optimization]


def objects_view(objects: Sequence[Object]) -> HistoryView:
    """Return the names of objects that are shown as YAML."""
    named = ((obj["kind"], obj["metadata"]) for obj in objects)
    refs = (
        ObjectRef(kind=kind, namespace=of.get("namespace") or "", name=of["name"])
        for kind, of in named
    )
    return bounded(HistoryView(objects=tuple(refs)), HISTORY_SHOWN)


def objects_text(objects: Sequence[Object], offset: int = 0) -> str:
    """Return a page of objects of the hub as YAML."""
    if objects:
        return objects_yaml(objects, offset)
    return (
        "No object that you may list has these words in its kind and name. Kinds:"
        f" {listed(kind.kind for kind in SHOWN_KINDS)}."
    )


def generated_objects(
    record: PlanRecord, there: Iterable[Object], offset: int = 0
) -> tuple[tuple[Object, ...], str]:
    """Return the objects that a plan generated, as the hub has them, and a page of their YAML.

    One that the hub has no more is shown as it was recorded. `there`: the objects of the hub.
    """
    if not (record.intact and record.objects):
        return (), f"{_named(record)} has no object of its own, or its record can't be trusted."
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in there}
    named = {(obj["kind"], obj["metadata"]["name"]): obj for obj in record.objects}
    shown = [found.get(key, obj) for key, obj in named.items()]
    left = [*named][offset:]
    gone = (f"{plain(key[0])} {bare_name(key[1])}" for key in left if key not in found)
    missing = joined(gone, HISTORY_SHOWN)
    more = f"; gone, or not yours to list, so as it was recorded: {missing}" if missing else ""
    head = f"# {_named(record)}, {record.phase}, as the hub has it{more}\n"
    return tuple(shown), head + objects_yaml(shown, offset)


def now_text(made: Plan | RequestProblem | None, then: float | None = 0.0) -> str:
    """Return whether the plan in force is proven best now, by a plan for the same made now.

    `then`: its gap when it was made.
    """
    if made is None:
        return "Now: not proven, because nobody planned again; ask with prove."
    if isinstance(made, RequestProblem):
        return f"Now: not proven. It can't be planned again: {quoted(made.detail, MESSAGE_LIMIT)}."
    solution = made.solution
    moved = [item for item in made.moves if item.action not in ("stays", "waits")]
    worth = f"worth {solution.objective_value:g} by the scores of now"
    if solution.status != "Optimal":
        said = "it is not proven best, nor that another one is better: no proof in the time limit"
    elif moved:
        return (
            f"Now: it is not the best{' any more' if then == 0 else ''}: a plan for the same,"
            f" {worth}, would change"
            f" {counted(len(moved), 'workload')}. Next: {_planning(made.request)} shows one."
        )
    else:
        said = f"it is {_proof(solution.gap)}: planned again for the same, nothing would move"
    return f"Now: {said}; {worth}."


def _planning(request: OptimizeRequest) -> str:
    """Return how to plan for the optimization of a request."""
    said = f"plan_placement with namespace {UntrustedName(request.namespace)}"
    if request.optimization == DEFAULT_OPTIMIZATION:
        return said
    return f"{said} and request.optimization {UntrustedName(request.optimization)}"


def _told(record: PlanRecord, objective: Mapping[str, float]) -> Iterator[str]:
    asked = ", ".join(f"{bare_name(name)} x {weight:g}" for name, weight in objective.items())
    yield f"{_named(record)}: {_what(record)}."
    if not record.request:
        yield "Its content can't be read, so for what it was made and what it changed is not known."
        return
    yield f"Objective: {asked}. Then: {_proof(record.gap)}, worth {record.objective:g}."
    request = dry_request(record.request)
    yield from () if isinstance(request, RequestProblem) else inversions(request)
    if record.moved is None:
        yield "What it moved is not known: the plan before it is not kept, or can't be read."
    elif not record.moved:
        yield "It moved nothing: the plan before had each workload there."


def _listed(page: HistoryView, *, failed: bool) -> Iterator[str]:
    """Yield the items of a page that are about its plan; of one that failed, what it was to do."""
    for move in page.moved or ():
        yield move_sentence(move, failed=failed)
    for left_out in page.unplaced:
        name = bare_name(left_out.workload)
        got = "was to get" if failed else "got"
        yield f"{name} {got} too few places: {quoted(left_out.message)}."
    for issue in page.issues:
        yield f"Issue: {UntrustedName(issue.reason)}: {quoted(issue.message)}"
    written = members_by_key(
        (item.action, f"{bare_name(item.kind)} {bare_name(item.name)}") for item in page.changes
    )
    for action, names in written.items():
        yield f"Objects{' it was to' if failed else ','} {action}: {', '.join(names)}."


def _what(item: PlanSummary) -> str:
    by = bare_name(item.requested_by) if item.requested_by else "nobody who is known"
    said = quoted(item.message, MESSAGE_LIMIT) if item.message else "no word of what became of it"
    return f"asked for by {by}, {item.phase}, {said}" if item.intact else "not as it was written"


def _named(item: PlanSummary) -> str:
    when = f" of {rfc3339(item.created)}" if item.created else ""
    return (
        f"Revision {item.revision} of optimization {bare_name(item.optimization)}{when}"
        f" (plan {bare_name(item.digest[:DIGEST_SHOWN])})"
    )


def _proof(gap: float | None) -> str:
    if gap is None:
        return "not proven"
    return "proven best" if gap <= 0 else f"not proven best ({possible_gain(gap)} is possible)"


def _past(item: PlanSummary) -> PastPlan:
    fields = {name: getattr(item, name) for name in PastPlan.model_fields}
    fields["digest"] = item.digest[:DIGEST_SHOWN]
    return PastPlan(**fields | ({} if item.intact else {"requested_by": ""}))


def _weights(asked: OptimizeRequest | RequestProblem) -> dict[str, float]:
    """Return the weights of the scores of a request; none if it can't be read."""
    scores = () if isinstance(asked, RequestProblem) else asked.scored
    return {plain(item.add_on_placement_score): item.weight for item in scores}
