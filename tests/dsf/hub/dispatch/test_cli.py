"""`dsf dispatcher` as a process over HTTP, and one line for each mistake of a user."""

import asyncio
import json
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from starlette.requests import Request

from dsf.hub.dispatch.cli import dispatcher
from dsf.kube.clock import utc_now
from dsf.kube.embedded.http.server import kubeconfig
from dsf.kube.kinds import LEASE
from tests.command_line import invoked
from tests.dsf.hub.dispatch.kueue_hub import (
    add_room,
    all_nominated,
    kueue_hub,
    publish,
    queue,
    told,
)
from tests.dsf.hub.dispatch.served_kueue import serving_kueue, start_dispatcher

ELECTION = (
    "--leader-elect",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
    "--leader-elect-resource-name=elected",
    "--leader-elect-resource-namespace=team",
)
SETTINGS = (
    "--kueue-config=kueue-system/kueue-manager-config",
    "--clusters-at-once=2",
    "--next-after=1h",
    "--resync-seconds=1",
    "--metrics-bind-address=127.0.0.1:0",
    "--identity=me",
)
KILLS = 10
CLUSTERS = ("east", "north", "south", "west")
FAR = "2099-01-01T00:00:00Z"
WORKLOADS = 60
ROOMS = {"west": 20, "east": 20, "north": 15, "south": 10}
"""Processors that are free: enough for all Workloads of one each, the best clusters first."""


async def test_the_elected_process_tells_what_a_dry_run_would_nominate_and_lacks_a_solver(
    tmp_path: Path,
) -> None:
    hub = await kueue_hub()
    await publish(hub, FAR, east=52, north=10, west=94)
    await add_room(hub, now=utc_now(), east=1, west=1)
    for name in ("a", "b"):
        await queue(hub, name)
    async with serving_kueue(hub, tmp_path):
        dry = await start_dispatcher(tmp_path, *SETTINGS, *ELECTION, "--dry-run", without="highspy")
        assert dry.stderr
        while "would nominate" not in (line := (await dry.stderr.readline()).decode()):
            assert line, "the dry run ended"
        assert "Nominated: west, east." in line
        assert "no plan for 2 Workloads of priority 0: HiGHS is not installed" in line
        lease = await hub.get(LEASE, "elected", "team")
        assert lease["spec"]["holderIdentity"] == "me"
        dry.send_signal(signal.SIGTERM)
        await dry.communicate()
        assert dry.returncode == 0
        assert await all_nominated(hub) == {"a": [], "b": []}


@pytest.mark.fire(
    "no Workload is forgotten, whichever write of the dispatcher is its last",
    f"{KILLS} kills of its process at random writes, which arrive or not",
)
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("seed", "rooms", "expected"),
    [(0, {}, {"west": WORKLOADS}), (1, ROOMS, {**ROOMS, "south": 5})],
    ids=["without-inventories", "with-inventories"],
)
async def test_killed_at_random_writes_the_process_forgets_no_workload_and_moves_none(
    tmp_path: Path, seed: int, rooms: dict[str, int], expected: dict[str, int]
) -> None:
    hub = await kueue_hub(CLUSTERS)
    await publish(hub, FAR, east=52, north=10, south=-40, west=94)
    await add_room(hub, now=utc_now(), **rooms)
    names = [f"job-{number:02}" for number in range(WORKLOADS)]
    first = dict[str, list[str]]()
    for name in names:
        await queue(hub, name, priority=int(name[-1]) % 2)
    draw, left = random.Random(seed), 0  # noqa: S311 - any order will do
    process: asyncio.subprocess.Process

    def arrives(_: Request) -> bool:
        nonlocal left
        left -= 1
        if not left:
            process.kill()
        return left > 0 or draw.random() < 1 / 2

    async with serving_kueue(hub, tmp_path, arrives):
        for _ in range(KILLS):
            left = draw.randrange(1, 16)
            process = await start_dispatcher(tmp_path, *SETTINGS)
            assert await process.wait() == -signal.SIGKILL
            for name, clusters in (await all_nominated(hub)).items():
                if clusters:
                    assert first.setdefault(name, clusters) == clusters
        left = 1 << 30
        process = await start_dispatcher(tmp_path, *SETTINGS)
        while not all([await told(hub, name) for name in names]):
            assert process.returncode is None
            await asyncio.sleep(0.1)
        process.terminate()
        await process.communicate()
    chosen = await all_nominated(hub)
    assert {len(clusters) for clusters in chosen.values()} == {2}
    assert Counter(clusters[0] for clusters in chosen.values()) == expected
    assert {name: chosen[name] for name in first} == first
    for name, clusters in chosen.items():
        assert (await told(hub, name)).startswith(f"Nominated: {', '.join(clusters)}.")


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--kueue-config=name", "is not NAMESPACE/NAME of a ConfigMap"),
        ("--kueue-config=a/b/c", "is not NAMESPACE/NAME of a ConfigMap"),
        ("--clusters-at-once=0", "1<=x<=20"),
        ("--clusters-at-once=21", "1<=x<=20"),
        ("--next-after=0s", "is not a duration"),
        ("--resync-seconds=0", "x>=1"),
        ("--context=missing", "missing"),
    ],
)
def test_a_bad_setting_is_told(tmp_path: Path, flag: str, told: str) -> None:
    (tmp_path / "config").write_text(json.dumps(kubeconfig("http://127.0.0.1:1")))
    code, _, said = invoked(dispatcher, flag, f"--kubeconfig={tmp_path / 'config'}")
    assert code > 0
    assert told in said
    assert "Traceback" not in said
