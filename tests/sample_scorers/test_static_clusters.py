"""The tables of the static scorer that differ by managed cluster."""

from collections.abc import Iterator

import httpx
import pytest

from dsf.api.crd.published_value import Normalize
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.cli.root import root
from sample_scorers.static.app import create_app
from sample_scorers.static.score import InvalidScoresFile, parse, score
from tests.command_line import invoked
from tests.sample_scorers.serving import client

TABLE = (
    "[{path: /p, name: n, description: d, scoreName: s, interval: 5,"
    " clusters: {east: {all: 2, half: 1}, west: 7}%s}]"
)


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with client(create_app()) as found:
        yield found


def scores(http: httpx.Client, path: str, cluster: str | None) -> dict[str, float]:
    headers = {} if cluster is None else {"Dynamic-Scoring-Cluster": cluster}
    answer = http.post(f"{path}/scoring", json={"data": []}, headers=headers)
    assert answer.status_code == 200
    return {each["metric"].get("device", ""): each["score"] for each in answer.json()["results"]}


def test_the_cluster_that_asks_gets_its_row(http: httpx.Client) -> None:
    assert scores(http, "/cost", "worker01") == {"all": 2.5, "3g.48gb": 1.25, "2g.24gb": 0.7}
    assert scores(http, "/cost", "worker02")["all"] == 3.6
    assert scores(http, "/carbon", "worker01") == {"": 45}


@pytest.mark.parametrize("cluster", [None, "", "worker99", "x" * 5000])
def test_who_is_not_known_gets_the_default_row(http: httpx.Client, cluster: str | None) -> None:
    assert scores(http, "/carbon", cluster) == {"": 480}
    assert scores(http, "/cost", cluster)["all"] == 4


def test_a_table_without_a_default_row_has_no_result_for_others() -> None:
    parsed = parse(TABLE % "")
    assert not isinstance(parsed, InvalidScoresFile)
    assert [(each.metric, each.score) for each in score(parsed[0], "east")] == [
        ({"device": "all"}, 2),
        ({"device": "half"}, 1),
    ]
    assert score(parsed[0], "north") == score(parsed[0]) == []


def test_the_scores_of_apps_do_not_depend_on_the_cluster(http: httpx.Client) -> None:
    asked = [
        http.post("/performance/scoring", json={"data": []}, headers=headers).json()
        for headers in ({}, {"Dynamic-Scoring-Cluster": "worker01"})
    ]
    assert asked[0] == asked[1]


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


def test_lower_is_better_is_inverted_for_what_is_published(http: httpx.Client) -> None:
    for path in ("/cost", "/carbon"):
        config = http.get(f"{path}/config").json()
        assert config["direction"] == "LowerIsBetter"
        assert config["scoring"]["normalize"]["invert"] is True


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (", scores: {a: {b: 1}}", "either scores or clusters"),
        (", default: {all: cheap}", "valid number"),
        (", direction: Up", "HigherIsBetter"),
    ],
)
def test_a_table_with_a_mistake_is_named(more: str, told: str) -> None:
    parsed = parse(TABLE % more)
    assert isinstance(parsed, InvalidScoresFile)
    assert told in parsed.message


def test_only_a_table_with_clusters_has_a_default() -> None:
    by_app = "scores: {a: {b: 1}}, default: 1}]"
    parsed = parse(TABLE[: TABLE.index("clusters")] + by_app)
    assert isinstance(parsed, InvalidScoresFile)
    assert "only a table with clusters" in parsed.message
