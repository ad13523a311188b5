"""A plan as tables for a terminal."""

from collections.abc import Iterator

from dsf.api.untrusted_text import listed
from dsf.cli.output import TextTable
from optimizer.plan.generated_objects import describe
from optimizer.plan.plan import Plan
from optimizer.plan.text.explanation_sections import explanation_sections, first_rows

_EQUAL_VALUES = 1e-6
"""Objective units below which the sum of the scores and the objective are equal."""


def render(plan: Plan) -> str:
    """Return a plan as tables: removals, places, unplaced, issues, changes and explanation."""
    tables = (str(table) for table in _tables(plan) if table.rows or table.title)
    return "\n\n".join([_headline(plan), *tables]) + "\n"


def _headline(plan: Plan) -> str:
    """Return the status, the objective and its bound, the solver and the digest on one line."""
    solution = plan.solution
    failed = ", the solver failed" if solution.failure else ""
    value = f"{solution.status}{failed}: objective {solution.objective_value:g}{_costs(plan)}"
    if solution.status == "Feasible" and solution.bound is not None:
        value += f", at most {solution.bound:g} is possible"
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
    places = [
        (item.workload, item.cluster, item.device, item.policy, f"{item.score:g}")
        for item in plan.placements
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
