"""`dsf rollout` against a hub over HTTP."""

import json
from pathlib import Path

import yaml

from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.rollout import rollout as command
from tests.command_line import invoked_meanwhile
from tests.optimizer.follow.rollout.guide_rollout import GuideRollout, guide_rollout


async def dsf_rollout(run: GuideRollout, folder: Path, *arguments: str) -> tuple[int, str, str]:
    async with serving(run.hub) as url:
        config = folder / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        first, *others = arguments
        return await invoked_meanwhile(
            command, first, f"--kubeconfig={config}", "--namespace=default", *others
        )


async def test_a_rollout_is_shown_and_controlled(tmp_path: Path) -> None:
    run = await guide_rollout()
    code, out, err = await dsf_rollout(run, tmp_path, "status")
    assert (code, out) == (1, "")
    assert "no plan of optimization default in namespace default" in err
    name = await run.begin()
    await run.until(name, "StepWaiting")
    code, out, _ = await dsf_rollout(run, tmp_path, "status")
    assert code == 1
    head, _, titles, *_ = out.splitlines()
    assert head.startswith("Rollout of default-2 (optimization default): StepWaiting: step 1 of 8:")
    assert titles.split() == ["STEP", "STATE", "DOES", "UNCOVERED"]
    assert "NotIdle" in out
    code, out, _ = await dsf_rollout(run, tmp_path, "pause")
    assert (code, "RolloutPaused" in out) == (0, True)
    code, out, _ = await dsf_rollout(run, tmp_path, "resume")
    assert (code, "Rollout" in out) == (0, True)
    code, out, _ = await dsf_rollout(run, tmp_path, "undo")
    assert (code, "turning back" in out) == (0, True)
    code, _, err = await dsf_rollout(run, tmp_path, "undo")
    assert (code, "wait until it is at its start" in err) == (1, True)
    code, out, _ = await dsf_rollout(run, tmp_path, "cancel")
    assert (code, "RolloutCancelled" in out) == (0, True)
    code, out, _ = await dsf_rollout(run, tmp_path, "status", "--watch", "-o", "json")
    assert (code, json.loads(out)["phase"]) == (1, "Cancelled")
