"""A plan as tables for a terminal."""

from collections.abc import Iterator

from dsf.cli.output import TextTable
from optimizer.plan.plan import Plan
from optimizer.plan.text import plan_sections
from optimizer.plan.text.explanation_sections import explanation_sections
from optimizer.plan.text.sections import Section


def render(plan: Plan) -> str:
    """Return a plan as tables: places, unplaced workloads, issues, changes and explanation."""
    tables = (
        str(TextTable(item.columns, item.rows, item.title))
        for item in _sections(plan)
        if item.rows or item.title
    )
    return "\n\n".join([plan_sections.headline(plan), *tables]) + "\n"


def _sections(plan: Plan) -> Iterator[Section]:
    yield plan_sections.removals(plan)
    yield plan_sections.placements(plan)
    yield plan_sections.unplaced(plan)
    yield plan_sections.issues(plan)
    yield plan_sections.writes(plan)
    if plan.explanation is not None:
        yield from explanation_sections(plan.explanation)
