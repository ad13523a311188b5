"""`dsf uninstall` against a hub over HTTP: what the controller made goes, the rest stays."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from dsf.api import names
from dsf.api.names import CONTROLLER_LEASE
from dsf.hub.snapshot.summaries_work import summaries_work
from dsf.hub.uninstall import uninstall_command
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    LEASE,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
    NAMESPACE,
    Kind,
)
from dsf.runtime.leader_election import LeaderElector
from dsf.runtime.lease import LeaderElectionConfig
from tests.command_line import invoked_meanwhile
from tests.dsf.api.crd.crd_objects import scorer

Dsf = Callable[..., Awaitable[tuple[int, str, str]]]

HUB = "scoring"
OURS = {names.MANAGED_BY_LABEL: names.ADDON}


@pytest.fixture
async def hub() -> EmbeddedHub:
    """Two clusters with works and a score, others' work and score, and a config that is going."""
    hub = EmbeddedHub()
    for name in (HUB, "east", "west"):
        await hub.create(NAMESPACE, {"metadata": {"name": name}})
    for cluster in ("east", "west"):
        for name in (names.MANIFEST_WORK, names.SECRETS_MANIFEST_WORK, "of-others"):
            work = summaries_work(cluster, "[]", "dynamic-scoring")
            work["metadata"]["name"] = name
            await hub.create(MANIFEST_WORK, work)
    for name, labels in (("speed", OURS), ("of-others", {})):
        score = {"metadata": {"name": name, "namespace": "east", "labels": labels}}
        await hub.create(ADD_ON_PLACEMENT_SCORE, score)
    await hub.create(DYNAMIC_SCORER, {**scorer(), "metadata": {"name": "kept", "namespace": HUB}})
    config = {
        "metadata": {
            "name": names.SCORING_CONFIG,
            "namespace": HUB,
            "finalizers": [names.SCORING_CONFIG_FINALIZER, "example.com/theirs"],
        },
        "spec": {},
    }
    await hub.create(DYNAMIC_SCORING_CONFIG, config)
    return hub


@pytest.fixture
async def dsf(tmp_path: Path, hub: EmbeddedHub) -> Dsf:
    async def run(*arguments: str) -> tuple[int, str, str]:
        async with contextlib.AsyncExitStack() as stack:
            url = await stack.enter_async_context(serving(hub))
            path = tmp_path / "hub.kubeconfig"
            document = kubeconfig(url)
            path.write_text(yaml.safe_dump(document), encoding="utf-8")
            of = (f"--kubeconfig={path}", f"--context={document['current-context']}")
            return await invoked_meanwhile(uninstall_command, *of, f"--namespace={HUB}", *arguments)

    return run


async def named(hub: EmbeddedHub, kind: Kind) -> list[str]:
    return [obj["metadata"]["name"] for obj in (await hub.list(kind)).items]


async def test_what_the_controller_made_goes_and_what_people_wrote_stays(
    dsf: Dsf, hub: EmbeddedHub
) -> None:
    code, told, _ = await dsf()
    assert (code, told.splitlines()) == (
        0,
        [
            "4 ManifestWorks removed",
            "1 AddOnPlacementScore removed",
            "the finalizer of the DynamicScoringConfig removed",
        ],
    )
    assert await named(hub, MANIFEST_WORK) == ["of-others"] * 2
    assert await named(hub, ADD_ON_PLACEMENT_SCORE) == ["of-others"]
    assert await named(hub, DYNAMIC_SCORER) == ["kept"]
    assert await named(hub, LEASE) == []
    config = await hub.get(DYNAMIC_SCORING_CONFIG, names.SCORING_CONFIG, HUB)
    assert config["metadata"]["finalizers"] == ["example.com/theirs"]
    assert await dsf() == (0, "nothing to remove\n", "")


async def test_a_dry_run_writes_nothing(dsf: Dsf, hub: EmbeddedHub) -> None:
    before = (await hub.list(MANIFEST_WORK)).items
    code, told, _ = await dsf("--dry-run")
    assert (code, "4 ManifestWorks would be removed" in told) == (0, True)
    assert (await hub.list(MANIFEST_WORK)).items == before
    assert await named(hub, LEASE) == []


async def test_a_config_that_is_being_deleted_is_gone(dsf: Dsf, hub: EmbeddedHub) -> None:
    """Without a controller nothing else ends `kubectl delete dynamicscoringconfig`."""
    ours = {"metadata": {"finalizers": [names.SCORING_CONFIG_FINALIZER]}}
    await hub.patch(DYNAMIC_SCORING_CONFIG, names.SCORING_CONFIG, ours, HUB)
    await hub.delete(DYNAMIC_SCORING_CONFIG, names.SCORING_CONFIG, HUB)
    assert await named(hub, DYNAMIC_SCORING_CONFIG) == [names.SCORING_CONFIG]
    assert (await dsf())[0] == 0
    assert await named(hub, DYNAMIC_SCORING_CONFIG) == []


async def test_clusters_that_do_not_answer_are_named_and_hold_nothing(
    dsf: Dsf, hub: EmbeddedHub
) -> None:
    add_on = {"metadata": {"name": names.ADDON, "namespace": "west"}, "spec": {}}
    await hub.create(MANAGED_CLUSTER_ADD_ON, add_on)
    held = {"metadata": {"finalizers": ["cluster.open-cluster-management.io/work-cleanup"]}}
    await hub.patch(MANIFEST_WORK, names.MANIFEST_WORK, held, "east")
    code, told, _ = await dsf("--timeout=1ms")
    assert (code, "removed everything from east, west yet" in told) == (0, True)
    assert await named(hub, ADD_ON_PLACEMENT_SCORE) == ["of-others"]


async def test_a_controller_that_runs_is_named_and_nothing_is_written(
    dsf: Dsf, hub: EmbeddedHub
) -> None:
    candidacy = LeaderElectionConfig(CONTROLLER_LEASE, HUB, "pod-1", 15.0, 10.0, 0.05)
    leads = asyncio.create_task(LeaderElector(hub, candidacy).run(asyncio.Event().wait))  # type: ignore[arg-type]
    code, _, said = await dsf()
    leads.cancel()
    assert (code, "the controller pod-1 runs in namespace scoring" in said) == (1, True)
    assert len(await named(hub, MANIFEST_WORK)) == 6
