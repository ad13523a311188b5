"""What runs now, as a decision: where a solver starts, and what it falls back on."""

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.problem import Problem
from optimizer.model.rules import violations


def incumbent_from_current_state(problem: Problem) -> Decision | None:
    """Return the current policies and places as far as they fit; None where they break a rule."""
    options = [number for number, option in enumerate(problem.policies) if option.current]
    left = problem.base.copy()
    for number in options:
        for slot, amount in problem.policies[number].supplies:
            left[slot] += amount
    slots: dict[int, list[int]] = {}
    for number, cluster in enumerate(problem.resource_cluster.tolist()):
        slots.setdefault(cluster, []).append(number)
    places: list[Assignment] = []
    for index, task in enumerate(problem.workloads):
        for cluster in task.current[: task.replicas]:
            usable = [
                slot
                for slot in slots.get(cluster, ())
                if problem.values[index, slot] >= 0 and left[slot] >= task.amount
            ]
            if usable:
                chosen = max(usable, key=lambda slot: (problem.values[index, slot], -slot))
                left[chosen] -= task.amount
                places.append(problem.assignment(index, chosen))
    used = {place.cluster for place in places}
    choices: list[PolicyEnforcement] = [problem.enforcement(number) for number in options]
    decision = Decision(tuple(item for item in choices if item.cluster in used), tuple(places))
    return None if violations(problem, decision) else decision
