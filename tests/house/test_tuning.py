"""Every number that tunes the optimizer's search has a unit, a reader and a measurement."""

import ast
import importlib
from functools import cache
from pathlib import Path

from benchmarks.optimizer.tuning import HEURISTICS, OF_LARGE, TRIED, Number, numbers, tried

ROOT = Path(__file__).parents[2]
FIGURES = (ROOT / "docs/reference/tuning-figures.md").read_text()


@cache
def known() -> dict[str, Number]:
    """The numbers, by name: not read on import, because every worker imports this module."""
    return {item.name: item for item in numbers()}


def test_numbers_are_documented_in_the_folders_that_have_any() -> None:
    assigned = [
        target.id
        for path in (ROOT / "optimizer").rglob("tuning.py")
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    ]
    assert sorted(assigned) == sorted(known())
    assert [name for name, item in known().items() if not item.unit] == []


def test_a_number_that_nothing_reads_is_gone() -> None:
    assert [name for name, item in known().items() if not item.readers] == []


def test_the_figures_of_every_number_and_heuristic_are_published() -> None:
    rows = [*(f"`{name}`" for name in known()), *HEURISTICS]
    assert [name for name in rows if f"| {name} |" not in FIGURES] == []


def test_every_measurement_is_in_the_table() -> None:
    empty = [row for row in FIGURES.splitlines() if row.endswith("| - | - | - | - |  |")]
    assert empty == []


def test_the_benchmark_tries_other_values_of_numbers_that_exist() -> None:
    assert {*TRIED, *OF_LARGE} - set(known()) == set()
    assert [name for name, item in known().items() if item.value in tried(item)] == []


def test_the_benchmark_switches_off_heuristics_that_exist() -> None:
    for item in HEURISTICS.values():
        assert hasattr(importlib.import_module(item.module), item.attribute)
