"""`dsf scorer try`: one round by the agent's own functions, with series from three places."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsf.cli.root import root
from tests.command_line import invoked_meanwhile
from tests.dsf.agent.servers import matrix, replying, serving
from tests.dsf.scorer_kit.scorers import QUERY, TOKEN, TestApi, changed, config, protected, served
from tests.repository import ROOT

SERIES = ({"node": "n", "namespace": "s", "pod": "p"}, [[0, "0.25"], [60, "NaN"], [120, "0.75"]])
DATA = {"data": [{"metric": SERIES[0], "values": SERIES[1]}]}
RECORDED_QUERY = json.loads((ROOT / "dsf/scorer_kit/recordings/build-machine.json").read_text())[
    "queries"
][0]["query"]
OTHER_FORM = ("--dimension-format", "${pod}")


async def tried(api: TestApi, *options: str) -> tuple[int, str, str]:
    async with served({"api": api}) as url:
        return await invoked_meanwhile(root, "scorer", "try", f"{url}/api/config", *options)


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(DATA))
    return str(path)


def shows_the_round(out: str) -> None:
    assert "AddOnPlacementScore cluster1/test-score: 1 of 1 result, valid for 90 s" in out
    row = next(line for line in out.splitlines() if line.startswith("node=n"))
    assert row.split()[1:] == ["50", "-", "50", "50", "n;s;p", "-"]
    assert 'ds_pod="p",ds_score_name="test_score"} 50.0' in out


async def test_the_series_of_a_file_are_scored_as_an_agent_would(data: str) -> None:
    code, out, err = await tried(TestApi(), "--data", data)
    assert (code, err) == (0, "")
    shows_the_round(out)


async def test_a_prometheus_is_asked_instead_of_the_one_of_the_config() -> None:
    async with serving(replying(matrix(SERIES))) as prometheus:
        code, out, _ = await tried(TestApi(), "--prometheus", prometheus.url)
    assert code == 0
    shows_the_round(out)
    (call,) = prometheus.calls
    assert call.parameters["query"] == QUERY


def recorded() -> TestApi:
    source = {
        "type": "Prometheus",
        "host": "http://prometheus:9090",
        "params": {"query": RECORDED_QUERY, "range": 600, "step": 60},
    }
    return TestApi(config=lambda base: config(base, source))


async def test_a_recording_is_replayed_and_drawn() -> None:
    code, out, _ = await tried(recorded(), "--recording", "build-machine", "--plot")
    assert code == 0
    assert "13 series" in out
    drawing = out.split("SERIES, OLDEST FIRST")[1]
    assert "node=node-1,namespace=build,pod=compiler-0" in drawing
    assert len(drawing.splitlines()) == 14


async def test_a_query_that_was_not_recorded_fails_and_says_which_were() -> None:
    code, _, err = await tried(TestApi(), "--recording", "build-machine")
    assert code == 1
    assert err.startswith("Error: source: QueryRejected: ")
    assert "the recording has no answer" in err


async def test_pushed_metrics_come_from_a_file(data: str) -> None:
    source = {"type": "OpenTelemetry", "params": {"query": "cpu"}}
    code, out, _ = await tried(TestApi(config=lambda base: config(base, source)), "--data", data)
    assert code == 0
    shows_the_round(out)


async def test_objects_of_a_cluster_come_from_a_file(data: str) -> None:
    objects = {"apiVersion": "v1", "resource": "nodes", "values": {"cpu": ".status.capacity.cpu"}}
    source = {"type": "Kubernetes", "kubernetes": {**objects, "labels": {"node": ".metadata.name"}}}
    api = TestApi(config=lambda base: config(base, source))
    code, out, _ = await tried(api, "--data", data)
    assert code == 0
    shows_the_round(out)
    code, _, err = await tried(api, "--prometheus", "http://127.0.0.1:9")
    assert (code, "name it with --data" in err) == (2, True)


async def test_a_scorer_that_refuses_is_exit_code_1(data: str) -> None:
    code, out, err = await tried(TestApi(protected()), "--data", data)
    assert code == 1
    assert "1 series, 3 samples sent" in out
    assert err.startswith("Error: scoring: Unauthorized: ")


async def test_the_token_is_sent_to_the_scoring_api_alone(data: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    async with serving(replying(matrix(SERIES))) as prometheus:
        code, out, _ = await tried(
            TestApi(protected()),
            *("--prometheus", prometheus.url, "--token-file", str(tmp_path / "token")),
        )
    assert code == 0
    assert "Authorization" not in prometheus.calls[0].headers
    assert TOKEN not in out


async def test_the_format_follows_the_labels_of_the_results(data: str) -> None:
    def without_node(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"metric": {"pod": pod}, "score": 1} for pod in ("a", "b") for _ in found]

    code, out, err = await tried(TestApi(changed(without_node)), "--data", data)
    assert code == 0
    assert "MissingLabel" not in out
    assert err == "the labels suggest '${pod}': --dimension-format sets another\n"
    code, out, err = await tried(TestApi(changed(without_node)), "--data", data, *OTHER_FORM)
    assert (code, "MissingLabel" in out, err) == (0, False, "")
    by_node = ("--dimension-format", "${node}")
    assert (
        "MissingLabel" in (await tried(TestApi(changed(without_node)), "--data", data, *by_node))[1]
    )


@pytest.mark.parametrize("command", ["try", "check"])
async def test_further_formats_name_the_scores_of_other_shapes(data: str, command: str) -> None:
    def of_two_shapes(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        metrics = [{"node": "n", "pod": "p"}, {"node": "n"}]
        return [{"metric": one, "score": 7} for one in metrics for _ in found[:1]]

    forms = ("--dimension-format", "${node};${pod}", "--dimension-format", "${node}")
    for given, lost in ((forms[:2], True), (forms, False)):
        async with served({"api": TestApi(changed(of_two_shapes))}) as url:
            _, out, _ = await invoked_meanwhile(
                root, "scorer", command, f"{url}/api/config", "--data", data, *given
            )
        assert ("MissingLabel" in out or "1 result without a label" in out) is lost


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name the series with --prometheus, --data or --recording"),
        (["--recording", "yesterday"], "there are: build-machine"),
        (["--recording", "{data}"], "is not a recording"),
        (["--prometheus", "prometheus:9090"], "is not an http or https URL"),
        (["--cluster-name", "A_B"], "is not a valid name"),
    ],
)
async def test_wrong_usage_is_exit_code_2(data: str, options: list[str], said: str) -> None:
    code, out, err = await tried(TestApi(), *(one.replace("{data}", data) for one in options))
    assert (code, out) == (2, "")
    assert said in err


async def test_a_scorer_without_a_source_takes_no_series(data: str) -> None:
    api = TestApi(config=lambda base: config(base, {"type": "None"}))
    code, _, err = await tried(api, "--data", data)
    assert code == 2
    assert "leave out" in err
    assert (await tried(api))[0] == 0


async def test_a_table_is_tried_too_and_a_gap_is_no_sample(tmp_path: Path) -> None:
    hours = "".join(f"2026-03-{day:02}T12:00:00Z,n,shop,a,{day}\n" for day in range(2, 18))
    path = tmp_path / "history.csv"
    path.write_text(f"time,node,namespace,pod,value\n{hours.replace(',9', ',')}")
    for option in ("--data", "--recording"):
        code, out, _ = await tried(TestApi(), option, str(path))
        assert code == 0
        assert "1 series, " in out
        assert "n;shop;a" in out
    code, _, err = await tried(TestApi(), "--data", str(path), "--recording", str(path))
    assert (code, "name the series once" in err) == (2, True)


@pytest.mark.parametrize("option", ["--data", "--recording"])
async def test_a_table_is_scored_at_its_end_whatever_time_it_is(
    tmp_path: Path, option: str
) -> None:
    """Twelve and a half days, of which each sample is its hour: a longer window has them all."""
    hours = "".join(f"{1_772_409_600 + hour * 3600},n,s,p,{hour}\n" for hour in range(300))
    (tmp_path / "hours.csv").write_text(f"time,node,namespace,pod,value\n{hours}")
    for range_, samples, mean in ((14 * 86_400, 300, 149.5), (7200, 3, 298)):
        params = {"query": QUERY, "range": range_, "step": 3600}
        source = {"type": "Prometheus", "host": "http://prometheus:9090", "params": params}
        api = TestApi(config=lambda base, source=source: config(base, source))
        code, out, err = await tried(api, option, str(tmp_path / "hours.csv"))
        assert (code, err) == (0, "as of 2026-03-14T11:00:00Z, the newest sample\n")
        assert f"1 series, {samples} samples sent" in out
        row = next(line for line in out.splitlines() if line.startswith("node=n"))
        assert float(row.split()[1]) == 100 * mean


async def test_a_recording_keeps_the_nodes_of_its_series(tmp_path: Path) -> None:
    metrics = [{"node": node, "namespace": "shop", "pod": "a"} for node in ("n1", "n2")]
    series = [{"metric": metric, "values": [1]} for metric in metrics]
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps({"step": 60, "queries": [{"query": QUERY, "series": series}]}))
    code, out, _ = await tried(TestApi(), "--recording", str(path))
    assert (code, "n1;shop;a" in out, "n2;shop;a" in out) == (0, True, True)
    path.write_text(path.read_text().replace("n2", "n1"))
    code, _, err = await tried(TestApi(), "--recording", str(path))
    assert (code, "2 series have the same labels" in err) == (2, True)
