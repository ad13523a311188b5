"""A marker in each text that a round's report takes from servers is quoted in its conditions."""

import pytest

from dsf.agent.failure import Failure, Stage
from dsf.agent.publish.plan.round_report import RoundReport, failed, success, with_remark
from dsf.agent.score.result_rules import RoundScores
from dsf.api.conditions import merged
from dsf.api.untrusted_text import UntrustedText
from tests.house.marker import MARKER, WORDS, raw, unquoted

TEXT = UntrustedText(MARKER)


def report_of(stage: Stage) -> RoundReport:
    return failed(Failure(stage, "R", TEXT), (TEXT, TEXT.strip(), TEXT[5:]))


@pytest.mark.parametrize(
    "report",
    [
        success(RoundScores(), (TEXT, TEXT.strip())),
        report_of("source"),
        report_of("scoring"),
        report_of("agent"),
        with_remark(failed(Failure("scoring", "R", "refused")), f"{TEXT[1:].strip()}"),
    ],
    ids=["warnings", "source", "scoring", "agent", "remark"],
)
def test_a_report_quotes_what_servers_say(report: RoundReport) -> None:
    messages = [item["message"] for item in merged([], report.conditions, now="2026-01-01T00:00Z")]
    assert any(WORDS[5:] in message for message in messages)
    assert [message for message in messages if unquoted(message, WORDS[5:]) or raw(message)] == []
