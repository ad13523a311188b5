"""The questions that a user answers before a write, and the sentences that they share with plans.

A question begins with how much is at stake, on which hub and in which namespace. Each name that
others chose stands in quotes, and each list ends with the count of its rest.
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from dsf.api.untrusted_text import UntrustedName, counted, joined, quoted, quoted_name
from optimizer.domain.arrays import members_by_key
from optimizer.domain.solution import Solution
from optimizer.plan.generated_objects import describe
from optimizer.plan.plan import Plan
from optimizer.plan.uncovered_others import UNCOVERS_OTHERS
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import MoveAction, WorkloadMove, WorkloadPlace
from optimizer.wire.rollout import ReplicaRef, RolloutCommand, RolloutStatus, StepActions

STABLE_SECONDS = 120
"""The policy watcher's default of --stable-duration-sec: what a policy must stay compliant."""

_AT_STAKE: Mapping[MoveAction, str] = {
    "stops": "stop",
    "shrinks": "lose places",
    "moves": "move",
    "starts": "start",
    "waits": "have no place",
    "stays": "stay",
}

_LINES = 12
"""Lines of one list in a question."""

ISSUES_SHOWN = 5
"""Issues of one plan in a result."""

WORST_FIRST: Sequence[MoveAction] = ("stops", "shrinks", "moves", "starts", "waits", "stays")
"""The order in which moves are told: who loses most comes first."""

_VERDICTS = {
    "Optimal": "Proven best",
    "Feasible": "The best found within the limits, not proven best",
    "Infeasible": "No planned workload has a place, so nothing changes and what runs stays",
    "NotSolved": "Nothing found within the limits",
}

_COMMANDS: Mapping[RolloutCommand, str] = {
    "pause": "Pause the rollout on {where}, and hold back: {effect}?",
    "resume": "Resume the rollout on {where}: {effect}?",
    "undo": "Turn back the rollout on {where}: {effect}?",
    "cancel": "Cancel the rollout on {where} where it is, and give up: {effect}?",
}


def plan_question(plan: Plan, hub: str) -> str:
    """Return the question that a user answers before a plan is applied.

    It begins with how much is at stake. Each name that others chose stands in quotes, and each list
    ends with the count of its rest.
    """
    counts = Counter(item.action for item in plan.moves)
    stakes = [
        f"{_AT_STAKE[action]} {counts[action]}"
        for action in WORST_FIRST
        if counts[action] or action in ("stops", "moves", "starts")
    ]
    uncovered = sum(item.uncovered for item in plan.moves)
    writes = ", ".join(f"{action} {count}" for action, count in writes_by_action(plan).items())
    request, steps = plan.request, plan.rollout.actions if plan.rollout else ()
    where = whose(hub, request.namespace, request.optimization)
    lines = [
        f"{', '.join(stakes).capitalize()} of {counted(len(plan.moves), 'workload')} on {where}?",
        *([f"Uncovered meanwhile: {counted(uncovered, 'workload')}."] if uncovered else []),
        *losses(plan),
        *moves(plan, quoted_name, without={item.workload for item in plan.removals}),
        *policy_changes(plan, quoted_name),
        *([f"It is written in {counted(len(steps), 'step')}."] if steps else []),
        verdict(plan),
        *issue_lines(plan),
        f"Objects: {writes or 'none'}.",
        f"Digest: {plan.digest}",
    ]
    return "\n".join(lines)


def rollout_question(command: RolloutCommand, status: RolloutStatus, hub: str) -> str:
    """Return the question that a user answers before a rollout is changed."""
    back = (command == "undo") != status.turning_back
    made, left = status.steps[: status.step], status.steps[max(status.step - 1, 0) :]
    starts, stops = _replicas_changed(made if back else left, back=back)
    workloads = {*starts, *stops}
    effect = (
        f"stop {len(stops.keys() - starts)}, move {len(stops.keys() & starts)},"
        f" start {len(starts.keys() - stops)} of {counted(len(workloads), 'workload')}"
    )
    where = whose(hub, status.namespace, status.optimization)
    changes = [_replica_sentence(name, starts, stops) for name in sorted(workloads)]
    return "\n".join(
        [
            _COMMANDS[command].format(where=where, effect=effect),
            *first_lines(changes, _LINES),
            f"It is at step {status.step} of {len(status.steps)}.",
        ]
    )


def _replicas_changed(
    steps: Sequence[StepActions], *, back: bool
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the clusters by workload that steps start and stop altogether; `back`: undone."""
    started = dict.fromkeys(_pair(item) for step in steps for item in step.start)
    stopped = dict.fromkeys(_pair(item) for step in steps for item in step.stop)
    starts = members_by_key(pair for pair in started if pair not in stopped)
    stops = members_by_key(pair for pair in stopped if pair not in started)
    return (stops, starts) if back else (starts, stops)


def _pair(item: ReplicaRef) -> tuple[str, str]:
    return item.workload, item.cluster


def _replica_sentence(
    workload: str, starts: Mapping[str, list[str]], stops: Mapping[str, list[str]]
) -> str:
    name = quoted_name(workload)
    before, after = (
        joined(map(quoted_name, found.get(workload, ())), _LINES) for found in (stops, starts)
    )
    if before and after:
        return f"{name} moves from {before} to {after}."
    return f"{name} stops on {before}." if before else f"{name} starts on {after}."


def whose(hub: str, namespace: str, optimization: str | None) -> str:
    """Return what a write is about, for a question: the hub, the namespace and the optimization."""
    parts = [f"hub {quoted_name(hub)}" if hub else "the hub", f"namespace {quoted_name(namespace)}"]
    parts += [f"optimization {quoted_name(optimization)}"] if optimization else []
    return ", ".join(parts)


def verdict(plan: Plan) -> str:
    """Return a sentence with the status, the placed workloads, their value and the bound.

    A plan that restores a recorded one was not searched for: its sentence names the revision.
    """
    solution, placed = plan.solution, {item.workload for item in plan.placements}
    worth = (
        f"{counted(len(placed), 'workload')} placed, together worth {solution.objective_value:g}"
    )
    if plan.rollback is not None:
        revision = f"revision {plan.rollback.to_revision} of optimization {plan.optimization}"
        if plan.rollback.workload:
            back = f"Puts {UntrustedName(plan.rollback.workload)} back where"
            return f"{back} {revision} had it; all others stay: {worth}."
        return f"Restores {revision} as it was recorded: {worth}."
    if solution.status == "Infeasible":
        return f"{_verdict(solution)}."
    unproven = solution.status == "Feasible" and solution.bound is not None
    more = f" ({possible_gain(solution.gap)})" if solution.gap is not None else ""
    limit = f"; no placement is worth more than {solution.bound:g}{more}" if unproven else ""
    return f"{_verdict(solution)}: {worth}{limit}."


def possible_gain(gap: float) -> str:
    """Return how much more the best plan may be worth, such as `at most 0.06% more`; rounded up."""
    return f"at most {math.ceil(1e4 * gap) / 1e2:g}% more"


def best_so_far(solution: Solution) -> str:
    """Return how good a decision is, to follow the seconds that it took."""
    more = f", {possible_gain(solution.gap)} is possible" if solution.gap is not None else ""
    return f"; the best so far is worth {solution.objective_value:g}{more}"


def _verdict(solution: Solution) -> str:
    if solution.failure is None or solution.status == "Optimal":
        return _VERDICTS[solution.status]
    if solution.status == "NotSolved":
        return "The solver failed, and nothing was found"
    return "The solver failed: the best plan that was known, not proven best"


def inversions(request: OptimizeRequest) -> Iterator[str]:
    """Yield of each score of which less is better between which ends it counts."""
    for item in request.scored:
        if item.invert and item.weight and item.minimum is not None and item.maximum is not None:
            name = UntrustedName(item.score_name)
            ends = f"{item.minimum:g} counts as 100, and {item.maximum:g} as 0"
            yield f"Lower values of {name} are better: {ends}."


def losses(plan: Plan) -> list[str]:
    """Return whom else a plan uncovers, and the placed workloads that it removes."""
    others = (item.message for item in plan.issues if item.reason == UNCOVERS_OTHERS)
    gone = (f"The plan {quoted(item.message)}" for item in plan.removals)
    return [*_first(f"Others: {quoted(message)}" for message in others), *_first(gone)]


def moves(
    plan: Plan, shown: Callable[[str], str] = UntrustedName, *, without: Container[str] = ()
) -> list[str]:
    """Return what becomes of each workload, but for `without` and what stays with all places."""
    found = (
        item
        for item in worst_first(plan.moves)
        if (item.action != "stays" or item.why) and item.workload not in without
    )
    return _first(move_sentence(item, shown) for item in found)


def move_sentence(
    item: WorkloadMove, shown: Callable[[str], str] = UntrustedName, *, failed: bool = False
) -> str:
    """Return what becomes of one workload, or was to become of it by a plan that failed.

    `shown` returns a name that others chose, made safe.
    """
    before, after = _places(item.before, shown), _places(item.after, shown)
    verb = f"was to {item.action.removesuffix('s')}" if failed else item.action
    said = f"{shown(item.workload)} {verb}"
    match item.action:
        case "starts" | "stays":
            said += f" on {after}"
        case "moves" | "shrinks":
            said += f" from {before} to {after}"
        case "stops":
            said += f" on {before}"
        case "waits":
            said = f"{shown(item.workload)} {'was to have' if failed else 'has'} no place"
    gains = [f"{amount:+g} {shown(score)}" for score, amount in item.gain.items() if amount]
    why = f": {UntrustedName(item.why)}" if item.why else ""
    uncovered = "; uncovered until its policy is compliant" if item.uncovered else ""
    return f"{', '.join([f'{said}{why}', *gains])}{uncovered}."


def _places(places: Sequence[WorkloadPlace], shown: Callable[[str], str]) -> str:
    said = (
        f"{f'{shown(item.device)} on ' if item.device else ''}{shown(item.cluster)}"
        for item in places
    )
    return joined(said, _LINES)


def policy_changes(plan: Plan, shown: Callable[[str], str] = UntrustedName) -> Iterator[str]:
    """Yield on which clusters policies change, and that what runs there is uncovered meanwhile."""
    clusters = [shown(item.cluster) for item in plan.enforcement_changes]
    named = f"{counted(len(clusters), 'cluster')} ({joined(clusters, _LINES)})"
    if clusters and any(item.uncovered for item in plan.moves):
        yield (
            f"Policies change on {named}: GPUs are divided anew, and what runs there is uncovered"
            f" at least {STABLE_SECONDS // 60} minutes."
        )
    elif clusters:
        yield f"Policies change on {named}."


def issue_lines(plan: Plan) -> list[str]:
    """Return the issues of a plan, but those about others."""
    sentences = (
        f"Issue: {item.reason}: {quoted(item.message)}"
        for item in plan.issues
        if item.reason != UNCOVERS_OTHERS
    )
    return first_lines(sentences, ISSUES_SHOWN, what=" issues")


def worst_first(moves: Iterable[WorkloadMove]) -> list[WorkloadMove]:
    """Return moves, those that take most away first."""
    return sorted(moves, key=lambda item: (WORST_FIRST.index(item.action), not item.uncovered))


def writes_by_action(plan: Plan) -> dict[str, int]:
    """Return how many objects a plan creates, changes and deletes."""
    return dict(Counter(describe(change).action for change in plan.changes))


def first_lines(lines: Iterable[str], most: int, *, of: int = 0, what: str = "") -> list[str]:
    """Return the first lines, then one that counts the rest; `of`: how many there are in all."""
    every = list(lines)
    left = max(len(every), of) - most
    return [*every[:most], *([f"and {left} more{what}"] if left > 0 else [])]


def _first(lines: Iterable[str], of: int = 0) -> list[str]:
    return first_lines(lines, _LINES, of=of)
