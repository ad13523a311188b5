"""The transition from what runs now to a decision, as the wire shows it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from dsf.api.untrusted_text import joined
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, TimeLeft
from optimizer.model.current_state import CurrentState
from optimizer.model.problem import Problem
from optimizer.model.wire_values import assignment_value, policy_value
from optimizer.transition.policy_replacement import ReplacementLookup, policy_replacements
from optimizer.transition.transition import TransitionStage, plan_transition
from optimizer.wire.explanation import GpusToDrain, TransitionPlan, TransitionStep

MAX_TRANSITION_ASSIGNMENTS = 1_000
"""Changed assignments up to which a transition is ordered."""


def transition_plan(
    fleet: Fleet, problem: Problem, begin: CurrentState, goal: Decision, time_left: TimeLeft
) -> TransitionPlan | None:
    """Return the steps from what runs now to a goal; None where nothing is known to run."""
    unseen = dict(unseen_replaced(fleet, problem, goal))
    if not (begin.decision.policies or begin.decision.assignments or begin.infeasible or unseen):
        return None
    asks = policy_replacements(fleet)
    found = plan_transition(problem, begin.decision, goal, time_left, asks)
    back = _returning(found.stages, begin.decision, goal)
    words = [_words(found.uncovered, least=found.least)]
    if back:
        places = [f"{item.workload} on {item.cluster}" for item in back]
        words.append(f"stopped to make room, and started again at the same place: {_few(places)}")
    if begin.infeasible:
        words.append(f"not considered, because rules forbid it: {_few(begin.infeasible)}")
    if unseen:
        places = [f"{item.policy} on {item.cluster}" for item in unseen.values()]
        words.append(f"it is not known what uses the devices of these policies: {_few(places)}")
    return TransitionPlan(
        steps=tuple(_step(stage, unseen, asks) for stage in found.stages),
        uncovered=found.uncovered,
        returning=tuple(map(assignment_value, back)),
        least=found.least,
        message="; ".join(words),
    )


def unseen_replaced(
    fleet: Fleet, problem: Problem, goal: Decision
) -> Iterator[tuple[PolicyEnforcement, PolicyEnforcement]]:
    """Yield a goal's policies with those that they replace and that no workload can use."""
    chosen = set(goal.policies)
    for cluster in fleet.clusters:
        pools = {
            item.pool: PolicyEnforcement(cluster.name, item.policy)
            for item in cluster.candidates
            if (cluster.name, item.policy) in chosen
        }
        for item in cluster.candidates:
            old = PolicyEnforcement(cluster.name, item.policy)
            if item.current and item.pool in pools and old not in problem.policy_index:
                yield pools[item.pool], old


def _words(uncovered: Sequence[str], *, least: bool) -> str:
    if not uncovered:
        return "every replica that can keep running does"
    proof = "no order of single changes is better" if least else "no better order was found"
    return f"{_few(uncovered)} must lose a replica for a while: {proof}"


def _few(names: Sequence[str]) -> str:
    return joined(names, 10)


def _returning(
    stages: Iterable[TransitionStage], start: Decision, goal: Decision
) -> tuple[Assignment, ...]:
    """Return the assignments that are stopped although they belong to the start and the goal."""
    stays = set(start.assignments) & set(goal.assignments)
    stopped = chain.from_iterable(item.stopped for item in stages)
    return tuple(dict.fromkeys(assignment for assignment in stopped if assignment in stays))


def _step(
    stage: TransitionStage,
    unseen: Mapping[PolicyEnforcement, PolicyEnforcement],
    asks: ReplacementLookup,
) -> TransitionStep:
    also = [policy_value(unseen[new]) for new in stage.enforced if new in unseen]
    return TransitionStep(
        draining=tuple(gpus_to_drain(stage, unseen, asks)),
        enforce=tuple(map(policy_value, stage.enforced)),
        release=(*map(policy_value, stage.released), *also),
        start=tuple(map(assignment_value, stage.started)),
        stop=tuple(map(assignment_value, stage.stopped)),
        uncovered=stage.uncovered,
        detours=tuple(map(assignment_value, stage.detours)),
    )


def gpus_to_drain(
    stage: TransitionStage,
    unseen: Mapping[PolicyEnforcement, PolicyEnforcement],
    asks: ReplacementLookup,
) -> Iterator[GpusToDrain]:
    """Yield the GPUs that have to be idle before the policies of a stage replace others.

    `unseen`: what `unseen_replaced` yields.
    """
    for old, new in (*stage.replaced, *((unseen[i], i) for i in stage.enforced if i in unseen)):
        idle = asks(old, new).idle
        if idle is None or idle:
            yield GpusToDrain(cluster=old.cluster, policy=old.policy, gpus=idle)
