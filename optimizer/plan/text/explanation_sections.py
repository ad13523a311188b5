"""An explanation in words: tables for a terminal, and sentences for a model."""

from collections.abc import Callable, Iterator
from typing import Any

from dsf.api.untrusted_text import listed
from optimizer.domain.quantity import format_quantity
from optimizer.plan.text.sections import (
    Row,
    Section,
    assignments,
    first_names,
    first_rows,
    first_sentences,
)
from optimizer.wire.explanation import (
    AssignmentReason,
    BindingLimit,
    Explanation,
    GpusToDrain,
    ObjectiveLoss,
    ParetoPoint,
    ParetoSet,
    RunnerUp,
    TransitionPlan,
    TransitionStep,
    UnplacedReason,
    WhyNotAnswer,
)


def explanation_sections(found: Explanation) -> Iterator[Section]:
    """Yield the parts of an explanation; the answers to questions come first."""
    parts: tuple[tuple[Any, Callable[[Any], Section]], ...] = (
        (found.unplaced, _unplaced),
        (found.why_not, _why_not),
        (found.pareto, _pareto),
        (found.transition, _transition),
        (found.not_computed, _not_computed),
        (found.binding, _binding),
        (found.places, _places),
    )
    yield from (section(part) for part, section in parts if part)


def explanation_sentences(found: Explanation) -> list[str]:
    """Return an explanation in sentences; a long list is cut and its rest counted."""
    return [text for section in explanation_sections(found) for text in section.sentences]


def _unplaced(reasons: tuple[UnplacedReason, ...]) -> Section:
    rows = first_rows(row for item in reasons for row in _unplaced_rows(item))
    sentences = tuple(map(_unplaced_sentence, reasons))
    return Section("conflicts", ("why not placed", "", ""), rows, sentences)


def _unplaced_rows(item: UnplacedReason) -> Iterator[Row]:
    yield item.workload, "why", item.message
    yield from (("", "limit", limit.message) for limit in item.limits)
    if item.remedy is not None:
        verified = "solved again" if item.remedy.verified else "not enough alone"
        for change in item.remedy.changes:
            yield "", "repair", f"{change.message} ({verified})"
        if item.remedy.losing:
            yield "", "", f"fewer places then: {listed(item.remedy.losing)}"


def _unplaced_sentence(item: UnplacedReason) -> str:
    limits = "; ".join(limit.message for limit in item.limits)
    told = f"{item.workload}: {item.message}{f': {limits}' if limits else ''}."
    if item.remedy is None or not item.remedy.verified:
        return told
    changes = ", and ".join(change.message for change in item.remedy.changes)
    return f"{told} It would have a place after this: {changes}."


def _why_not(answers: tuple[WhyNotAnswer, ...]) -> Section:
    rows = [
        (item.asked, "" if item.lost is None else _amount(item.lost), item.message)
        for item in answers
    ]
    sentences = tuple(f"{item.asked}: {item.message}." for item in answers)
    return Section("questions", ("why not", "loss", ""), first_rows(rows), sentences)


def _pareto(found: ParetoSet) -> Section:
    names = tuple(found.points[0].values) if found.points else ()
    complete = "complete" if found.complete else "not complete"
    title = f"Pareto set, {complete}: {found.message}"
    sentences = (*first_sentences(map(_point_sentence, found.points)), f"{title}.")
    rows = tuple(map(_point_row, found.points))
    return Section("points", (*names, "policies", "places"), rows, sentences, title)


def _point_row(point: ParetoPoint) -> Row:
    policies = first_names([f"{item.policy} on {item.cluster}" for item in point.policies])
    values = (f"{value:g}" for value in point.values.values())
    return *values, policies, assignments(point.places)


def _point_sentence(point: ParetoPoint) -> str:
    values = ", ".join(f"{name} {value:g}" for name, value in point.values.items())
    return f"Pareto point {values}: {assignments(point.places) or 'no place'}."


def _transition(found: TransitionPlan) -> Section:
    numbered = list(enumerate(found.steps, 1))
    rows = tuple((str(number), *row) for number, step in numbered for row in _actions(step))
    title = f"Transition: {found.message}"
    told = (
        f"Step {number} of {len(numbered)}:"
        f" {'; '.join(f'{action} {what}' for action, what in _actions(step))}."
        for number, step in numbered
    )
    sentences = (f"{title}.", *first_sentences(told))
    return Section("steps", ("step", "action", "what"), rows, sentences, title)


def _actions(step: TransitionStep) -> Iterator[tuple[str, str]]:
    for action, what in (
        ("idle first", ", ".join(map(_drained, step.draining))),
        ("release", ", ".join(f"{item.policy} on {item.cluster}" for item in step.release)),
        ("enforce", ", ".join(f"{item.policy} on {item.cluster}" for item in step.enforce)),
        ("start", assignments(step.start)),
        ("stop", assignments(step.stop)),
        ("uncovered", listed(step.uncovered)),
    ):
        if what:
            yield action, what


def _drained(item: GpusToDrain) -> str:
    named = f"GPU {first_names(item.gpus)}" if item.gpus else f"all that {item.policy} divides"
    return f"{named} on {item.cluster}"


def _not_computed(parts: tuple[str, ...]) -> Section:
    sentences = tuple(f"Not computed: {item}." for item in parts)
    return Section("parts", ("not computed",), first_rows((item,) for item in parts), sentences)


def _binding(limits: tuple[BindingLimit, ...]) -> Section:
    rows = [(item.limit, format_quantity(item.used), _price(item)) for item in limits]
    sentences = [
        f"Used up: {limit}, {used}; price of one more: {price}." for limit, used, price in rows
    ]
    columns = ("used up", "used", "price of one more")
    return Section("binding limits", columns, first_rows(rows), first_sentences(sentences))


def _price(item: BindingLimit) -> str:
    if item.price is None:
        return "not computed"
    single = len(item.price) == 1
    parts = (
        f"{price:g}" if single else f"{price:g} at priority {key}"
        for key, price in item.price.items()
        if single or price
    )
    return f"{', '.join(parts) or '0'} (linear relaxation)"


def _places(reasons: tuple[AssignmentReason, ...]) -> Section:
    rows = [
        (item.workload, _scored(item), _scored(item.runner_up), _margin(item)) for item in reasons
    ]
    sentences = [
        f"{workload} on {on}: runner-up {runner_up}; loss without this place: {margin}."
        for workload, on, runner_up, margin in rows
    ]
    columns = ("why here", "on", "runner-up", "loss without it")
    return Section("margins", columns, first_rows(rows), first_sentences(sentences))


def _scored(item: AssignmentReason | RunnerUp | None) -> str:
    return f"{item.device} of {item.cluster} ({item.score:g})" if item else "none"


def _margin(item: AssignmentReason) -> str:
    """Return the loss in the best plan without an assignment: `5 (then on 3g.48gb of west)`."""
    if item.at_most is None:
        return "not computed"
    bound = "" if item.margin else "at most "
    on = ", ".join(f"{other.device} of {other.cluster}" for other in item.instead)
    where = f"on {on}" if on else "without a place"
    margin = item.margin
    equal = margin is not None and not (margin.total or any(margin.by_priority.values()))
    return f"{bound}{_amount(item.at_most)} ({'equally good' if equal else 'then'} {where})"


def _amount(loss: ObjectiveLoss) -> str:
    if not loss.by_priority:
        return f"{loss.total:g}"
    parts = (f"{value:g} at priority {key}" for key, value in loss.by_priority.items() if value)
    return ", ".join(parts) or "0"
