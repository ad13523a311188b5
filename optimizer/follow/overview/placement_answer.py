"""Why a workload is where a plan puts it, or why it is not elsewhere."""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from pydantic import Field

from dsf.api.plural import counted
from dsf.api.untrusted_text import UntrustedName
from optimizer.follow.overview.name_search import find_name
from optimizer.follow.record.plan_history import requests_in_force
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.plan.plan import Plan
from optimizer.plan.text.tables import place_sentence
from optimizer.wire import explanation
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem

LIMITS_SHOWN = 10
"""Limits of one workload in a text: one for each cluster is more than a person reads."""


class PlacementAnswer(ResultPart):
    """Why a workload is where it is, or why it is not elsewhere."""

    answer: Sentence
    message: Annotated[Sentence, Field(description="Why a recorded plan left it out.")] = ""
    workload: Name
    here: tuple[explanation.AssignmentReason, ...] = ()
    unplaced: explanation.UnplacedReason | None = None
    why_not: tuple[explanation.WhyNotAnswer, ...] = ()
    digest: Annotated[Name, Field(description="The plan that is explained.")] = ""


def request_in_force(
    records: Iterable[RecordedPlan], workload: str = "", optimization: str = ""
) -> OptimizeRequest | RequestProblem | None:
    """Return the request of the plan in force, if named one with a workload; None without one."""
    for found in requests_in_force(records, optimization):
        if isinstance(found, RequestProblem):
            return found
        names = [item.name for item in found.request.target_workloads]
        if not workload or isinstance(
            find_name(workload, names, field="workload", what="workload"), str
        ):
            return found.request
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


def placement_answer(plan: Plan, workload: str, cluster: str) -> PlacementAnswer:
    """Return what the plan of an explained request says of a workload."""
    found = plan.explanation or explanation.Explanation()
    answer = _answer(plan, found, workload, cluster)
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
            yield f"and {counted(len(limits) - LIMITS_SHOWN, 'more limit')}"
        remedy = found.unplaced.remedy
        changes = remedy.changes if remedy else ()
        for change in changes:
            more = " and the other changes" if len(changes) > 1 else ""
            yield f"It would have a place after this{more}: {shown(change.message)}"
        if remedy and not remedy.verified:
            yield "There was no time to plan with that: it makes room, and may not be the cheapest."
        elif len(changes) > 1:
            yield "This is the cheapest that was found; that nothing is cheaper is not proven."


def _answer(plan: Plan, found: explanation.Explanation, workload: str, cluster: str) -> str:
    """Return the answer to the question in one sentence."""
    here = [item for item in found.places if item.workload == workload]
    if cluster and cluster in {item.cluster for item in here}:
        return f"{UntrustedName(workload)} is on {UntrustedName(cluster)} in this plan"
    if cluster and cluster not in plan.request.cluster_names:
        return f"cluster {UntrustedName(cluster)} is not in the plan's request"
    if cluster:
        answers = "; ".join(f"{item.asked}: {item.message}" for item in found.why_not)
        nothing = f"nothing was computed for {UntrustedName(workload)} on {UntrustedName(cluster)}"
        return answers or nothing
    for missing in found.unplaced:
        if missing.workload == workload:
            return f"{UntrustedName(workload)} has fewer places than it asks for: {missing.message}"
    if not here:
        return f"nothing was computed for {UntrustedName(workload)}"
    return "; ".join(map(place_sentence, here))
