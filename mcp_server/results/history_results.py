"""The results of the tool about recorded plans: structured, and in a few lines of text."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from dsf.api.crd.placement_plan import PlanPhase
from dsf.api.plural import counted, joined
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import MESSAGE_LIMIT, listed, plain, quoted
from dsf.kube.port import Object
from mcp_server.results.object_yaml import objects_yaml
from mcp_server.results.tool_result import Omitted, bare_name, bounded
from optimizer.domain.arrays import members_by_key
from optimizer.follow.record.plan_views import DIGEST_SHOWN, unknown_plan
from optimizer.operations.access.shown_plans import SHORTEST_DIGEST
from optimizer.operations.fleet import SHOWN_KINDS
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import first_lines, move_sentence, worst_first
from optimizer.wire.base import Name, ResultPart
from optimizer.wire.plan_record import PlanRecord, PlanSummary
from optimizer.wire.request_problem import RequestProblem, dry_request
from optimizer.wire.result import ObjectRef, WorkloadMove

_PLANS = 6
"""Plans of one answer; a revision names each of the others."""

_LINES = 10
"""Moves of one answer; the page of the optimizer shows all."""

_UNPLACED = 3
"""Workloads without a place that an answer gives the reason of: each is a long sentence."""


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
    objects: tuple[ObjectRef, ...] = ()
    omitted: Omitted = Field(default_factory=dict)


def meant_plan(
    said: str, namespace: str, optimization: str, plans: Sequence[PlanSummary]
) -> PlanSummary | RequestProblem:
    """Return the plan that is meant: by a revision of the optimization, or by a digest of any.

    The first characters of a digest are enough. An empty text means the newest plan.
    """
    own = [item for item in plans if item.optimization == optimization]
    found = [item for item in own if said in ("", f"{item.revision}")]
    if not found and len(said) >= SHORTEST_DIGEST:
        found = [item for item in (*own, *plans) if item.digest.startswith(said.lower())]
    return found[0] if found else unknown_plan(said or "newest", namespace, own or plans)


def history_view(plans: Sequence[PlanSummary], record: PlanRecord) -> HistoryView:
    """Return the plans of the optimization of a recorded one, and what that one moved."""
    own = [item for item in plans if item.optimization == record.optimization]
    return bounded(
        HistoryView(
            plans=tuple(map(_past, own)),
            revision=record.revision,
            objective=_objective(record),
            moved=record.moved and tuple(worst_first(record.moved)),
        ),
        _LINES,
        plans=_PLANS,
    )


def history_text(plans: Sequence[PlanSummary], record: PlanRecord) -> str:
    """Return what became of a plan, who asked for what, its proof then, and what it changed."""
    if not record.intact:
        return (
            f"{_named(record)} is not as the optimizer wrote it: somebody edited the record, or"
            " made it. So who asked, for what, and what it changed is not known."
        )
    others = (
        f"{_named(item)}: {_what(item)}"
        for item in plans
        if item.optimization == record.optimization and item.name != record.name
    )
    lines = first_lines(others, _PLANS - 1, what=" plans: name a revision")
    return "\n".join([*_told(record), *(["Other plans:", *lines] if lines else [])])


def objects_view(objects: Sequence[Object]) -> HistoryView:
    """Return the names of objects that are shown as YAML."""
    named = ((obj["kind"], obj["metadata"]) for obj in objects)
    refs = (
        ObjectRef(kind=kind, namespace=of.get("namespace") or "", name=of["name"])
        for kind, of in named
    )
    return bounded(HistoryView(objects=tuple(refs)), _LINES)


def objects_text(objects: Sequence[Object]) -> str:
    """Return objects of the hub as YAML."""
    if objects:
        return objects_yaml(objects)
    return (
        "No object that you may list has these words in its kind and name. Kinds:"
        f" {listed(kind.kind for kind in SHOWN_KINDS)}."
    )


def generated_objects(
    record: PlanRecord, there: Iterable[Object]
) -> tuple[tuple[Object, ...], str]:
    """Return the objects that a plan generated, as the hub has them, and their YAML.

    One that the hub has no more is shown as it was recorded. `there`: the objects of the hub.
    """
    if not (record.intact and record.objects):
        return (), f"{_named(record)} has no object of its own, or its record can't be trusted."
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in there}
    named = {(obj["kind"], obj["metadata"]["name"]): obj for obj in record.objects}
    shown = [found.get(key, obj) for key, obj in named.items()]
    gone = (f"{plain(key[0])} {bare_name(key[1])}" for key in named if key not in found)
    missing = joined(gone, _LINES)
    more = f"; gone, or not yours to list, so as it was recorded: {missing}" if missing else ""
    head = f"# {_named(record)}, {record.phase}, as the hub has it{more}\n"
    return tuple(shown), head + objects_yaml(shown)


def now_text(made: Plan | RequestProblem | None) -> str:
    """Return whether the plan in force is proven best now, by a plan for the same made now."""
    if made is None:
        return "Now: not proven, because nobody planned again; ask with prove."
    if isinstance(made, RequestProblem):
        return f"Now: not proven. It can't be planned again: {quoted(made.detail, MESSAGE_LIMIT)}."
    solution = made.solution
    moved = [item for item in made.moves if item.action != "stays"]
    worth = f"worth {solution.objective_value:g} by the scores of now"
    if solution.status != "Optimal":
        said = "it is not proven best, nor that another one is better: no proof in the time limit"
    elif moved:
        return (
            f"Now: it is not the best any more. A plan for the same, {worth}, would change"
            f" {counted(len(moved), 'workload')}. Next: plan_placement shows it."
        )
    else:
        said = f"it is {_proof(solution.gap)}: planned again for the same, nothing would move"
    return f"Now: {said}; {worth}."


def _told(record: PlanRecord) -> Iterator[str]:
    asked = ", ".join(
        f"{bare_name(name)} x {weight:g}" for name, weight in _objective(record).items()
    )
    yield f"{_named(record)}: {_what(record)}."
    if not record.request:
        yield "Its content can't be read, so for what it was made and what it changed is not known."
        return
    yield f"Objective: {asked}. Then: {_proof(record.gap)}, worth {record.objective:g}."
    if record.moved is None:
        yield "What it moved is not known: the plan before it is not kept, or can't be read."
    else:
        yield from first_lines(map(move_sentence, worst_first(record.moved)), _LINES, what=" moves")
        if not record.moved:
            yield "It moved nothing: the plan before had each workload there."
    lines = (
        f"{bare_name(i.workload)} got too few places: {quoted(i.message)}." for i in record.unplaced
    )
    yield from first_lines(lines, _UNPLACED, what=" that got too few places")
    written = members_by_key(
        (item.action, f"{bare_name(item.kind)} {bare_name(item.name)}") for item in record.changes
    )
    for action, names in written.items():
        yield f"Objects, {action}: {joined(names, _PLANS)}."


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
    return "proven best" if gap <= 0 else f"proven within {gap:.2%} of the best"


def _past(item: PlanSummary) -> PastPlan:
    fields = {name: getattr(item, name) for name in PastPlan.model_fields}
    fields["digest"] = item.digest[:DIGEST_SHOWN]
    return PastPlan(**fields | ({} if item.intact else {"requested_by": ""}))


def _objective(record: PlanRecord) -> dict[str, float]:
    """Return the weights of the scores that a plan was asked for."""
    asked = dry_request(record.request)
    scores = () if isinstance(asked, RequestProblem) else asked.scored
    return {plain(item.add_on_placement_score): item.weight for item in scores}
