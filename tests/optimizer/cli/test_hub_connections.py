"""Connections of `dsf optimizer` to its hub: who waits for one while calls use them all."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import httpx
import yaml

from dsf.kube.embedded.http.server import kubeconfig
from dsf.kube.embedded.http.server import serving as serving_hub
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, Kind
from dsf.kube.port import ObjectList
from tests.eventually import eventually
from tests.kube_wrappers.reviewing_hub import AccessTable, ReviewingHub
from tests.mcp_server.test_cli import DSF
from tests.optimizer.operations.access.callers import READER, TOKENS, reads

HELD = 99
"""Calls that are held when all of 100 connections are in use; one has the watch of plans."""
CALLS = 120
HANGS_SECONDS = 120


class SlowScores(ReviewingHub):
    """A hub that answers nobody who lists scores until it is told to."""

    def __init__(self) -> None:
        super().__init__(access=AccessTable(TOKENS, {READER.name: reads("default")}))
        self.held = 0
        self.answers = asyncio.Event()

    async def list(self, kind: Kind, *args: Any, **options: Any) -> ObjectList:
        if kind == ADD_ON_PLACEMENT_SCORE:
            self.held += 1
            await self.answers.wait()
        return await super().list(kind, *args, **options)


async def test_callers_are_known_and_health_is_told_while_planning_uses_all_connections(
    tmp_path: Path,
) -> None:
    hub, config = SlowScores(), tmp_path / "config"
    token = {"Authorization": "Bearer token-of-reader"}
    async with serving_hub(hub) as address, asyncio.timeout(HANGS_SECONDS):
        config.write_text(yaml.safe_dump(kubeconfig(address)))
        process = await asyncio.create_subprocess_exec(
            *DSF, "optimizer", f"--kubeconfig={config}", "--port=0", stderr=subprocess.PIPE
        )
        try:
            url = await _served_at(process)
            limits = httpx.Limits(max_connections=None)
            async with (
                httpx.AsyncClient(
                    base_url=url, trust_env=False, timeout=HANGS_SECONDS, limits=limits
                ) as http,
                asyncio.TaskGroup() as tasks,
            ):
                calls = [
                    tasks.create_task(http.get("/addonplacementscores", headers=token))
                    for _ in range(CALLS)
                ]

                async def all_in_use() -> bool:
                    return hub.held == HELD

                await eventually(all_in_use)
                assert (await http.get("/readyz")).text == "ok"
                unknown = {"Authorization": "Bearer token-of-nobody"}
                refused = await http.get("/addonplacementscores", headers=unknown)
                assert refused.status_code == 401
                assert hub.held == HELD
                hub.answers.set()
            assert {call.result().status_code for call in calls} == {200}
        finally:
            process.terminate()
            await process.communicate()


async def _served_at(process: asyncio.subprocess.Process) -> str:
    assert process.stderr
    line = ""
    while "message=serving" not in line:
        line = (await process.stderr.readline()).decode()
        assert line
    return line.rpartition("url=")[2].strip()
