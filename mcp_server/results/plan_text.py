"""Plans in a few lines, told by workload; what others wrote is quoted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from dsf.api.plural import counted, joined
from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, quoted, quoted_name
from mcp_server.results.plan_views import (
    ISSUES_SHOWN,
    POINTS_SHOWN,
    WORST_FIRST,
    ComparisonView,
    FollowView,
    PlanView,
    worst_first,
)
from mcp_server.results.result_text import first_lines, whose
from optimizer.overview.placement_answer import PlacementAnswer
from optimizer.placement_status.text import placed_sentence, status_sentences
from optimizer.plan.plan import Plan
from optimizer.plan.text import plan_sections
from optimizer.plan.text.explanation_sections import explanation_sentences
from optimizer.plan.uncovered_others import UNCOVERS_OTHERS
from optimizer.rollout.text import rollout_headline
from optimizer.wire.result import MoveAction, WorkloadMove, WorkloadPlace

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
"""Lines of one list in a text; the structured result has more."""


def plan_text(plan: Plan, view: PlanView, *, read_only: bool) -> str:
    """Return the verdict, what becomes of each workload, and how to apply the plan."""
    taken = [view.objective_from.message] if view.objective_from else []
    return "\n".join([*taken, *story(plan, view), next_step(view, read_only=read_only)]).strip()


def story(plan: Plan, view: PlanView) -> list[str]:
    """Return a plan in sentences, by workload."""
    totals = _totals(view.totals)
    moves = [item for item in worst_first(plan.moves) if item.action != "stays"]
    stays = len(plan.moves) - len(moves)
    lines = [
        *_others(plan),
        *_first(f"The plan {quoted(item.message)}" for item in plan.removals),
        f"{plan_sections.verdict(plan)}{f' Totals: {totals}.' if totals else ''}",
        *_first(map(move_sentence, moves)),
    ]
    if stays:
        lines.append(f"{counted(stays, 'workload')} unchanged.")
    lines += [*_policies(plan), *_issues(plan)]
    if plan.explanation is not None:
        computed = explanation_sentences(plan.explanation)
        lines += _first(f"Computed: {quoted(line, MESSAGE_LIMIT)}" for line in computed)
    return lines


def _policies(plan: Plan, shown: Callable[[str], str] = UntrustedName) -> Iterator[str]:
    clusters = [shown(item.cluster) for item in plan.enforcement_changes]
    named = f"{counted(len(clusters), 'cluster')} ({joined(clusters, _LINES)})"
    if clusters and any(item.uncovered for item in plan.moves):
        yield (
            f"Policies change on {named}: GPUs are divided anew, and what runs there is uncovered"
            f" at least {STABLE_SECONDS // 60} minutes."
        )
    elif clusters:
        yield f"Policies change on {named}."


def _issues(plan: Plan) -> list[str]:
    told = (
        f"Issue: {item.reason}: {quoted(item.message)}"
        for item in plan.issues
        if item.reason != UNCOVERS_OTHERS
    )
    return first_lines(told, ISSUES_SHOWN, what=" issues")


def _others(plan: Plan) -> list[str]:
    """Return whom else a plan uncovers."""
    found = (item for item in plan.issues if item.reason == UNCOVERS_OTHERS)
    return _first(f"Others: {quoted(item.message)}" for item in found)


def next_step(view: PlanView, *, read_only: bool) -> str:
    """Return how to apply the plan."""
    if not view.applicable:
        return "Nothing was written. It rests on what was pretended, so it can't be applied."
    if not view.writes:
        return "Nothing would be written: the hub has this plan, or nothing can be placed."
    if read_only:
        return (
            "Nothing was written. This server is read-only, so a person has to apply the plan."
            f" Digest {UntrustedName(view.digest)}"
        )
    return (
        "Nothing was written. To apply exactly this plan, show it to the user, then call"
        f" apply_plan with digest {UntrustedName(view.digest)}"
    )


def question(plan: Plan, view: PlanView, hub: str) -> str:
    """Return the question that a user answers before a plan is applied.

    It begins with how much is at stake. Each name that others chose stands in quotes, and each list
    ends with the count of its rest.
    """
    counts = Counter(item.action for item in plan.moves)
    told = [
        f"{_AT_STAKE[action]} {counts[action]}"
        for action in WORST_FIRST
        if counts[action] or action in ("stops", "moves", "starts")
    ]
    uncovered = sum(item.uncovered for item in plan.moves)
    told_of = {item.workload for item in plan.removals}
    moves = [
        item
        for item in worst_first(plan.moves)
        if item.action != "stays" and item.workload not in told_of
    ]
    writes = ", ".join(f"{action} {count}" for action, count in view.writes.items())
    request = plan.request
    where = whose(hub, request.namespace, request.optimization)
    lines = [
        f"{', '.join(told).capitalize()} of {counted(len(plan.moves), 'workload')} on {where}?",
        *([f"Uncovered meanwhile: {counted(uncovered, 'workload')}."] if uncovered else []),
        *_others(plan),
        *_first(f"The plan {quoted(item.message)}" for item in plan.removals),
        *_first(move_sentence(item, quoted_name) for item in moves),
        *_policies(plan, quoted_name),
        *([f"It is written in {counted(len(view.steps), 'step')}."] if view.steps else []),
        plan_sections.verdict(plan),
        *_issues(plan),
        f"Objects: {writes}.",
        f"Digest: {plan.digest}",
    ]
    return "\n".join(lines)


def move_sentence(item: WorkloadMove, shown: Callable[[str], str] = UntrustedName) -> str:
    """Return what becomes of one workload; `shown` returns a name that others chose, made safe."""
    before, after = _places(item.before, shown), _places(item.after, shown)
    name = shown(item.workload)
    match item.action:
        case "starts":
            said = f"{name} starts on {after}"
        case "moves" | "shrinks":
            said = f"{name} {item.action} from {before} to {after}"
        case "stops":
            said = f"{name} stops on {before}"
        case "waits":
            said = f"{name} has no place"
        case "stays":
            said = f"{name} stays on {after}"
    gains = [f"{amount:+g} {shown(score)}" for score, amount in item.gain.items() if amount]
    why = f": {UntrustedName(item.why)}" if item.why else ""
    uncovered = "; uncovered until its policy is compliant" if item.uncovered else ""
    return f"{', '.join([f'{said}{why}', *gains])}{uncovered}."


def explanation_text(view: PlacementAnswer) -> str:
    """Return the answer first, then what would change it."""
    lines = [quoted(view.answer, MESSAGE_LIMIT)]
    if view.unplaced is not None:
        lines += [f"Limit: {quoted(item.message, MESSAGE_LIMIT)}" for item in view.unplaced.limits]
        remedy = view.unplaced.remedy
        for change in remedy.changes if remedy else ():
            lines.append(f"It would have a place after this: {quoted(change.message)}")
    return "\n".join([*_first(lines), "Next: plan_placement with what_if tries a change."])


def comparison_text(view: ComparisonView, *, applicable: bool, failures: Sequence[str] = ()) -> str:
    """Return a line for each plan, then the trade-offs; and what to call if they can be applied.

    `failures`: why a plan may not be the best, or trade-offs are missing.
    """
    lines = [
        f"{quoted(item.objective)}: {_totals(item.totals)}; {item.moved} moved,"
        f" {item.uncovered} uncovered, {item.unplaced} unplaced,"
        f" {counted(item.changed_clusters, 'cluster')} divided anew; {item.status}, digest"
        f" {UntrustedName(item.digest)}"
        for item in view.plans
    ]
    points = len(view.trade_offs) + view.omitted.get("trade_offs", 0)
    told = (f"Trade-off: {_totals(item.values)}" for item in view.trade_offs)
    lines += [quoted(text, MESSAGE_LIMIT) for text in failures]
    lines += first_lines(told, POINTS_SHOWN, of=points, what=" trade-offs")
    if view.complete:
        lines.append("No other trade-off exists.")
    if applicable:
        lines.append("Next: show the user one, and call apply_plan with its digest.")
    return "\n".join(lines)


def follow_text(view: FollowView, optimization: str) -> str:
    """Return how far the rollout and each placement of an optimization are."""
    lines = []
    if view.rollout is not None:
        lines = [quoted(rollout_headline(view.rollout), MESSAGE_LIMIT)]
        lines += [
            f"Waits for {UntrustedName(item.reason)}: {quoted(item.message, MESSAGE_LIMIT)}"
            for item in view.rollout.waiting_for
        ]
    namespace = view.status.namespace
    lines.append(placed_sentence(namespace, optimization, view.landed, view.placed))
    if view.in_force:
        lines.append(f"In force: {quoted(view.in_force, MESSAGE_LIMIT)}.")
    waiting = [item for item in view.status.workloads if item.state != "Landed"]
    shown = view.status.model_copy(update={"workloads": tuple(waiting), "policies": ()})
    drift = len(view.status.drift) + view.omitted.get("drift", 0)
    told = (quoted(line, MESSAGE_LIMIT) for line in status_sentences(shown))
    lines += _first(told, view.placed - view.landed + drift)
    if waiting or drift:
        lines.append("Next: diagnose says what to do; call follow_rollout again later.")
    return "\n".join(lines)


def _places(places: Sequence[WorkloadPlace], shown: Callable[[str], str]) -> str:
    said = (
        f"{f'{shown(item.device)} on ' if item.device else ''}{shown(item.cluster)}"
        for item in places
    )
    return joined(said, _LINES)


def _totals(totals: Mapping[str, float]) -> str:
    return ", ".join(f"{UntrustedName(name)} {value:g}" for name, value in totals.items())


def _first(lines: Iterable[str], of: int = 0) -> list[str]:
    return first_lines(lines, _LINES, of=of)
