"""Plans in a few lines, told by workload; what others wrote is quoted."""

from collections.abc import Iterable, Mapping, Sequence

from dsf.api.plural import counted
from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, listed, quoted
from mcp_server.results.plan_views import ComparisonView, FollowView, PlanView
from optimizer.overview.placement_answer import PlacementAnswer
from optimizer.placement_status.text import status_headline, status_sentences
from optimizer.plan.plan import Plan
from optimizer.plan.text import plan_sections
from optimizer.plan.text.explanation_sections import explanation_sentences
from optimizer.rollout.text import rollout_headline
from optimizer.wire.result import WorkloadMove, WorkloadPlace

STABLE_SECONDS = 120
"""The policy watcher's default of --stable-duration-sec: what a policy must stay compliant."""

_LINES = 12
"""Lines of one list in a text; the structured result has more."""


def plan_text(plan: Plan, view: PlanView, *, read_only: bool) -> str:
    """Return the verdict, what becomes of each workload, and how to apply the plan."""
    return "\n".join([*story(plan, view), next_step(view, read_only=read_only)]).strip()


def story(plan: Plan, view: PlanView) -> list[str]:
    """Return a plan in sentences, by workload."""
    totals = _totals(view.totals)
    moves = [move_sentence(item) for item in plan.moves if item.action != "stays"]
    stays = len(plan.moves) - len(moves)
    lines = [
        *(f"The plan {quoted(item.message)}" for item in plan.removals[:_LINES]),
        f"{plan_sections.verdict(plan)}{f' Totals: {totals}.' if totals else ''}",
        *_first(moves),
    ]
    if stays:
        lines.append(f"{counted(stays, 'workload')} unchanged.")
    changed = [item.cluster for item in plan.enforcement_changes]
    if changed and any(item.uncovered for item in plan.moves):
        lines.append(
            f"Policies change on {_few(changed)}: GPUs are divided anew, and what runs there is"
            f" uncovered at least {STABLE_SECONDS // 60} minutes."
        )
    elif changed:
        lines.append(f"Policies change on {_few(changed)}.")
    lines += [f"Issue: {item.reason}: {quoted(item.message)}" for item in view.issues]
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


def question(plan: Plan, view: PlanView) -> str:
    """Return the question that a user answers before a plan is applied."""
    writes = ", ".join(f"{action} {count}" for action, count in view.writes.items())
    told = "\n".join(story(plan, view))
    return f"Apply this plan to the hub?\n{told}\nObjects: {writes}.\nDigest: {plan.digest}"


def move_sentence(item: WorkloadMove) -> str:
    """Return what becomes of one workload."""
    before, after, name = _places(item.before), _places(item.after), UntrustedName(item.workload)
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
    gains = [f"{amount:+g} {UntrustedName(score)}" for score, amount in item.gain.items() if amount]
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


def comparison_text(view: ComparisonView, *, applicable: bool) -> str:
    """Return a line for each plan, then the trade-offs; and what to call if they can be applied."""
    lines = [
        f"{quoted(item.objective)}: {_totals(item.totals)}; {item.moved} moved,"
        f" {item.uncovered} uncovered, {item.unplaced} unplaced,"
        f" {counted(item.changed_clusters, 'cluster')} divided anew; {item.status}, digest"
        f" {UntrustedName(item.digest)}"
        for item in view.plans
    ]
    lines += [f"Trade-off: {_totals(item.values)}" for item in view.trade_offs]
    if view.complete:
        lines.append("No other trade-off exists.")
    if applicable:
        lines.append("Next: show the user one, and call apply_plan with its digest.")
    return "\n".join(lines)


def follow_text(view: FollowView) -> str:
    """Return how far the rollout and each placement are."""
    lines = []
    if view.rollout is not None:
        lines = [quoted(rollout_headline(view.rollout), MESSAGE_LIMIT)]
        lines += [
            f"Waits for {UntrustedName(item.reason)}: {quoted(item.message, MESSAGE_LIMIT)}"
            for item in view.rollout.waiting_for
        ]
    lines.append(status_headline(view.status))
    waiting = [item for item in view.status.workloads if item.state != "Landed"]
    shown = view.status.model_copy(update={"workloads": tuple(waiting), "policies": ()})
    lines += _first(quoted(line, MESSAGE_LIMIT) for line in status_sentences(shown))
    if waiting or view.status.drift:
        lines.append("Next: diagnose says what to do; call follow_rollout again later.")
    return "\n".join(lines)


def _places(places: Sequence[WorkloadPlace]) -> str:
    return " and ".join(
        f"{f'{UntrustedName(item.device)} on ' if item.device else ''}{UntrustedName(item.cluster)}"
        for item in places
    )


def _totals(totals: Mapping[str, float]) -> str:
    return ", ".join(f"{UntrustedName(name)} {value:g}" for name, value in totals.items())


def _few(names: Sequence[str]) -> str:
    left = len(names) - _LINES
    return listed(names[:_LINES]) + (f" and {left} more" if left > 0 else "")


def _first(lines: Iterable[str]) -> list[str]:
    every = list(lines)
    left = len(every) - _LINES
    return [*every[:_LINES], *([f"and {left} more"] if left > 0 else [])]
