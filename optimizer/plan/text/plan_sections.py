"""A plan in words: its placements, unplaced workloads, issues and writes.

Sentences quote every text except names of objects. Cells of a table are escaped when printed.
"""

from dsf.api.plural import counted
from dsf.api.untrusted_text import UntrustedName, listed, quoted
from optimizer.domain.solution import Solution
from optimizer.plan.generated_objects import describe
from optimizer.plan.plan import Plan
from optimizer.plan.text.sections import Section, first_rows

_EQUAL_VALUES = 1e-6
"""Objective units below which the sum of the scores and the objective are equal."""

_VERDICTS = {
    "Optimal": "Proven best",
    "Feasible": "The best found within the limits, not proven best",
    "Infeasible": "No workload has a place",
    "NotSolved": "Nothing found within the limits",
}


def headline(plan: Plan) -> str:
    """Return the status, the objective and its bound, the solver and the digest on one line."""
    solution = plan.solution
    failed = ", the solver failed" if solution.failure else ""
    value = f"{solution.status}{failed}: objective {solution.objective_value:g}{_costs(plan)}"
    if solution.status == "Feasible" and solution.bound is not None:
        value += f", at most {solution.bound:g} is possible"
    return f"{value} ({solution.solver}, plan {plan.digest[:12]})"


def verdict(plan: Plan) -> str:
    """Return a sentence with the status, the placed workloads, their value and the bound.

    A plan that restores a recorded one was not searched for: its sentence names the revision.
    """
    solution, placed = plan.solution, {item.workload for item in plan.placements}
    worth = (
        f"{counted(len(placed), 'workload')} placed, together worth {solution.objective_value:g}"
    )
    if plan.rollback is not None:
        return f"Restores revision {plan.rollback.to_revision} as it was recorded: {worth}."
    unproven = solution.status == "Feasible" and solution.bound is not None
    limit = f"; no placement is worth more than {solution.bound:g}" if unproven else ""
    return f"{_verdict(solution)}: {worth}{limit}."


def _verdict(solution: Solution) -> str:
    if solution.failure is None or solution.status == "Optimal":
        return _VERDICTS[solution.status]
    if solution.status == "NotSolved":
        return "The solver failed, and nothing was found"
    return "The solver failed: the best plan that was known, not proven best"


def placements(plan: Plan) -> Section:
    """Return a row for each place, and a sentence for each cluster that enforces a policy."""
    rows = [
        (item.workload, item.cluster, item.device, item.policy, f"{item.score:g}")
        for item in plan.placements
    ]
    running: dict[str, list[str]] = {}
    for item in plan.placements:
        running.setdefault(item.cluster, []).append(
            f"{UntrustedName(item.workload)} on {quoted(item.device)} ({item.score:g})"
        )
    sentences = [
        f"{UntrustedName(cluster)} enforces {_names(policy)}:"
        f" {', '.join(running.get(cluster, ['nothing']))}."
        for cluster, policy in sorted(plan.policies.items())
    ]
    columns = ("workload", "cluster", "device", "policy", "score")
    return Section("clusters", columns, tuple(rows), tuple(sentences))


def removals(plan: Plan) -> Section:
    """Return the placed workloads that the plan removes; first, because people must notice."""
    rows = [(item.workload, listed(item.clusters), item.message) for item in plan.removals]
    sentences = [f"The plan {quoted(item.message)}" for item in plan.removals]
    columns = ("removed workload", "clusters", "message")
    return Section("removals", columns, tuple(rows), tuple(sentences))


def unplaced(plan: Plan) -> Section:
    """Return every workload with fewer places than it asked for, and why."""
    placed = {item.workload for item in plan.placements}
    rows = [(item.workload, item.reason, item.message) for item in plan.unplaced]
    sentences = []
    for item in plan.unplaced:
        some = item.workload in placed
        what = "has fewer places than it asked for" if some else "has no place"
        sentences.append(
            f"{UntrustedName(item.workload)} {what}: {item.reason}: {quoted(item.message)}"
        )
    columns = ("unplaced", "reason", "message")
    return Section("workloads left out", columns, tuple(rows), tuple(sentences))


def issues(plan: Plan) -> Section:
    """Return what the input lacks, or what of it counts for less, and why."""
    rows = [(item.reason, item.message) for item in plan.issues]
    sentences = [f"Issue: {item.reason}: {quoted(item.message)}" for item in plan.issues]
    return Section("issues", ("issue", "message"), first_rows(rows), tuple(sentences))


def writes(plan: Plan) -> Section:
    """Return what applying the plan would write; the sentences are phrases to be joined."""
    changes = list(map(describe, plan.changes))
    rows = [(item.action, item.kind, item.namespace, item.name) for item in changes]
    phrases = [
        f"{item.action} {item.kind} {UntrustedName(item.namespace)}/{UntrustedName(item.name)}"
        for item in changes
    ]
    columns = ("change", "kind", "namespace", "name")
    return Section("changes", columns, tuple(rows), tuple(phrases))


def _names(policies: str) -> str:
    """Return the names of the policies of a cluster, which `Plan.policies` joins with commas."""
    return listed(policies.split(", "))


def _costs(plan: Plan) -> str:
    """Return why the objective is not the sum of the scores shown; empty where it is."""
    scores = sum(item.score for item in plan.placements)
    costs = scores - plan.solution.objective_value
    if abs(costs) < _EQUAL_VALUES:
        return ""
    return f" = {scores:g} of scores - {costs:g} of moves and changes"
