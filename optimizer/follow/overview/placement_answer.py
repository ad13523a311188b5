"""Why a workload is where a plan puts it, or why it is not elsewhere."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Annotated

from pydantic import Field

from dsf.api.untrusted_text import UntrustedName, counted, joined, listed
from optimizer.domain.nodes import GPU_KIND, kind_and_device
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.name_search import find_name
from optimizer.follow.record.plan_history import RequestInForce, requests_in_force
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.plan.plan import Plan
from optimizer.plan.text.tables import place_sentence
from optimizer.wire import explanation
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem

LIMITS_SHOWN = 10
"""Limits, or places, of one workload in a text: one for each cluster is too much to read."""


class PlacementAnswer(ResultPart):
    """Why a workload is where it is, or why it is not elsewhere."""

    answer: Sentence
    message: Annotated[Sentence, Field(description="Why a recorded plan left it out.")] = ""
    workload: Name
    here: Annotated[
        tuple[explanation.AssignmentReason, ...], Field(description="Where a plan made now has it.")
    ] = ()
    unplaced: explanation.UnplacedReason | None = None
    why_not: tuple[explanation.WhyNotAnswer, ...] = ()
    digest: Annotated[Name, Field(description="The plan that is explained.")] = ""


def request_in_force(
    records: Iterable[RecordedPlan], workload: str = "", optimization: str = ""
) -> RequestInForce | RequestProblem | None:
    """Return the request of the plan in force, if named one with a workload; None without one."""
    for found in requests_in_force(records, optimization):
        if isinstance(found, RequestProblem):
            return found
        names = [item.name for item in found.request.target_workloads]
        if not workload or isinstance(
            find_name(workload, names, field="workload", what="workload"), str
        ):
            return found
    return None


def explained_request(base: OptimizeRequest, workload: str, cluster: str) -> OptimizeRequest:
    """Return a request whose plan answers the question, without steps of a rollout.

    `cluster`: the one on which the workload might be; empty for the question why it is here.
    """
    asked = cluster in base.cluster_names
    questions = (explanation.WhyNotQuestion(cluster=cluster, workload=workload),) if asked else ()
    changes = {
        "explain": False,
        "explain_workloads": (workload,),
        "why_not": questions,
        "rollout": "AllAtOnce",
    }
    return base.model_copy(update=changes)


def outside_answer(
    facts: FleetFacts, base: OptimizeRequest, workload: str, cluster: str, whose: str
) -> PlacementAnswer | None:
    """Return the answer about a cluster that the request does not name; None if it names it.

    `whose`: the request, in words.
    """
    if not cluster or cluster in base.cluster_names:
        return None
    name = f"cluster {UntrustedName(cluster)}"
    told = [f"{name} is not in the request of {whose}"]
    if until := facts.drained.get(cluster):
        told.append(f"{name} is drained {until}: plans place nothing there")
    if fault := facts.faults.get(cluster):
        told.append(fault.message)
    seen = facts.capacity.get(cluster)
    rows = seen.resources if seen and seen.current else ()
    gpus = [row for row in rows if row.capacity and kind_and_device(row.resource)[0] == GPU_KIND]
    if gpus and not any(row.free for row in gpus):
        held = (f"{i.reserved:g} of {i.capacity:g} {UntrustedName(i.resource)}" for i in gpus)
        told.append(f"{name} has no GPU free: {joined(held, LIMITS_SHOWN)} are reserved")
    if there := listed([item.cluster for item in facts.landings.get(workload, ())], LIMITS_SHOWN):
        told.append(f"{UntrustedName(workload)} is on {there} now")
    return PlacementAnswer(answer="; ".join(told), workload=workload)


def placement_answer(plan: Plan, workload: str, cluster: str) -> PlacementAnswer:
    """Return what the plan of an explained request says of a workload."""
    found = plan.explanation or explanation.Explanation()
    running = [place for item in plan.moves if item.workload == workload for place in item.before]
    now = {(item.cluster, item.device) for item in running}
    answer = _elsewhere_now(plan, workload, now) + _answer(plan, found, workload, cluster, now)
    for failure in plan.failures:
        answer += f"; {failure}"
    return PlacementAnswer(
        answer=answer,
        workload=workload,
        here=tuple(item for item in found.places if item.workload == workload),
        unplaced=next((item for item in found.unplaced if item.workload == workload), None),
        why_not=found.why_not,
        digest=plan.digest,
    )


def answer_lines(found: PlacementAnswer, shown: Callable[[str], str] = str) -> Iterator[str]:
    """Yield what the record says, the answer, what limits the workload, and what gives it a place.

    `shown` returns a sentence as the reader may see it.
    """
    if found.message:
        yield shown(found.message)
    yield shown(found.answer)
    if found.unplaced is not None:
        limits = found.unplaced.limits
        yield from (f"Limit: {shown(item.message)}" for item in limits[:LIMITS_SHOWN])
        if len(limits) > LIMITS_SHOWN:
            more = counted(len(limits) - LIMITS_SHOWN, "more limit")
            yield f"and {more}: name a cluster to see why not there"
        remedy = found.unplaced.remedy
        changes = remedy.changes if remedy else ()
        for change in changes:
            more = " and the other changes" if len(changes) > 1 else ""
            yield f"It would have a place after this{more}: {shown(change.message)}"
        if remedy and not remedy.verified:
            yield "There was no time to plan with that: it makes room, and may not be the cheapest."
        elif len(changes) > 1:
            yield "This is the cheapest that was found; that nothing is cheaper is not proven."


def _elsewhere_now(plan: Plan, workload: str, now: Collection[tuple[str, str]]) -> str:
    """Return on which devices a workload is now, if the plan has it on others; else empty."""
    planned = {(i.cluster, i.device) for i in plan.placements if i.workload == workload}
    if not now or now == planned or plan.failures:
        return ""
    there, will = _devices(now), f"has it on {_devices(planned)}" if planned else "has no place"
    return f"{UntrustedName(workload)} is on {there} now; a plan made now {will}: "


def _devices(places: Iterable[tuple[str, str]]) -> str:
    said = (f"{on} of {at}" if on else at for at, on in sorted(places))
    return joined(said, LIMITS_SHOWN)


def _answer(
    plan: Plan,
    found: explanation.Explanation,
    workload: str,
    cluster: str,
    now: Collection[tuple[str, str]],
) -> str:
    """Return the answer to the question in one sentence; the workload is on these devices now."""
    here = [item for item in found.places if item.workload == workload]
    if cluster and any(i.workload == workload and i.cluster == cluster for i in plan.placements):
        verb = "is" if cluster in dict(now) else "would be"
        return f"{UntrustedName(workload)} {verb} on {UntrustedName(cluster)} in this plan"
    if cluster:
        answers = "; ".join(f"{item.asked}: {item.message}" for item in found.why_not)
        return answers or _nothing(plan, found, workload, f" on {UntrustedName(cluster)}")
    for missing in found.unplaced:
        if missing.workload == workload:
            return f"{UntrustedName(workload)} has fewer places than it asks for: {missing.message}"
    if not here:
        return _nothing(plan, found, workload)
    verbs = ("is" if (item.cluster, item.device) in now else "would be" for item in here)
    return "; ".join(map(place_sentence, here, verbs))


def _nothing(plan: Plan, found: explanation.Explanation, workload: str, where: str = "") -> str:
    """Return that nothing was computed for a workload, why, and what the plan says of it anyway."""
    told = [f"nothing was computed for {UntrustedName(workload)}{where}"]
    if found.not_computed and not plan.failures:
        told.append(f"not computed: {'; '.join(found.not_computed)}")
    places = {(i.cluster, i.device) for i in plan.placements if i.workload == workload}
    told += [f"this plan has it on {_devices(places)}"] if places else []
    told += [item.message for item in plan.unplaced if item.workload == workload]
    return "; ".join(told)
