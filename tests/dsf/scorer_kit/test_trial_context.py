"""The kit's calls have the context that a config asks for: invented, or that of objects."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from dsf.cli.root import root
from tests.command_line import invoked_meanwhile
from tests.dsf import manifest_scorer
from tests.dsf.scorer_kit.scorers import TestApi, config, correct, parsed, served

OBJECTS = """
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: worker01, labels: {price: "5"}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: worker02}
---
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata:
  name: policy-3g
  namespace: team
  labels: {resource-supply-kind: gpu, resource-supply-device: 3g.48gb, resource-supply-amount: "2"}
---
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: mwrs-chat, labels: {app: chat}}
"""


def api() -> TestApi:
    return TestApi(manifest_scorer.respond, manifest_scorer.config)


async def run(api: TestApi, command: str, *options: str) -> tuple[int, str, str]:
    async with served({"api": api}) as url:
        return await invoked_meanwhile(root, "scorer", command, f"{url}/api/config", *options)


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    path = tmp_path / "objects.yaml"
    path.write_text(OBJECTS)
    return path


@pytest.mark.parametrize(("cluster", "score"), [("worker01", 25), ("worker02", 30)])
async def test_a_trial_scores_the_objects_of_a_file(
    objects: Path, cluster: str, score: int
) -> None:
    options = ("--objects", str(objects), "--cluster-name", cluster)
    code, out, err = await run(
        api(), "try", *options, "--dimension-format", "${app};${device}", "-o", "yaml"
    )
    assert (code, err) == (0, "")
    assert f"- name: chat;3g.48gb\n    value: {score}\n" in out


async def test_a_trial_without_objects_invents_some_and_says_so() -> None:
    code, out, err = await run(api(), "try", "--dimension-format", "${app};${device}")
    assert code == 0
    assert "app02;2g.24gb" in out
    assert "the context is invented: name objects with --objects" in err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "objects.yaml"),
        (OBJECTS.replace('{price: "5"}', "[price]"), "a ManagedCluster has fields of another"),
    ],
)
async def test_objects_that_cannot_be_read_are_named(objects: Path, text: str, told: str) -> None:
    await asyncio.to_thread(objects.write_text, text)
    code, _, err = await run(api(), "try", "--objects", str(objects))
    assert code == 2
    assert told in err


async def test_objects_for_a_scorer_that_asks_for_none_are_a_mistake(objects: Path) -> None:
    code, _, err = await run(
        TestApi(config=lambda path: config(path, {"type": "None"})),
        "try",
        "--objects",
        str(objects),
    )
    assert code == 2
    assert "the config asks for no context" in err


@pytest.mark.parametrize("namespaces", [[], ["a", "b"]])
async def test_a_scorer_from_manifests_passes_the_check(namespaces: list[str]) -> None:
    asking = TestApi(
        manifest_scorer.respond, lambda path: manifest_scorer.config(path, namespaces=namespaces)
    )
    code, out, _ = await run(asking, "check", "-o", "json")
    report = json.loads(out)
    assert code == 0, out
    assert report["scoreDimensionFormat"] == "${app};${device}"
    assert [each for each in report["checks"] if each["findings"]] == []


async def test_it_is_registered_with_the_labels_of_its_results() -> None:
    code, out, err = await run(api(), "register", "-o", "json")
    assert code == 0
    assert "--manifest-namespace" in err
    assert json.loads(out)["spec"]["scoreDimensionFormat"] == "${app};${device}"


async def test_a_scorer_that_asks_for_nothing_gets_only_series() -> None:
    bodies = []

    async def respond(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.read())
        assert request.headers["Dynamic-Scoring-Cluster"] == "cluster1"
        await parsed(request)
        return await correct(request)

    code, out, _ = await run(TestApi(respond), "check", "--series", "5", "--samples", "2")
    assert code == 0, out
    assert bodies
    assert not [body for body in bodies if b"context" in body]
