"""`dsf status` against a hub over HTTP."""

import json
from pathlib import Path

import pytest
import yaml

from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.status import status
from tests.command_line import invoked_meanwhile
from tests.optimizer.placement_status.guide_run import GuideRun, guide_run


async def dsf_status(run: GuideRun, folder: Path, *arguments: str) -> tuple[int, str, str]:
    async with serving(run.hub) as url:
        config = folder / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        return await invoked_meanwhile(status, f"--kubeconfig={config}", *arguments)


async def test_the_table_says_what_is_waited_for_and_the_exit_code_that_it_is(
    tmp_path: Path,
) -> None:
    run = await guide_run()
    code, out, err = await dsf_status(run, tmp_path, "--namespace", "default")
    assert (code, err) == (1, "")
    assert out.startswith("Nothing is placed in namespace default.\n")
    await run.place()
    await run.settle()
    code, out, _ = await dsf_status(run, tmp_path, "--namespace", "default")
    assert code == 1
    head, _, titles, first, *_ = out.splitlines()
    assert head == "0 of 2 placements in namespace default have landed."
    assert titles.split() == ["WORKLOAD", "CLUSTER", "STATE", "REASON", "SINCE", "MESSAGE"]
    assert first.split()[2:5] == ["WaitingForPolicy", "NonCompliant", "2026-01-01T00:00:00Z"]


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_all_landed_is_exit_code_0(form: str, tmp_path: Path) -> None:
    run = await guide_run()
    await run.land()
    code, out, err = await dsf_status(run, tmp_path, "-n", "default", "-o", form)
    assert (code, err) == (0, "")
    found = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert (found["namespace"], found["landed"], found["drift"]) == ("default", True, [])
    assert {item["state"] for item in found["workloads"]} == {"Landed"}
