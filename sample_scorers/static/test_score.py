# SPDX-License-Identifier: Apache-2.0
"""The tables of the static scorer, and the file that has them."""

import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..scoring_service.testing import client
from ..scoring_service.wire import ScoreResult
from .app import create_app
from .score import InvalidScoresFile, parse, score, shipped

CLUSTERS = (
    "[{path: /p, name: n, description: d, scoreName: s, interval: 5,"
    " clusters: {east: {all: 2, half: 1}, west: 7}%s}]"
)


def test_the_static_tables_are_those_of_the_development_guide() -> None:
    found = {
        (table.score_name, each.metric["app"], each.metric["device"]): each.score
        for table in shipped()
        if table.scores
        for each in score(table)
    }
    performance, power = "example_performance_score", "example_powerconsumption_score"
    expected = {"all": (80, 80, 20, 10), "3g.48gb": (60, 55, 30, 55), "2g.24gb": (10, 15, 80, 90)}
    assert found == {
        (name, app, device): scores[position]
        for device, scores in expected.items()
        for position, (name, app) in enumerate(
            (name, app) for name in (performance, power) for app in ("app01", "app02")
        )
    }


TABLE = {
    "path": "/x",
    "name": "x-scorer",
    "description": "x",
    "scoreName": "x_score",
    "interval": 30,
    "scores": {"app": {"gpu": 1}},
}


def test_a_scores_file_may_be_json() -> None:
    tables = parse(json.dumps([TABLE]))
    assert not isinstance(tables, InvalidScoresFile)
    assert score(tables[0]) == [ScoreResult(metric={"app": "app", "device": "gpu"}, score=1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the document: Input should be a valid list"),
        ("[]", "has no table"),
        ("a: [", "line 1 is not YAML"),
        ("\x00", "is not YAML"),
        ("[" * 5000, "is not YAML"),
        (json.dumps([{**TABLE, "interval": 0}]), "[0][interval]: Input should be greater than 0"),
        (json.dumps([{**TABLE, "path": "x"}]), "[0][path]"),
        (json.dumps([{**TABLE, "colour": 1}]), "[0][colour]: Extra inputs are not permitted"),
        (json.dumps([{**TABLE, "scores": {"a": {"b": "x"}}}]), "[0][scores][a][b]"),
        ("[{path: /x, scores: {a: {b: .nan}}}]", "[0][name]: Field required"),
        (json.dumps([TABLE, TABLE]), "path /x is used twice"),
        (json.dumps([TABLE, {**TABLE, "path": "/y"}]), "scoreName x_score is used twice"),
    ],
)
def test_a_wrong_scores_file_is_told_in_one_line(text: str, said: str) -> None:
    found = parse(text)
    assert isinstance(found, InvalidScoresFile)
    assert said in found.message
    assert "\n" not in found.message


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_a_scores_file_or_told_why_not(text: str) -> None:
    assert isinstance(parse(text), InvalidScoresFile | list)


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
    parsed = parse(CLUSTERS % "")
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
    parsed = parse(CLUSTERS % more)
    assert isinstance(parsed, InvalidScoresFile)
    assert told in parsed.message


def test_only_a_table_with_clusters_has_a_default() -> None:
    by_app = "scores: {a: {b: 1}}, default: 1}]"
    parsed = parse(CLUSTERS[: CLUSTERS.index("clusters")] + by_app)
    assert isinstance(parsed, InvalidScoresFile)
    assert "only a table with clusters" in parsed.message
