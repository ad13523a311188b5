"""`dsf dispatcher` as a process over HTTP, and one line for each mistake of a user."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from dsf.hub.dispatch.cli import dispatcher
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import LEASE
from tests.command_line import invoked
from tests.dsf.hub.dispatch.kueue_hub import all_nominated, kueue_hub, publish, queue

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


async def run(hub: EmbeddedHub, directory: Path, *flags: str) -> asyncio.subprocess.Process:
    environ = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    return await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "dsf",
            "dispatcher",
            f"--kubeconfig={directory / 'config'}",
            *flags,
        ),
        env=environ,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_the_elected_process_tells_what_a_dry_run_would_nominate(tmp_path: Path) -> None:
    hub = await kueue_hub()
    await publish(hub, "2099-01-01T00:00:00Z", east=52, north=10, west=94)
    await queue(hub, "job")
    async with serving(hub) as url:
        (tmp_path / "config").write_text(json.dumps(kubeconfig(url)))
        dry = await run(hub, tmp_path, *SETTINGS, *ELECTION, "--dry-run")
        assert dry.stderr
        while "would nominate" not in (line := (await dry.stderr.readline()).decode()):
            assert line, "the dry run ended"
        assert "Nominated: west, east." in line
        lease = await hub.get(LEASE, "elected", "team")
        assert lease["spec"]["holderIdentity"] == "me"
        dry.send_signal(signal.SIGTERM)
        await dry.communicate()
        assert dry.returncode == 0
        assert await all_nominated(hub) == {"job": []}


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
