"""`dsf status` against a hub over HTTP."""

import asyncio
import json
import re
from pathlib import Path

import pytest
import yaml

from dsf.api.conditions import Condition, merged
from dsf.api.names import ADDON
from dsf.kube import kinds
from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.status import status
from optimizer.snapshot.annotations import PREFIX
from tests.command_line import invoked_meanwhile
from tests.optimizer.follow.hub_health.test_checks import installed_hub
from tests.optimizer.follow.placement_status.guide_run import GuideRun, guide_run
from tests.optimizer.service.kept_fleet import declare_waiting


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


async def test_what_is_not_there_is_not_told_of_the_namespace(tmp_path: Path) -> None:
    run = await guide_run()
    await run.land()
    named = ("--namespace", "default", "--optimization")
    code, out, _ = await dsf_status(run, tmp_path, *named, "nope")
    assert code == 1
    assert out.startswith("Nothing is placed for optimization nope in namespace default.\n")
    code, out, _ = await dsf_status(run, tmp_path, *named, "default")
    assert code == 0
    assert out.startswith("2 of 2 placements of optimization default in namespace default")
    code, out, err = await dsf_status(run, tmp_path, "--namespace", "nope")
    assert (code, out) == (1, "")
    assert "the hub has no namespace nope" in err


async def test_it_waits_until_all_have_landed(tmp_path: Path) -> None:
    run = await guide_run()
    waiting = asyncio.create_task(dsf_status(run, tmp_path, "-n", "default", "--wait", "600"))
    await run.land()
    code, out, err = await waiting
    assert (code, err) == (0, "")
    assert out.startswith("2 of 2 placements in namespace default have landed.")


async def test_waiting_ends_unlanded_and_asks_for_a_namespace_that_is_there(tmp_path: Path) -> None:
    run = await guide_run()
    await run.place()
    code, out, _ = await dsf_status(run, tmp_path, "-n", "default", "--wait", "1")
    assert code == 1
    assert out.startswith("0 of 2 placements")
    code, _, err = await dsf_status(run, tmp_path, "-n", "nope", "--wait", "86400")
    assert code == 1
    assert "the hub has no namespace nope" in err
    code, _, err = await dsf_status(run, tmp_path, "--wait", "1")
    assert code == 2
    assert "--wait needs --namespace" in err


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_all_landed_is_exit_code_0(form: str, tmp_path: Path) -> None:
    run = await guide_run()
    await run.land()
    code, out, err = await dsf_status(run, tmp_path, "-n", "default", "-o", form)
    assert (code, err) == (0, "")
    found = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert (found["namespace"], found["landed"], found["drift"]) == ("default", True, [])
    assert {item["state"] for item in found["workloads"]} == {"Landed"}


async def test_without_a_namespace_the_hub_is_told_with_what_to_do(tmp_path: Path) -> None:
    run = await guide_run()
    await run.place()
    await declare_waiting(run.hub)
    lost = merged([], [Condition("Available", "Unknown", "Lost")], now="2026-01-01T00:00:00Z")
    await run.hub.patch(
        kinds.MANAGED_CLUSTER_ADD_ON,
        ADDON,
        {"status": {"conditions": lost}},
        "worker01",
        subresource="status",
    )
    code, out, err = await dsf_status(run, tmp_path)
    assert (code, err) == (1, "")
    head, _, titles, *_ = out.splitlines()
    assert head.endswith(": 2 of 2 managed clusters ready, 2 scores")
    assert titles.split() == ["PART", "STATE", "MESSAGE"]
    row = next(line for line in out.splitlines() if line.startswith("default "))
    assert row.split() == ["default", "2", "2", "0", "2", "0"]
    row = next(line for line in out.splitlines() if line.startswith("default/kept "))
    cells = ["default/kept", "Approve", "AwaitingApproval", "115", "any", "at a change", "never"]
    assert re.split(r" {2,}", row.strip()) == cells
    assert '. kept placements: PlacementOptimization kept in namespace default: "Awaiting' in out
    assert "  1. clocks: the clock of this machine and the hub" in out
    assert ". add-on: " in out
    assert "workload mwrs-app01 of namespace default" in out
    code, out, _ = await dsf_status(run, tmp_path, "-o", "json")
    found = json.loads(out)
    assert (code, found["healthy"], found["ready_clusters"]) == (1, False, 2)
    assert found["namespaces"][0]["waiting"] == 2
    await run.settle()
    _, out, _ = await dsf_status(run, tmp_path)
    assert "is not compliant on the cluster (since 2026-01-01T00:00:00Z)\n" in out


async def test_a_healthy_hub_is_exit_code_0(tmp_path: Path) -> None:
    hub = await installed_hub()
    for name in ("mwrs-app01", "mwrs-app02"):
        await hub.delete(kinds.MANIFEST_WORK_REPLICA_SET, name, "default")
    drained = {"metadata": {"annotations": {f"{PREFIX}drain": "always"}}}
    await hub.patch(kinds.MANAGED_CLUSTER, "worker02", drained)
    async with serving(hub) as url:
        config = tmp_path / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        code, out, _ = await invoked_meanwhile(status, f"--kubeconfig={config}")
    assert (code, out.splitlines()[-1]) == (0, "Nothing is to be done.")
    assert "; drained: worker02 until somebody says otherwise" in out.splitlines()[0]


async def test_an_optimization_needs_a_namespace(tmp_path: Path) -> None:
    code, _, err = await dsf_status(await guide_run(), tmp_path, "--optimization", "default")
    assert code == 2
    assert "--optimization needs --namespace" in err
