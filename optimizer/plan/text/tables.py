"""A plan as tables for a terminal."""

from collections.abc import Iterator

from dsf.cli.columns import aligned
from optimizer.plan.plan import Plan
from optimizer.plan.text import plan_sections
from optimizer.plan.text.explanation_sections import explanation_sections
from optimizer.plan.text.sections import Section


def render(plan: Plan) -> str:
    """Return a plan as tables: places, unplaced workloads, issues, changes and explanation."""
    return "\n\n".join([plan_sections.headline(plan), *_tables(plan)]) + "\n"


def _tables(plan: Plan) -> Iterator[str]:
    for section in _sections(plan):
        if section.rows or section.title:
            title = f"{section.title}\n" if section.title else ""
            yield title + aligned(section.columns, section.rows)


def _sections(plan: Plan) -> Iterator[Section]:
    yield plan_sections.placements(plan)
    yield plan_sections.unplaced(plan)
    yield plan_sections.issues(plan)
    yield plan_sections.writes(plan)
    if plan.explanation is not None:
        yield from explanation_sections(plan.explanation)
