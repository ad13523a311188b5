"""The house rules of the product: a class name denotes one thing, a folder is one layer."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("dsf", "optimizer", "mcp_server", "policy_watcher", "sample_scorers")
MOST_MODULES = 13
"""Modules in one folder without `__init__`: a newcomer reads the list of them at a glance."""
MOST_DOCSTRING_LINES = 8
"""What lives there, what may be touched, what it may import."""

STANDS_ALONE = "sample_scorers imports nothing of ours, so it repeats the types of the scoring API"
SHARED_NAMES = {
    "Normalize": STANDS_ALONE,
    "ScoreRange": STANDS_ALONE,
    "ScoreResult": STANDS_ALONE,
    "ScorerConfig": STANDS_ALONE,
    "Scoring": STANDS_ALONE,
    "ScoringParams": STANDS_ALONE,
    "ScoringRequest": STANDS_ALONE,
    "ScoringResponse": STANDS_ALONE,
    "Series": STANDS_ALONE,
}
"""Class names that two modules define on purpose, each with the reason."""


def is_test(path: Path) -> bool:
    """Return whether a file is a test, or stands in for something in tests, in a copied folder."""
    return path.name.startswith("test_") or path.name == "fake_model.py"


TEMPLATES = ROOT / "dsf" / "scorer_kit" / "templates"
"""Programs that are copied, and no part of the product's own."""

MODULES = [
    path
    for package in PRODUCT
    for path in sorted((ROOT / package).rglob("*.py"))
    if not path.is_relative_to(TEMPLATES) and not is_test(path)
]
FOLDERS = sorted({path.parent for path in MODULES})


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def classes() -> dict[str, list[str]]:
    """Return the modules that define each class name, nested and private classes included."""
    found = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(shown(path))
    return found


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_class_name_denotes_two_things() -> None:
    repeated = {name: places for name, places in classes().items() if len(places) > 1}
    assert {k: v for k, v in repeated.items() if k not in SHARED_NAMES} == {}


def test_every_exception_is_still_needed() -> None:
    found = classes()
    assert [name for name in SHARED_NAMES if len(found[name]) < 2] == []


def test_only_the_sample_scorers_repeat_wire_types() -> None:
    found = classes()
    alone = [name for name, reason in SHARED_NAMES.items() if reason == STANDS_ALONE]
    for name in alone:
        ours = [place for place in found[name] if not place.startswith("sample_scorers/")]
        assert [place.rpartition("/")[0] for place in ours] in (
            ["dsf/api/crd"],
            ["dsf/api/scoring"],
        ), name


@pytest.mark.parametrize("folder", FOLDERS, ids=shown)
def test_a_folder_is_read_at_a_glance(folder: Path) -> None:
    modules = [path.name for path in MODULES if path.parent == folder]
    assert len([name for name in modules if name != "__init__.py"]) <= MOST_MODULES


@pytest.mark.parametrize("folder", FOLDERS, ids=shown)
def test_a_folder_says_what_it_is(folder: Path) -> None:
    docstring = ast.get_docstring(parsed(folder / "__init__.py"))
    assert docstring
    assert len(docstring.splitlines()) <= MOST_DOCSTRING_LINES
