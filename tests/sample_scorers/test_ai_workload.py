"""The AI workload scorers: what agents publish of the recordings."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dsf.api.crd.score_rules import Normalize
from dsf.cli.root import root
from sample_scorers.ai_workload.app import (
    AiWorkloadSettings,
    create_app,
    efficiency_config,
    performance_config,
    power_config,
)
from sample_scorers.ai_workload.score import efficiency, performance, power
from sample_scorers.ai_workload.signals import app_of
from sample_scorers.scoring_service.testing import served
from sample_scorers.scoring_service.wire import ScoreResult, ScoringRequest
from tests.command_line import invoked
from tests.sample_scorers.serving import SCORERS

RECORDINGS = SCORERS / "ai_workload/recordings"
FORMAT = ("--dimension-format", "${app};${device}")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app()) as found:
        yield found


@pytest.mark.parametrize("kind", ["performance", "power", "efficiency"])
def test_the_scorers_pass_the_check_with_recorded_data(url: str, kind: str) -> None:
    data = ("--data", str(RECORDINGS / f"{kind}.json"))
    code, out, err = invoked(
        root, "scorer", "check", f"{url}/{kind}/config", *data, *FORMAT, "--series", "50"
    )
    assert code == 0, out + err
    assert "0 warnings" in out


def test_the_agent_publishes_the_recording(url: str) -> None:
    """The agent splits the queries, and the replay answers exactly these, one by one."""
    recording = ("--recording", str(RECORDINGS / "inference.json"))
    code, out, err = invoked(
        root, "scorer", "try", f"{url}/power/config", *recording, *FORMAT, "-o", "yaml"
    )
    assert code == 0, out + err
    assert "name: app01;3g.48gb" in out
    assert "name: app02;2g.24gb" in out


@pytest.mark.parametrize(
    ("kind", "config", "score"),
    [
        ("performance", performance_config, performance),
        ("power", power_config, power),
        ("efficiency", efficiency_config, efficiency),
    ],
)
def test_the_first_table_that_a_person_sees_is_not_all_zeros(
    kind: str, config: Callable[[AiWorkloadSettings], Any], score: Callable[..., list[ScoreResult]]
) -> None:
    request = ScoringRequest.model_validate_json((RECORDINGS / f"{kind}.json").read_text())
    rule = Normalize.model_validate(config(AiWorkloadSettings()).scoring.normalize.model_dump())
    published = [rule.of(each.score) for each in score(request.data, app_of)]
    assert len(published) == 4
    assert all(5 <= value <= 95 for value in published)
