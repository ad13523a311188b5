"""`dsf scores` against a hub over HTTP."""

import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsf.api.conditions import merged
from dsf.api.names import HUB_NAMESPACE, SCORING_CONFIG
from dsf.api.scoring.score_conditions import TrackRecord, trust_condition
from dsf.api.times import shown_duration
from dsf.cli.missing_scores import NO_SCORER
from dsf.cli.scores import freshness_table, scores
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, NAMESPACE
from dsf.kube.port import Object
from tests.command_line import invoked_meanwhile
from tests.house.marker import MARKER, WORDS, forged_lines, raw, unquoted

VALUES = {("worker01", "speed"): 60, ("worker02", "speed"): 55, ("worker02", "thrift"): -3}

EXPIRED = "2026-01-01T12:00:00Z"

Dsf = Callable[..., Awaitable[tuple[int, str, str]]]


async def hub_of_scores() -> EmbeddedHub:
    hub = EmbeddedHub()
    for cluster in {cluster for cluster, _ in VALUES}:
        await hub.create(NAMESPACE, {"metadata": {"name": cluster}})
    for (cluster, name), value in VALUES.items():
        score = {"metadata": {"name": name, "namespace": cluster}}
        await hub.create(ADD_ON_PLACEMENT_SCORE, score)
        status = {"status": {"scores": [{"name": "app", "value": value}]}}
        await hub.patch(ADD_ON_PLACEMENT_SCORE, name, status, cluster, subresource="status")
    return hub


@pytest.fixture
async def hub() -> EmbeddedHub:
    return await hub_of_scores()


@pytest.fixture
async def dsf(tmp_path: Path, hub: EmbeddedHub) -> Dsf:
    async def run(*arguments: str) -> tuple[int, str, str]:
        async with contextlib.AsyncExitStack() as stack:
            url = await stack.enter_async_context(serving(hub))
            config = tmp_path / "hub.kubeconfig"
            config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
            return await invoked_meanwhile(scores, f"--kubeconfig={config}", *arguments)

    return run


async def test_forecasts_without_trust_are_named(dsf: Dsf, hub: EmbeddedHub) -> None:
    record = TrackRecord(600, share=0.75, evidence=4.0, until=1_767_268_800.0)
    told = merged([], [trust_condition(record, record.until)], now="2026-01-01T12:00:00Z")
    status = {"status": {"conditions": told}}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, "speed", status, "worker02", subresource="status")
    code, _, err = await dsf("--output=json")
    said = "forecasts speed of worker02 are no better than the last value: see kubectl"
    assert (code, err) == (0, f"{said} -n worker02 describe addonplacementscore speed\n")


async def test_expired_scores_are_marked(dsf: Dsf, hub: EmbeddedHub) -> None:
    status = {"status": {"validUntil": EXPIRED}}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, "speed", status, "worker02", subresource="status")
    later = {"status": {"validUntil": "2999-01-01T00:00:00Z"}}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, "speed", later, "worker01", subresource="status")
    said = f"speed of worker02 expired at {EXPIRED}: a Placement counts it as 0\n"
    code, out, err = await dsf()
    assert (code, err) == (0, said)
    assert out.splitlines()[2].split() == ["app", "60", "55", "(expired)"]
    code, out, err = await dsf("-o", "json")
    assert (code, err) == (0, said)
    assert json.loads(out)["speed"] == {"app": {"worker01": 60, "worker02": 55}}
    code, out, err = await dsf("-o", "json", "--valid")
    assert (code, err) == (0, "")
    assert json.loads(out)["speed"] == {"app": {"worker01": 60}}


async def test_a_table_says_what_its_values_mean(dsf: Dsf, hub: EmbeddedHub) -> None:
    await hub.create(NAMESPACE, {"metadata": {"name": HUB_NAMESPACE}})
    spec = {"description": "d", "configURL": "http://scorer/config"}
    metadata = {"name": "speed-scorer", "namespace": HUB_NAMESPACE}
    await hub.create(DYNAMIC_SCORER, {"metadata": metadata, "spec": spec})
    meaning = {
        "displayName": "Free\u202ecores",
        "unit": "cores",
        "direction": "HigherIsBetter",
        "range": {"min": 0, "max": 100},
    }
    status = {"status": {"scoreName": "speed", "meaning": meaning}}
    await hub.patch(DYNAMIC_SCORER, "speed-scorer", status, HUB_NAMESPACE, subresource="status")
    code, out, _ = await dsf()
    titles = [table.splitlines()[0] for table in out.split("\n\n")[:-1]]
    assert code == 0
    assert titles == [
        'speed ("Free\N{REPLACEMENT CHARACTER}cores", higher is better, 0..100, unit cores)',
        "thrift",
    ]


async def register(hub: EmbeddedHub, name: str, **status: Any) -> None:
    metadata = {"name": name, "namespace": HUB_NAMESPACE}
    spec = {"description": "d", "configURL": "http://scorer/config"}
    await hub.create(DYNAMIC_SCORER, {"metadata": metadata, "spec": spec})
    patch = {"status": {"scoreName": name, **status}}
    await hub.patch(DYNAMIC_SCORER, name, patch, HUB_NAMESPACE, subresource="status")


def condition(name: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {
        "type": name,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": EXPIRED,
    }


async def test_where_a_scorer_fails_and_why_another_has_no_scores_is_told(
    dsf: Dsf, hub: EmbeddedHub
) -> None:
    await hub.create(NAMESPACE, {"metadata": {"name": HUB_NAMESPACE}})
    rejected = [
        {"name": f"worker{number:02}", "reason": "QueryRejected", "message": "parse error"}
        for number in range(1, 8)
    ]
    ready = condition("Ready", "False", "ClustersFailing", "Scoring: 7 of 7 fail")
    await register(hub, "speed", failingClusters=rejected, conditions=[ready])
    waiting = condition("Scoring", "Unknown", "Waiting", "waiting for the agents of 2 clusters")
    going = condition("Ready", "True", "Distributed", "in the works")
    await register(hub, "headroom", conditions=[going, waiting])
    await register(hub, "unseen")
    config = {"metadata": {"name": SCORING_CONFIG, "namespace": HUB_NAMESPACE}, "spec": {}}
    await hub.create(DYNAMIC_SCORING_CONFIG, config)
    said = condition("Ready", "False", "WriteRefused", "worker01: forbidden")
    status = {"status": {"conditions": [said]}}
    await hub.patch(
        DYNAMIC_SCORING_CONFIG, SCORING_CONFIG, status, HUB_NAMESPACE, subresource="status"
    )
    failing = [f'speed fails on worker0{n}: QueryRejected: "parse error"' for n in range(1, 6)]
    silent = "headroom has no scores: Waiting: waiting for the agents of 2 clusters"
    of_config = f"DynamicScoringConfig {SCORING_CONFIG}: WriteRefused: worker01: forbidden"
    code, out, err = await dsf()
    assert (code, "speed" in out) == (0, True)
    assert err.splitlines() == [
        silent,
        *failing,
        "speed fails on 2 more managed clusters",
        "unseen has no scores: the hub controller has not reported on it yet; does it run?",
        of_config,
    ]
    code, _, err = await dsf("-c", "worker02", "-s", "speed")
    assert (code, err) == (0, f"{failing[1]}\n")
    code, out, err = await dsf("-s", "headroom")
    assert (code, out, err.splitlines()[:2]) == (1, "", [silent, of_config])
    assert (
        err.splitlines()[2] == "Error: no AddOnPlacementScore headroom; the hub has speed, thrift"
    )


async def test_a_hub_without_scorers_says_how_to_register_one(tmp_path: Path) -> None:
    async with serving(EmbeddedHub()) as url:
        config = tmp_path / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        found = await invoked_meanwhile(scores, f"--kubeconfig={config}")
    assert found == (0, "", f"{NO_SCORER}\nNo scores found.\n")


async def test_clusters_stand_beside_each_other(dsf: Dsf) -> None:
    code, out, err = await dsf()
    assert (code, err) == (0, "")
    assert [re.sub(r"\b\d+s\b", "1s", line).split() for line in out.splitlines()] == [
        ["speed"],
        ["DIMENSION", "WORKER01", "WORKER02"],
        ["app", "60", "55"],
        [],
        ["thrift"],
        ["DIMENSION", "WORKER02"],
        ["app", "-3"],
        [],
        ["SCORE", "CLUSTER", "AGE", "EXPIRES"],
        ["speed", "worker01", "1s", "never"],
        ["speed", "worker02", "1s", "never"],
        ["thrift", "worker02", "1s", "never"],
    ]


def test_the_age_of_scores_is_that_of_their_status_and_not_of_their_labels() -> None:
    """As a kube-apiserver keeps managedFields: the add-on agent, and a later edit by hand."""
    now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
    written = [
        {"subresource": "status", "time": "2026-01-01T11:58:35Z", "manager": "agent"},
        {"time": "2026-01-01T11:59:59Z", "manager": "kubectl-label"},
    ]

    def score(cluster: str, until: str) -> Object:
        metadata = {"name": "speed", "namespace": cluster, "managedFields": written}
        return {"metadata": metadata, "status": {"validUntil": until}}

    table = freshness_table(
        [score("b", "2026-01-01T12:05:00Z"), score("a", "2026-01-01T08:00:00Z")], now
    )
    assert table.rows == [("speed", "a", "85s", "4h ago"), ("speed", "b", "85s", "in 5m")]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.5, "0s"), (119.9, "119s"), (120, "2m"), (10_800, "3h"), (172_799, "47h"), (172_800, "2d")],
)
def test_a_duration_has_one_unit(seconds: float, shown: str) -> None:
    assert shown_duration(seconds) == shown


async def test_one_cluster_and_one_score_as_json(dsf: Dsf) -> None:
    code, out, _ = await dsf("-c", "worker02", "-s", "speed", "-o", "json")
    assert (code, json.loads(out)) == (0, {"speed": {"app": {"worker02": 55}}})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-c", "nope"), "no scores of managed cluster nope; the hub has worker01, worker02"),
        (("-s", "nope"), "no AddOnPlacementScore nope; the hub has speed, thrift"),
        (("-c", "worker01", "-s", "thrift"), "no AddOnPlacementScore thrift; the hub has speed"),
    ],
)
async def test_a_name_that_is_not_there_is_told_with_those_that_are(
    dsf: Dsf, arguments: tuple[str, ...], said: str
) -> None:
    assert await dsf(*arguments) == (1, "", f"Error: {said}\n")


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
async def test_names_of_entries_and_objects_that_do_not_exist_are_escaped(
    dsf: Dsf, hub: EmbeddedHub, form: str
) -> None:
    entries = {"status": {"scores": [{"name": MARKER, "value": 1}]}}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, "speed", entries, "worker01", subresource="status")
    code, out, err = await dsf("-o", form)
    assert (code, err) == (0, "")
    assert WORDS in out
    assert not raw(out)
    assert not forged_lines(out) or form == "table"
    for option in ("--score", "--cluster"):
        code, out, err = await dsf(option, MARKER)
        assert (code, out) == (1, "")
        assert WORDS in err
        assert not raw(err)
        assert not unquoted(err)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since=1h",), "--since needs --prometheus-url"),
        (("--plot", "-o", "json"), "--plot and --prometheus-url draw: give no --output"),
        (("--prometheus-url=http://p", "-o", "yaml"), "give no --output"),
    ],
)
async def test_options_without_effect_are_refused(
    dsf: Dsf, words: tuple[str, ...], said: str
) -> None:
    code, out, err = await dsf(*words)
    assert (code, out, said in err) == (2, "", True)
