"""Checks a recorded decision against today's problem, and names what no longer allows it."""

from collections.abc import Iterator, Sequence

from dsf.api.untrusted_text import UntrustedName, joined, quoted
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, Solution
from optimizer.follow.record.recorded_plan import restored_part
from optimizer.follow.record.rollback import RestoredPlan
from optimizer.model.objective import objective
from optimizer.model.parameters import ClusterResource
from optimizer.model.predicates import ResourceIndex, ineligible
from optimizer.model.problem import Problem
from optimizer.model.rules import chosen_part, violations
from optimizer.plan.basis import assumptions
from optimizer.wire.request_problem import FieldProblem, ProblemKind, RequestProblem

MAX_DIFFERENCES = 100
"""Differences that a refusal lists."""

DIFFERENCES_IN_DETAIL = 5
"""Differences that the sentence of a refusal spells out: more than a person reads."""

SOLVER = "rollback"
"""What the plan of a rollback names as its solver, because nothing was solved."""


def restored_solution(
    restored: RestoredPlan, fleet: Fleet, problem: Problem
) -> Solution | RequestProblem:
    """Return the recorded decision as a solution of today's problem; a refusal if it is none."""
    decision = restored.content.decision
    broken = tuple(_differences(restored, fleet, problem))
    if broken:
        return not_allowed(restored, broken)
    ordered = problem.named(*problem.numbered(decision))
    return Solution(
        status="Feasible",
        decision=ordered,
        objective_value=objective(problem, ordered),
        bound=None,
        seconds=0.0,
        solver=SOLVER,
    )


def not_allowed(restored: RestoredPlan, differences: Sequence[FieldProblem]) -> RequestProblem:
    """Return the refusal of a rollback that the hub no longer allows, with the differences."""
    messages = (item.message for item in differences)
    listed = joined(messages, DIFFERENCES_IN_DETAIL, separator="; ")
    return ProblemKind.ROLLBACK_REFUSED.because(
        f"{restored_part(restored.of)} of optimization"
        f" {UntrustedName(restored.record.spec.optimization)} can't be restored: {listed}; restore"
        " what it needs, name another revision, or plan again",
        tuple(differences[:MAX_DIFFERENCES]),
    )


def _differences(restored: RestoredPlan, fleet: Fleet, problem: Problem) -> Iterator[FieldProblem]:
    """Yield what forbids the recorded decision; then what changed of what it rested on."""
    decision = restored.content.decision
    broken = list(_not_candidates(fleet, problem, decision)) or [
        FieldProblem("rule", f"it would not hold that {rule}")
        for rule in violations(problem, decision)
    ]
    yield from broken
    if broken:
        yield from _changed(restored, fleet, decision)


def _not_candidates(fleet: Fleet, problem: Problem, decision: Decision) -> Iterator[FieldProblem]:
    """Yield what can't be chosen; not the workloads of a cluster whose policy can't be."""
    _, unknown = chosen_part(problem, decision)
    policies = [item for item in unknown if isinstance(item, PolicyEnforcement)]
    without, index = {item.cluster for item in policies}, ResourceIndex(fleet)
    for choice in policies:
        yield _not_enforceable(fleet, choice)
    for item in unknown:
        if isinstance(item, Assignment) and item.cluster not in without:
            yield _not_assignable(fleet, index, item)


def _changed(restored: RestoredPlan, fleet: Fleet, decision: Decision) -> Iterator[FieldProblem]:
    for name, now in assumptions(fleet, decision).items():
        then = restored.content.assumptions.get(name, now)
        if now != then:
            yield FieldProblem(name, f"{name} {now} now; when the plan was made: {quoted(then)}")


def _not_enforceable(fleet: Fleet, choice: PolicyEnforcement) -> FieldProblem:
    said = [
        issue.message
        for issue in fleet.issues
        if issue.policy == choice.policy or (issue.cluster == choice.cluster and not issue.workload)
    ]
    why = "; ".join(dict.fromkeys(said)) or "it is not a candidate"
    return FieldProblem(
        f"policy {UntrustedName(choice.policy)}",
        f"policy {UntrustedName(choice.policy)} can't be enforced on cluster"
        f" {UntrustedName(choice.cluster)}: {why}",
    )


def _not_assignable(fleet: Fleet, index: ResourceIndex, item: Assignment) -> FieldProblem:
    return FieldProblem(
        f"workload {UntrustedName(item.workload)}",
        f"workload {UntrustedName(item.workload)} can't run on"
        f" {UntrustedName(item.device) or 'anything'} of cluster {UntrustedName(item.cluster)}:"
        f" {'; '.join(_why_not(fleet, index, item))}",
    )


def _why_not(fleet: Fleet, index: ResourceIndex, item: Assignment) -> Iterator[str]:
    workload = next((one for one in fleet.workloads if one.name == item.workload), None)
    named = {cluster.name: number for number, cluster in enumerate(fleet.clusters)}
    said = dict.fromkeys(issue.message for issue in fleet.issues if issue.workload == item.workload)
    if workload is None:
        yield from said or ("it can't be read",)
        return
    resource = index.number.get(
        ClusterResource(named.get(item.cluster, -1), workload.kind, item.device)
    )
    if resource is None:
        yield "no policy supplies it there"
        return
    reasons = [name for name, found in ineligible(index, workload).items() if found[resource]]
    yield ", ".join(reasons) or "it is not a candidate"
    yield from (issue.message for issue in fleet.issues if issue.cluster == item.cluster)
