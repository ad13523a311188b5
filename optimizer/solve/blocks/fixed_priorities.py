"""What of a problem is decided already: what higher priorities have stays where it is."""

from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.problem import NO_DEVICE, ClusterResource, Problem
from optimizer.model.tie_breaking import trimmed
from optimizer.solve.blocks.block_problem import Floats, Ints
from optimizer.solve.blocks.linking_constraints import LinkingConstraints


@dataclass(frozen=True, slots=True)
class FixedPriorities:
    """Options enforced and places taken, by number."""

    options: tuple[int, ...]
    tasks: Ints
    slots: Ints

    def base(self, problem: Problem) -> Floats:
        """Return what is left of each slot without deciding anything more."""
        left = problem.base.copy()
        for option in self.options:
            for slot, amount in problem.policies[option].supplies:
                left[slot] += amount
        for index, slot in zip(self.tasks.tolist(), self.slots.tolist(), strict=True):
            task, cluster = problem.workloads[index], problem.resources[slot].cluster
            left[slot] -= task.amount
            for kind, amount in task.extras:
                left[problem.resource_index[ClusterResource(cluster, kind, NO_DEVICE)]] -= amount
        return left

    def pools(self, problem: Problem) -> frozenset[int]:
        """Return the options of the pools that are decided."""
        own = {problem.policies[option][:2] for option in self.options}
        return frozenset(
            number for number, option in enumerate(problem.policies) if option[:2] in own
        )

    def rows(self, problem: Problem, further: LinkingConstraints) -> LinkingConstraints:
        """Return further rows with what is left of their limits."""
        taken = np.zeros(problem.values.shape, np.bool_)
        taken[self.tasks, self.slots] = True
        enforced = np.zeros(len(problem.policies), np.bool_)
        enforced[list(self.options)] = True
        size = len(further.limits)
        by_place = further.place_coefficients * taken[further.place_tasks, further.place_slots]
        by_option = further.option_coefficients * enforced[further.option_numbers]
        used = np.bincount(further.place_rows, by_place, size)
        used += np.bincount(further.option_rows, by_option, size)
        return replace(further, limits=tuple((np.array(further.limits) - used).tolist()))

    def decision(self, problem: Problem, more: Decision) -> Decision:
        """Return a decision on the rest together with what is settled."""
        own = [problem.enforcement(option) for option in self.options]
        options = sorted({problem.policy_index[item] for item in (*own, *more.policies)})
        pairs = [pair for place in more.assignments if (pair := problem.indexes(place)) is not None]
        pairs += zip(self.tasks.tolist(), self.slots.tolist(), strict=True)
        return Decision(
            tuple(problem.enforcement(option) for option in options),
            tuple(problem.assignment(task, slot) for task, slot in sorted(pairs)),
        )


def fix_priorities(problem: Problem, decision: Decision, tier: int) -> FixedPriorities:
    """Return what tiers before `tier` have of a decision, with those whom they want near."""
    names = {
        task.name
        for task, own in zip(problem.workloads, problem.workload_tier.tolist(), strict=True)
        if own < tier
    }
    while more := _wanted(problem, names) - names:
        names |= more
    places = tuple(place for place in decision.assignments if place.workload in names)
    kept = trimmed(problem, Decision(decision.policies, places))
    pairs = [pair for place in kept.assignments if (pair := problem.indexes(place)) is not None]
    return FixedPriorities(
        tuple(problem.policy_index[choice] for choice in kept.policies),
        np.array([task for task, _ in pairs], np.int64),
        np.array([slot for _, slot in pairs], np.int64),
    )


def _wanted(problem: Problem, names: set[str]) -> set[str]:
    tasks = (problem.workloads[problem.workload_index[name]] for name in names)
    wanted = {name for task in tasks for some in task.near for name in some}
    return wanted & problem.workload_index.keys()
