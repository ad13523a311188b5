"""What agents publish of the tables of the static scorer that differ by managed cluster."""

from collections.abc import Iterator

import httpx
import pytest

from dsf.api.crd.score_rules import Normalize
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.cli.root import root
from sample_scorers.scoring_service.testing import client
from sample_scorers.static.app import create_app
from tests.command_line import invoked


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with client(create_app()) as found:
        yield found


def scores(http: httpx.Client, path: str, cluster: str | None) -> dict[str, float]:
    headers = {} if cluster is None else {"Dynamic-Scoring-Cluster": cluster}
    answer = http.post(f"{path}/scoring", json={"data": []}, headers=headers)
    assert answer.status_code == 200
    return {each["metric"].get("device", ""): each["score"] for each in answer.json()["results"]}


@pytest.mark.parametrize("path", ["/cost", "/carbon"])
def test_the_first_table_that_a_person_sees_is_not_all_zeros(http: httpx.Client, path: str) -> None:
    config = ScorerConfig.model_validate(http.get(f"{path}/config").json())
    rule = config.scoring.normalize
    assert isinstance(rule, Normalize)
    for cluster in ("worker01", "worker02", None):
        published = [rule.of(value) for value in scores(http, path, cluster).values()]
        assert all(10 <= value <= 100 for value in published)


@pytest.mark.parametrize(("cluster", "value"), [("worker01", 94), ("worker02", 52), ("other", 40)])
def test_an_agent_publishes_the_score_of_its_own_cluster(
    http: httpx.Client, cluster: str, value: int
) -> None:
    named = ("--cluster-name", cluster, "--dimension-format", "${scoreName}", "-o", "yaml")
    code, out, err = invoked(root, "scorer", "try", f"{http.base_url}/carbon/config", *named)
    assert code == 0, err
    assert f"name: example_carbon_score\n    value: {value}\n" in out
