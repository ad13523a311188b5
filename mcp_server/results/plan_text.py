"""Plans in a few lines, told by workload; what others wrote is quoted."""

from collections.abc import Iterable, Mapping, Sequence

from dsf.api.plural import counted
from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, quoted
from mcp_server.results.plan_views import (
    POINTS_SHOWN,
    ComparisonView,
    FollowView,
    PlanView,
)
from optimizer.overview.placement_answer import PlacementAnswer
from optimizer.placement_status.text import placed_sentence, status_sentences
from optimizer.plan.plan import Plan
from optimizer.plan.text import plan_sections
from optimizer.plan.text.approval_questions import (
    first_lines,
    issue_lines,
    move_sentence,
    policy_changes,
    uncovered_others,
    worst_first,
)
from optimizer.plan.text.explanation_sections import explanation_sentences
from optimizer.rollout.text import rollout_headline

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
        *uncovered_others(plan),
        *_first(f"The plan {quoted(item.message)}" for item in plan.removals),
        f"{plan_sections.verdict(plan)}{f' Totals: {totals}.' if totals else ''}",
        *_first(map(move_sentence, moves)),
    ]
    if stays:
        lines.append(f"{counted(stays, 'workload')} unchanged.")
    lines += [*policy_changes(plan), *issue_lines(plan)]
    if plan.explanation is not None:
        computed = explanation_sentences(plan.explanation)
        lines += _first(f"Computed: {quoted(line, MESSAGE_LIMIT)}" for line in computed)
    return lines


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


def _totals(totals: Mapping[str, float]) -> str:
    return ", ".join(f"{UntrustedName(name)} {value:g}" for name, value in totals.items())


def _first(lines: Iterable[str], of: int = 0) -> list[str]:
    return first_lines(lines, _LINES, of=of)
