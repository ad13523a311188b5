"""`dsf scorer register`: a manifest that the hub accepts, its format, and what to change in it."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dsf.api import names
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.untrusted_text import InvalidInput
from dsf.cli.root import root
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import DYNAMIC_SCORER, NAMESPACE
from dsf.scorer_kit.registration import suggested_format
from tests.command_line import invoked, invoked_meanwhile
from tests.dsf.scorer_kit.scorers import TestApi, changed, config, protected, served

Metric = dict[str, str]


@pytest.mark.parametrize(
    ("results", "suggested"),
    [
        ([], "${node};${namespace};${pod}"),
        ([{"node": "a", "namespace": "b", "pod": "c", "app": "d"}], "${node};${namespace};${pod}"),
        ([{"app": "a", "device": "x"}, {"app": "a", "device": "y"}], "${app};${device}"),
        ([{"app": "a"}, {"app": "a", "device": "y"}], None),
        ([{"app": "a", "meta": "1"}, {"app": "a", "meta": "2"}], "${app};${meta}"),
        ([{"app": "a"}, {"app": "a"}], None),
        ([{}], "${scoreName}"),
        ([{"instance": "x"}], "${scoreName}"),
        ([{}, {}], None),
    ],
)
def test_all_labels_that_every_result_has_are_used(
    results: list[Metric], suggested: str | None
) -> None:
    assert suggested_format(results) == suggested


labels = st.sampled_from(["node", "namespace", "pod", "app", "device", "meta", "other"])


@given(st.lists(st.dictionaries(labels, st.sampled_from(["", "a", "b"])), max_size=4))
def test_a_suggested_format_tells_results_apart(results: list[Metric]) -> None:
    suggested = suggested_format(results)
    if suggested is not None:
        form = DimensionFormat.parse(suggested)
        assert not isinstance(form, InvalidInput)
        assert len({form.render(metric) for metric in results}) == len(results)


async def registered(api: TestApi, *options: str) -> tuple[int, str, str]:
    async with served({"api": api}) as url:
        code, out, err = await invoked_meanwhile(
            root, "scorer", "register", f"{url}/api/config", *options
        )
    return code, out.replace(url, "http://scorer"), err


async def test_the_hub_accepts_the_manifest() -> None:
    code, out, err = await registered(TestApi())
    assert (code, err) == (0, "")
    manifest = yaml.safe_load(out)
    hub = EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": names.HUB_NAMESPACE}})
    created = await hub.create(DYNAMIC_SCORER, manifest)
    assert created["spec"] == {
        "description": "Percent of a core",
        "configURL": "http://scorer/api/config",
        "configSyncMode": "Full",
        "location": "Internal",
        "scoreDestination": "AddOnPlacementScore",
        "scoreDimensionFormat": "${node};${namespace};${pod}",
    }
    assert created["metadata"]["name"] == "test-scorer"


async def test_comments_say_what_to_change() -> None:
    _, out, _ = await registered(TestApi(config=lambda base: config(base) | {"description": ""}))
    comments = [line for line in out.splitlines() if line.startswith("#")]
    for part in ("Nothing has been applied", "configURL is on this machine", "in which unit"):
        assert any(part in line for line in comments)
    assert yaml.safe_load(out)["spec"]["description"]


async def test_json_has_no_comments() -> None:
    code, out, err = await registered(TestApi(), "-o", "json", "--name", "mine")
    assert code == 0
    assert json.loads(out)["metadata"]["name"] == "mine"
    assert "Nothing has been applied" in err


async def test_the_format_follows_from_the_labels_of_results() -> None:
    api = TestApi(
        changed(lambda _: [{"metric": {"app": app, "device": "x"}, "score": 1} for app in "ab"])
    )
    _, out, _ = await registered(api)
    assert yaml.safe_load(out)["spec"]["scoreDimensionFormat"] == "${app};${device}"
    assert "# scoreDimensionFormat is suggested" in out
    _, out, _ = await registered(api, "--dimension-format", "${app}")
    assert yaml.safe_load(out)["spec"]["scoreDimensionFormat"] == "${app}"
    assert "# scoreDimensionFormat" not in out


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("1 - avg(rate(node_cpu_seconds_total[5m]))", "${scoreName}"),
        ("sum without (cpu) (rate(node_cpu_seconds_total[5m]))", "${node};${namespace};${pod}"),
        ("avg_over_time(load[5m])", "${node};${namespace};${pod}"),
        ("sum by (app) (x)", "${app}"),
    ],
)
async def test_a_query_that_aggregates_all_into_one_has_no_labels(query: str, form: str) -> None:
    params = {"query": query, "range": 600, "step": 60}
    source = {"type": "Prometheus", "host": "http://prometheus:9090", "params": params}
    _, out, _ = await registered(TestApi(config=lambda base: config(base, source)))
    assert yaml.safe_load(out)["spec"]["scoreDimensionFormat"] == form


async def test_several_formats_and_the_address_of_others_are_registered() -> None:
    formats = ("--dimension-format", "${node}", "--dimension-format", "${node};${pod}")
    address = "http://${NODE_IP}:30080/config"
    code, out, _ = await registered(TestApi(), *formats, "--config-url", address)
    assert code == 0
    spec = yaml.safe_load(out)["spec"]
    assert (spec["scoreDimensionFormat"], spec["scoreDimensionFormats"]) == (
        "${node}",
        ["${node};${pod}"],
    )
    assert spec["configURL"] == address
    assert "configURL is on this machine" not in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--name", "a", "--name", "b"], "--name is given twice"),
        (["--dimension-format", "${pod}"] * 2, "the same format is given twice"),
        (["--dimension-format", "${pod}", "--dimension-format", "${it}"], "${it}"),
        (["--config-url", "node1"], "'node1' is not an http or https URL"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(options: list[str], said: str) -> None:
    code, out, err = invoked(root, "scorer", "register", "http://127.0.0.1:1", *options)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


async def test_a_scorer_that_does_not_score_gets_the_default_format() -> None:
    code, out, _ = await registered(TestApi(protected()))
    assert code == 0
    assert "scoreDimensionFormat is the default" in out


async def test_an_unusable_config_is_one_line() -> None:
    code, out, err = await registered(TestApi(config=lambda _: b"{}"))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "name" in err


@pytest.mark.parametrize("arguments", [["http://scorer", "--name", "A_B"], ["scorer"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert invoked(root, "scorer", "register", *arguments)[0] == 2
