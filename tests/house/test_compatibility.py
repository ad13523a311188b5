"""The statement of compatibility names files that exist, gives reasons, and counts its own rows."""

import re
from collections import Counter
from typing import NamedTuple

import pytest

from tests.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "compatibility.md"
ANSWERS = ("yes", "differs", "decided against", "open")
DOCUMENTS = set("PRQGA")


class Row(NamedTuple):
    number: str
    promise: str
    documents: str
    answer: str
    where: str
    test: str
    read: str

    @property
    def kind(self) -> str:
        return self.answer.partition(":")[0]


TEXT = PAGE.read_text()
ROWS = [
    Row(*(cell.strip() for cell in line.strip("|").split("|")))
    for line in TEXT.splitlines()
    if re.match(r"\| \d+ \|", line)
]
"""Links are checked by `test_documents`, as on every page."""


def paths(cell: str) -> list[str]:
    return [] if cell == "-" else re.findall(r"`([^`]*)`", cell)


def test_rows_are_numbered_from_one() -> None:
    assert [row.number for row in ROWS] == [str(number + 1) for number in range(len(ROWS))]


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_page_counts_its_rows(kind: str) -> None:
    assert f"| {kind} | {Counter(row.kind for row in ROWS)[kind]} |" in TEXT.splitlines()
    assert f"| all | {len(ROWS)} |" in TEXT.splitlines()


def test_the_page_counts_its_rows_without_a_test() -> None:
    assert f" {sum(row.test == '-' for row in ROWS)} rows name no test: " in TEXT


def test_every_answer_but_yes_has_a_reason() -> None:
    for row in ROWS:
        kind, _, reason = row.answer.partition(": ")
        assert kind in ANSWERS, row
        assert bool(reason) == (kind != "yes"), row
        assert row.documents, row
        assert set(row.documents.split()) <= DOCUMENTS, row


def test_every_promise_that_is_kept_can_be_looked_up() -> None:
    assert [row for row in ROWS if row.kind in ("yes", "differs") and row.read == "-"] == []


WORDS = (
    *("PF operator", "ResourceArrangement", "ScorerSummary", "Optimization API", "MWRS"),
    *("Internal and External API", "health check", "freshness", "off-peak", "PolicyWatcher"),
    *("NodePort", "feature gate", "agentfeedback", "NoManagedClusterMatched"),
    *("AllDecisionsScheduled", "migsettinglabel", "curl-tester", "vm-hub", "spoke", "AI-RAN"),
    *("OTel", "remotewrite", "implementer-driven", "Inference Efficiency", "auto-scaling"),
    *("install-on-ocp", "SourceConfig", "VS Code Copilot", "mydynamicscorer", "Radio Access"),
)


def test_the_words_of_the_first_documents_are_found() -> None:
    glossary = (ROOT / "docs" / "reference" / "glossary.md").read_text()
    table = glossary.partition("## Words of the first documents")[2]
    first = " ".join(re.findall(r"(?m)^\| ([^|]+) \|", table))
    assert [word for word in WORDS if word not in first] == []


def test_every_named_file_exists() -> None:
    for row in ROWS:
        for cell in (row.where, row.test):
            assert cell == "-" or paths(cell), row
            assert all((ROOT / path).exists() for path in paths(cell)), row
        # The test of a sample is in its folder, so that a copy has it.
        assert all(re.match(r"tests/|sample_scorers/.*/test_", path) for path in paths(row.test))
        assert not any(path.startswith("tests/") for path in paths(row.where)), row
