"""An explanation as tables for a terminal, and as lines for a model."""

from collections.abc import Iterable, Iterator, Sequence

from dsf.cli.columns import aligned
from optimizer.domain.quantity import spelt
from optimizer.wire.explanation import (
    AssignmentReason,
    AssignmentRef,
    BindingLimit,
    Explanation,
    GpusToDrain,
    ObjectiveLoss,
    ParetoPoint,
    ParetoSet,
    TransitionPlan,
    TransitionStep,
    UnplacedReason,
    WhyNotAnswer,
)

_SHOWN = 20

Row = tuple[str, ...]


def sections(found: Explanation) -> Iterator[str]:
    """Yield the parts of an explanation as tables."""
    if found.places:
        yield _table(("why here", "on", "runner-up", "without it"), map(_place, found.places))
    if found.unplaced:
        yield _table(("why not placed", "", ""), (row for i in found.unplaced for row in _out(i)))
    if found.binding:
        yield _table(("used up", "used", "price of one more"), map(_binding, found.binding))
    if found.why_not:
        yield _table(("why not", "loses", ""), map(_why_not, found.why_not))
    if found.pareto is not None:
        yield _pareto(found.pareto)
    if found.transition is not None:
        yield _transition(found.transition)
    if found.not_computed:
        yield _table(("not computed",), ((item,) for item in found.not_computed))


def lines(found: Explanation) -> list[str]:
    """Return an explanation as sentences: first what was asked, of long lists the first items."""
    return [
        *map(_sentence, found.unplaced),
        *(f"{item.asked}: {item.message}." for item in found.why_not),
        *_told(map(_point, found.pareto.points) if found.pareto else ()),
        *([f"Pareto set: {found.pareto.message}."] if found.pareto else []),
        *(_way(found.transition) if found.transition else ()),
        *(f"Not computed: {item}." for item in found.not_computed),
        *_told(map(_used_up, found.binding)),
        *_told(map(_without, found.places)),
    ]


def _told(sentences: Iterable[str]) -> list[str]:
    listed = list(sentences)
    left = len(listed) - _SHOWN
    return [*listed[:_SHOWN], *([f"And {left} more of these."] if left > 0 else [])]


def _point(point: ParetoPoint) -> str:
    values = ", ".join(f"{name} {value:g}" for name, value in point.values.items())
    return f"Pareto point {values}: {_spots(point.places) or 'no place'}."


def _way(found: TransitionPlan) -> Iterator[str]:
    yield f"Steps to get there: {len(found.steps)}; {found.message}."
    for number, step in enumerate(found.steps[:_SHOWN], 1):
        told = "; ".join(f"{action} {what}" for action, what in _actions(step))
        yield f"Step {number} of {len(found.steps)}: {told}."


def _used_up(item: BindingLimit) -> str:
    limit, used, price = _binding(item)
    return f"Used up: {limit}, {used}; price of one more: {price}."


def _without(item: AssignmentReason) -> str:
    workload, place, runner_up, without = _place(item)
    return f"{workload} on {place}: runner-up {runner_up}; without it: {without}."


def _table(heads: Row, rows: Iterable[Row]) -> str:
    listed = list(rows)
    left = len(listed) - _SHOWN
    more = [("...", f"{left} more", *[""] * (len(heads) - 2))[: len(heads)]] if left > 0 else []
    return aligned(heads, [*listed[:_SHOWN], *more])


def _place(item: AssignmentReason) -> Row:
    other = item.runner_up
    runner_up = f"{other.device} of {other.cluster} ({other.score:g})" if other else "none"
    if item.at_most is None:
        return item.workload, _on(item), runner_up, "not computed"
    instead = ", ".join(f"{spot.device} of {spot.cluster}" for spot in item.instead) or "no place"
    bound = "" if item.margin else "at most: "
    return item.workload, _on(item), runner_up, f"{bound}{_lost(item.at_most)}, then {instead}"


def _on(item: AssignmentReason) -> str:
    return f"{item.device} of {item.cluster} ({item.score:g})"


def _lost(lost: ObjectiveLoss) -> str:
    if lost.by_priority:
        parts = (f"{value:g} at priority {key}" for key, value in lost.by_priority.items() if value)
        return f"loses {', '.join(parts) or '0'}"
    return f"loses {lost.total:g}"


def _out(item: UnplacedReason) -> Iterator[Row]:
    yield item.workload, "why", item.message
    yield from (("", "limit", limit.message) for limit in item.limits)
    if item.remedy is not None:
        verified = "solved again" if item.remedy.verified else "not enough by itself"
        for change in item.remedy.changes:
            yield "", "change", f"{change.message} ({verified})"
        if item.remedy.losing:
            yield "", "", f"which takes a place from {', '.join(item.remedy.losing)}"


def _sentence(item: UnplacedReason) -> str:
    limits = "; ".join(limit.message for limit in item.limits)
    told = f"{item.workload}: {item.message}{f': {limits}' if limits else ''}."
    if item.remedy is None:
        return told
    changes = ", and ".join(change.message for change in item.remedy.changes)
    return f"{told} It would have a place after this: {changes}." if item.remedy.verified else told


def _binding(item: BindingLimit) -> Row:
    if item.price is None:
        return item.limit, spelt(item.used), "not computed"
    single = len(item.price) == 1
    parts = (
        f"{price:g}" if single else f"{price:g} at priority {key}"
        for key, price in item.price.items()
        if single or price
    )
    return item.limit, spelt(item.used), f"{', '.join(parts) or '0'} (linear relaxation)"


def _why_not(item: WhyNotAnswer) -> Row:
    lost = "" if item.lost is None else _lost(item.lost).removeprefix("loses ")
    return item.asked, lost, item.message


def _pareto(found: ParetoSet) -> str:
    names = list(found.points[0].values) if found.points else []
    rows = [
        (
            *(f"{value:g}" for value in point.values.values()),
            ", ".join(f"{item.policy} on {item.cluster}" for item in point.policies[:_SHOWN]),
            _spots(point.places),
        )
        for point in found.points
    ]
    complete = "complete" if found.complete else "not complete"
    return f"Pareto set, {complete}: {found.message}\n" + aligned(
        (*names, "policies", "places"), rows
    )


def _transition(found: TransitionPlan) -> str:
    rows = [
        (str(number), action, what)
        for number, step in enumerate(found.steps, 1)
        for action, what in _actions(step)
    ]
    return f"Transition: {found.message}\n" + aligned(("step", "action", "what"), rows)


def _actions(step: TransitionStep) -> Iterator[tuple[str, str]]:
    for action, what in (
        ("idle first", ", ".join(map(_drained, step.draining))),
        ("release", ", ".join(f"{item.policy} on {item.cluster}" for item in step.release)),
        ("enforce", ", ".join(f"{item.policy} on {item.cluster}" for item in step.enforce)),
        ("start", _spots(step.start)),
        ("stop", _spots(step.stop)),
        ("uncovered", ", ".join(step.uncovered)),
    ):
        if what:
            yield action, what


def _drained(item: GpusToDrain) -> str:
    named = item.gpus or ()
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    which = f"GPU {', '.join(named[:_SHOWN])}{more}" if named else f"all that {item.policy} divides"
    return f"{which} on {item.cluster}"


def _spots(places: Sequence[AssignmentRef]) -> str:
    told = [f"{item.workload} on {item.device} of {item.cluster}" for item in places[:_SHOWN]]
    left = len(places) - _SHOWN
    return ", ".join(told) + (f" and {left} more" if left > 0 else "")
