"""A plan and its explanation: tables for a terminal, and sentences of the explanation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import joined, listed
from dsf.cli.output import TextTable
from optimizer.plan.generated_objects import describe
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import inversions, possible_gain
from optimizer.wire import explanation

_EQUAL_VALUES = 1e-6
"""Objective units below which the sum of the scores and the objective are equal."""


def render(plan: Plan) -> str:
    """Return a plan as tables: removals, places, unplaced, issues, changes and explanation."""
    tables = (str(table) for table in _tables(plan) if table.rows or table.title)
    return "\n\n".join([_headline(plan), *inversions(plan.request), *tables]) + "\n"


def _headline(plan: Plan) -> str:
    """Return the status, the objective and its bound, the solver and the digest on one line."""
    solution = plan.solution
    failed = ", the solver failed" if solution.failure else ""
    value = f"{solution.status}{failed}: objective {solution.objective_value:g}{_costs(plan)}"
    if solution.status == "Feasible" and solution.bound is not None:
        more = f" ({possible_gain(solution.gap)})" if solution.gap is not None else ""
        value += f", at most {solution.bound:g} is possible{more}"
    return f"{value} ({solution.solver}, plan {plan.digest[:12]})"


def _costs(plan: Plan) -> str:
    """Return why the objective is not the sum of the scores shown; empty where it is."""
    scores = sum(item.score for item in plan.placements)
    costs = scores - plan.solution.objective_value
    if abs(costs) < _EQUAL_VALUES:
        return ""
    return f" = {scores:g} of scores - {costs:g} of moves and changes"


def _tables(plan: Plan) -> Iterator[TextTable]:
    """Yield the tables of a plan; removals come first, because people must notice them."""
    gone = [(item.workload, listed(item.clusters), item.message) for item in plan.removals]
    yield TextTable(("removed workload", "clusters", "message"), gone)
    scored = {item.workload for item in plan.moves if item.gain}
    places = [
        (item.workload, item.cluster, item.device, item.policy, score)
        for item in plan.placements
        for score in (f"{item.score:g}" if item.workload in scored else "",)
    ]
    yield TextTable(("workload", "cluster", "device", "policy", "score"), places)
    left = [(item.workload, item.reason, item.message) for item in plan.unplaced]
    yield TextTable(("unplaced", "reason", "message"), left)
    issues = first_rows((item.reason, item.message) for item in plan.issues)
    yield TextTable(("issue", "message"), issues)
    changes = map(describe, plan.changes)
    writes = [(item.action, item.kind, item.namespace, item.name) for item in changes]
    yield TextTable(("change", "kind", "namespace", "name"), writes)
    if plan.explanation is not None:
        yield from (section.table for section in explanation_sections(plan.explanation))


SHOWN = 20
"""Rows of a long table, sentences of a long list, names in a cell: what a screen holds at once."""

Row = tuple[str, ...]


class Section(NamedTuple):
    """One part of an explanation: a table, and sentences that say the same."""

    table: TextTable
    sentences: Sequence[str]


def explanation_sections(found: explanation.Explanation) -> Iterator[Section]:
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


def explanation_sentences(found: explanation.Explanation) -> list[str]:
    """Return an explanation in sentences; a long list is cut and its rest counted."""
    return [text for section in explanation_sections(found) for text in section.sentences]


def _unplaced(reasons: tuple[explanation.UnplacedReason, ...]) -> Section:
    rows = first_rows(row for item in reasons for row in _unplaced_rows(item))
    sentences = tuple(map(_unplaced_sentence, reasons))
    return Section(TextTable(("why not placed", "", ""), rows), sentences)


def _unplaced_rows(item: explanation.UnplacedReason) -> Iterator[Row]:
    yield item.workload, "why", item.message
    yield from (("", "limit", limit.message) for limit in item.limits)
    if item.remedy is not None:
        verified = "solved again" if item.remedy.verified else "not enough alone"
        for change in item.remedy.changes:
            yield "", "repair", f"{change.message} ({verified})"
        if item.remedy.losing:
            yield "", "", f"fewer places then: {listed(item.remedy.losing)}"


def _unplaced_sentence(item: explanation.UnplacedReason) -> str:
    limits = "; ".join(limit.message for limit in item.limits)
    sentence = f"{item.workload}: {item.message}{f': {limits}' if limits else ''}."
    if item.remedy is None or not item.remedy.verified:
        return sentence
    changes = ", and ".join(change.message for change in item.remedy.changes)
    return f"{sentence} It would have a place after this: {changes}."


def _why_not(answers: tuple[explanation.WhyNotAnswer, ...]) -> Section:
    rows = [
        (item.asked, "" if item.lost is None else _amount(item.lost), item.message)
        for item in answers
    ]
    sentences = tuple(f"{item.asked}: {item.message}." for item in answers)
    return Section(TextTable(("why not", "loss", ""), first_rows(rows)), sentences)


def _pareto(found: explanation.ParetoSet) -> Section:
    names = tuple(found.points[0].values) if found.points else ()
    complete = "complete" if found.complete else "not complete"
    title = f"Pareto set, {complete}: {found.message}"
    sentences = (*_first_sentences(map(_point_sentence, found.points)), f"{title}.")
    rows = tuple(map(_point_row, found.points))
    return Section(TextTable((*names, "policies", "places"), rows, title), sentences)


def _point_row(point: explanation.ParetoPoint) -> Row:
    policies = _first_names([f"{item.policy} on {item.cluster}" for item in point.policies])
    values = (f"{value:g}" for value in point.values.values())
    return *values, policies, _assignments(point.places)


def _point_sentence(point: explanation.ParetoPoint) -> str:
    values = ", ".join(f"{name} {value:g}" for name, value in point.values.items())
    return f"Pareto point {values}: {_assignments(point.places) or 'no place'}."


def _transition(found: explanation.TransitionPlan) -> Section:
    numbered = list(enumerate(found.steps, 1))
    rows = tuple((str(number), *row) for number, step in numbered for row in _actions(step))
    title = f"Transition: {found.message}"
    steps = (
        f"Step {number} of {len(numbered)}:"
        f" {'; '.join(f'{action} {what}' for action, what in _actions(step))}."
        for number, step in numbered
    )
    sentences = (f"{title}.", *_first_sentences(steps))
    return Section(TextTable(("step", "action", "what"), rows, title), sentences)


def _actions(step: explanation.TransitionStep) -> Iterator[tuple[str, str]]:
    for action, what in (
        ("idle first", ", ".join(map(_drained, step.draining))),
        ("release", ", ".join(f"{item.policy} on {item.cluster}" for item in step.release)),
        ("enforce", ", ".join(f"{item.policy} on {item.cluster}" for item in step.enforce)),
        ("start", _assignments(step.start)),
        ("stop", _assignments(step.stop)),
        ("uncovered", listed(step.uncovered)),
    ):
        if what:
            yield action, what


def _drained(item: explanation.GpusToDrain) -> str:
    named = f"GPU {_first_names(item.gpus)}" if item.gpus else f"all that {item.policy} divides"
    return f"{named} on {item.cluster}"


def _not_computed(parts: tuple[str, ...]) -> Section:
    sentences = tuple(f"Not computed: {item}." for item in parts)
    return Section(TextTable(("not computed",), first_rows((item,) for item in parts)), sentences)


def _binding(limits: tuple[explanation.BindingLimit, ...]) -> Section:
    rows = [(item.limit, format_quantity(item.used), _price(item)) for item in limits]
    sentences = [
        f"Used up: {limit}, {used}; price of one more: {price}." for limit, used, price in rows
    ]
    columns = ("used up", "used", "price of one more")
    return Section(TextTable(columns, first_rows(rows)), _first_sentences(sentences))


def _price(item: explanation.BindingLimit) -> str:
    if item.price is None:
        return "not computed"
    single = len(item.price) == 1
    parts = (
        f"{price:g}" if single else f"{price:g} at priority {key}"
        for key, price in item.price.items()
        if single or price
    )
    return f"{', '.join(parts) or '0'} (linear relaxation)"


def _places(reasons: tuple[explanation.AssignmentReason, ...]) -> Section:
    rows = [
        (item.workload, _scored(item), _scored(item.runner_up), _margin(item), _entries(item))
        for item in reasons
    ]
    sentences = (f"{place_sentence(item)}." for item in reasons)
    columns = ("why here", "on", "runner-up", "loss without it", "entries")
    return Section(TextTable(columns, first_rows(rows)), _first_sentences(sentences))


def place_sentence(item: explanation.AssignmentReason, verb: str = "is") -> str:
    """Return why a workload is on a device: its best other one, and the loss without this one."""
    by = f" by {_entries(item)}" if item.entries else ""
    here = f"{item.workload} {verb} on {item.device} of {item.cluster} (worth {item.score:g}{by})"
    if item.runner_up is None:
        return f"{here}: it can use no other device"
    lost = f"; without this place the plan loses {_margin(item)}" if item.at_most else ""
    other = f"next best for it alone is {_scored(item.runner_up)}"
    if item.runner_up.score > item.score + _EQUAL_VALUES:
        other = f"{_scored(item.runner_up)} is better for it alone"
        if item.runner_up.taken_by:
            other += f", but the plan has {listed(item.runner_up.taken_by)} there"
        # Only of an optimal plan is a loss known.
        other += f"; no plan with {item.workload} there is better" if item.at_most else ""
    return f"{here}: {other}{lost}"


def _entries(item: explanation.AssignmentReason) -> str:
    """Return the entries of an assignment: `headroom n1 (the highest of 3)`."""
    return ", ".join(f"{score} {entry}" for score, entry in item.entries.items()) or "none"


def _scored(item: explanation.AssignmentReason | explanation.RunnerUp | None) -> str:
    return f"{item.device} of {item.cluster} ({item.score:g})" if item else "none"


def _margin(item: explanation.AssignmentReason) -> str:
    """Return the loss in the best plan without an assignment: `5 (then on 3g.48gb of west)`."""
    if item.at_most is None:
        return "not computed"
    bound = "" if item.margin else "at most "
    on = ", ".join(f"{other.device} of {other.cluster}" for other in item.instead)
    where = f"on {on}" if on else "without a place"
    margin = item.margin
    equal = margin is not None and not (margin.total or any(margin.by_priority.values()))
    return f"{bound}{_amount(item.at_most)} ({'equally good' if equal else 'then'} {where})"


def _amount(loss: explanation.ObjectiveLoss) -> str:
    if not loss.by_priority:
        return f"{loss.total:g}"
    parts = (f"{value:g} at priority {key}" for key, value in loss.by_priority.items() if value)
    return ", ".join(parts) or "0"


def first_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the first rows, then one that counts the rest."""
    every = tuple(rows)
    left = len(every) - SHOWN
    if left <= 0:
        return every
    width = len(every[0])
    return (*every[:SHOWN], ("...", f"{left} more", *[""] * width)[:width])


def _first_sentences(sentences: Iterable[str]) -> tuple[str, ...]:
    every = tuple(sentences)
    left = len(every) - SHOWN
    return (*every[:SHOWN], *([f"And {left} more of these."] if left > 0 else []))


def _first_names(names: Sequence[str]) -> str:
    return joined(names, SHOWN)


def _assignments(places: Sequence[explanation.AssignmentRef]) -> str:
    """Return where workloads run: `chat on 3g.48gb of east, search on 2g.24gb of west`."""
    return _first_names([f"{item.workload} on {item.device} of {item.cluster}" for item in places])
