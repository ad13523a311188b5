"""The documentation names the rules, policies and reasons of the agent."""

import re

import pytest

from dsf.agent.score.expiry import EXPIRED, HELD, NO_SCORES, REPLACED
from dsf.api.scoring.score_conditions import RULES
from tests.repository import ROOT

PAGES = (
    "reference/results-to-entries.md",
    "reference/conditions-and-events.md",
    "how-to/troubleshooting-clusters.md",
)
TEXT = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
SOURCES = [path.read_text(encoding="utf-8") for path in (ROOT / "dsf" / "agent").rglob("*.py")]
REASON = re.compile(
    r"""(?:Failure\(\s*(?:"source"|"scoring"|stage),|InvalidInput\(|_failure\(|return)
        \s*"([A-Z][a-z]+[A-Za-z]+)"[,)]""",
    re.VERBOSE,
)
ELSEWHERE = {
    # Of the config as a whole, and of commands: in the log or on standard error.
    "ConfigMapNotFound",
    "DuplicateScore",
    "DuplicateScorer",
    "FileUnreadable",
    # Of a pool of devices: the inventory's condition Complete says it.
    "Unreadable",
}


@pytest.mark.parametrize("name", [*RULES, EXPIRED, HELD, NO_SCORES, REPLACED])
def test_it_is_documented(name: str) -> None:
    assert f"`{name}`" in TEXT


def test_reasons_are_documented() -> None:
    found = {reason for text in SOURCES for reason in REASON.findall(text)}
    assert {"EmptyQuery", "ServerError", "SecretNotFound", "ForeignObject"} <= found
    assert {reason for reason in found - ELSEWHERE if f"`{reason}`" not in TEXT} == set()
