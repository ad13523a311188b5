"""The threat model has a row for each kind that others may write, and for each promise of fire."""

import ast
import re
from collections.abc import Iterator

from dsf.kube.kinds import KINDS
from tests.repository import ROOT

NOT_READ = {
    "Event": "only written",
    "SelfSubjectAccessReview": "an answer of the API server",
    "SelfSubjectReview": "an answer of the API server",
    "SubjectAccessReview": "an answer of the API server",
    "TokenReview": "an answer of the API server",
}
"""Kinds that have no row, and why."""

TEXT = (ROOT / "docs/security/threat-model.md").read_text()


def test_each_kind_that_somebody_else_may_write_has_a_row() -> None:
    table = TEXT.partition("### Objects that others write and we read")[2].partition("\n### ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    named = set(re.findall(r"\b[A-Z]\w+", " ".join(cells)))
    assert {kind.kind for kind in KINDS} - NOT_READ.keys() - named == set()
    assert NOT_READ.keys() & named == set()


def test_each_promise_of_fire_has_a_row() -> None:
    rows = {tuple(map(str.strip, row.split("|")[1:3])) for row in TEXT.splitlines() if "|" in row}
    assert set(marked()) - rows == set()


def marked() -> Iterator[tuple[str, str]]:
    """Yield the promise and the way of testing it of each mark."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fire":
                promise, how = node.args[:2]
                if isinstance(how, ast.Constant):  # Not one that is formatted with a number.
                    yield ast.literal_eval(promise), how.value
