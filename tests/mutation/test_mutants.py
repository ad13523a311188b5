"""Mutants are small changes of valid Python, and those called equivalent exist."""

import gc
import json
import tomllib
from collections import defaultdict
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.mutation.mutants import equivalents_of, mutants_of, replace_code, sample
from tests.mutation.packages import PACKAGES
from tests.repository import ROOT

EQUIVALENTS = json.loads((ROOT / "tests/mutation/equivalents.json").read_text())

SOURCE = '''
"""A docstring with 1 and 2."""

LIMIT = 3
Either = int | None


def judge(values: list[int], scale: float = 1.5) -> int | None:
    """Return a number, or 0."""
    total = 0
    for value in values:
        if value < LIMIT and not total:
            continue
        total += value * 2
    _log.info("judged %d", 5)
    return max(total, LIMIT) if values else None
'''


def changes(source: str) -> list[tuple[str, str]]:
    return [(each.before, each.after) for each in mutants_of("m.py", dedent(source))]


def test_all_mutants_of_a_module() -> None:
    test = "if value < LIMIT and not total:"
    total = "total += value * 2"
    last = "return max(total, LIMIT) if values else None"
    assert changes(SOURCE) == [
        ("LIMIT = 3", "LIMIT = (4)"),
        ("LIMIT = 3", "LIMIT = (2)"),
        ("total = 0", "total = (1)"),
        ("total = 0", "total = (-1)"),
        (test, "if (value < LIMIT or not total):"),
        (test, "if (value <= LIMIT) and not total:"),
        (test, "if (value >= LIMIT) and not total:"),
        (test, "if value < LIMIT and (total):"),
        ("continue", "pass"),
        (total, "pass"),
        (total, "total -= value * 2"),
        (total, "total += (value // 2)"),
        (total, "total += value * (3)"),
        (total, "total += value * (1)"),
        (last, "return None"),
        (last, "return (min(total, LIMIT)) if values else None"),
        (last, "return max(total, LIMIT) if (not (values)) else None"),
    ]


def test_only_the_changed_statement_differs() -> None:
    for mutant in mutants_of("m.py", SOURCE):
        compile(mutant.source, "m.py", "exec")
        lines = mutant.source.splitlines()
        before = SOURCE.splitlines()
        assert lines[: mutant.line - 1] == before[: mutant.line - 1]
        assert lines[mutant.line :] == before[mutant.line :]


def test_a_condition_of_several_lines_is_one_statement() -> None:
    source = """
    def f(a, b):
        if (
            a > 1
            or b(2, a)
        ):
            return 7
    """
    assert ("if ( a > 1 or b(2, a) ):", "if ( (a >= 1) or b(2, a) ):") in changes(source)
    assert ("if ( a > 1 or b(2, a) ):", "if ( a > 1 or (b(a, 2)) ):") in changes(source)
    spans = {each.before: (each.line, each.end_line) for each in mutants_of("m.py", dedent(source))}
    assert spans == {"if ( a > 1 or b(2, a) ):": (3, 6), "return 7": (7, 7)}


def test_a_sample_changes_only_where_the_source_does() -> None:
    def chosen(source: str) -> set[tuple[str, str]]:
        return {(m.before, m.after) for m in sample(mutants_of("m.py", source), 6, seed=1)}

    before, after = chosen(SOURCE), chosen(SOURCE.replace("LIMIT = 3", "LIMIT = 4"))
    assert len(before) == 6
    assert all(text.startswith("LIMIT = ") for text, _ in before ^ after if (text, _) in before)
    assert chosen(f"\n\n{SOURCE}") == before


def test_repeated_statements_are_told_apart() -> None:
    mutants = mutants_of("m.py", "def f(a):\n    a.b = 1\n    a.b = 1\n")
    assert len({mutant.name for mutant in mutants}) == len(mutants) == 6


def test_a_function_that_is_imported_already_runs_a_mutant(tmp_path: Path) -> None:
    """Also one that garbage collections leave out, as our conftest lets them do."""
    file, source = tmp_path / "judge.py", "def judge(a):\n    return a + 1\n"
    file.write_text(source)
    names: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), names)  # noqa: S102 - the line above
    gc.freeze()
    results = {}
    for mutant in mutants_of("judge.py", source):
        assert replace_code(file, mutant)
        results[mutant.after] = names["judge"](5)
    assert results == {
        "return None": None,
        "return (a - 1)": 4,
        "return a + (2)": 7,
        "return a + (0)": 5,
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_packages_name_what_exists(name: str) -> None:
    package = PACKAGES[name]
    paths = (*package.modules, *package.tests, *package.without)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_equivalent_mutant_exists_and_has_a_reason() -> None:
    by_module = defaultdict(list)
    for each in EQUIVALENTS:
        by_module[each["module"]].append(each)
        assert len(each["reason"]) > 20
    for module, named in by_module.items():
        mutants = mutants_of(module, Path(ROOT / module).read_text())
        keys = {(*mutant.key, mutant.occurrence) for mutant in mutants}
        assert equivalents_of(named) <= keys


def test_each_pure_module_is_in_a_package() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    pure = next(item for item in contracts["contracts"] if item["name"].startswith("Deciders"))
    mutated = [Path(each) for package in PACKAGES.values() for each in package.modules]
    missing = [
        name
        for name in pure["source_modules"]
        if not any(_of(name).is_relative_to(each) for each in mutated)
    ]
    assert missing == []


def _of(module: str) -> Path:
    """Return the file or the folder of a module."""
    path = Path(module.replace(".", "/"))
    return path if (ROOT / path).is_dir() else path.with_suffix(".py")
