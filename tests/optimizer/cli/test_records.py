"""`dsf plans` and `dsf rollback` against a hub over HTTP."""

import json
from pathlib import Path

import click
import pytest
import yaml

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.records import plans, rollback
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from tests.command_line import invoked_meanwhile
from tests.optimizer.build import NOW, request
from tests.optimizer.hubs import bound, hub_of


async def two_plans() -> EmbeddedHub:
    hub = await hub_of()
    service = Optimizer(hub, now=lambda: NOW)
    for name in ("performance", "power"):
        plan = await service.plan(request(name))
        assert isinstance(plan, Plan)
        await service.apply(plan)
    return hub


async def dsf(
    command: click.Command, hub: EmbeddedHub, folder: Path, *arguments: str
) -> tuple[int, str, str]:
    async with serving(hub) as url:
        config = folder / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        words = (f"--kubeconfig={config}", "--namespace=default", *arguments)
        return await invoked_meanwhile(command, *words)


async def test_plans_are_listed_the_newest_first(tmp_path: Path) -> None:
    hub = await hub_of()
    code, out, _ = await dsf(plans, hub, tmp_path)
    assert (code, out) == (0, "No plan is recorded in namespace default.\n")
    code, _, err = await dsf(plans, hub, tmp_path, "--namespace=nope")
    assert (code, "the hub has no namespace nope" in err) == (1, True)
    hub = await two_plans()
    code, out, err = await dsf(plans, hub, tmp_path)
    assert (code, err) == (0, "")
    titles, newer, older = out.splitlines()
    assert titles.split()[:5] == ["OPTIMIZATION", "REVISION", "PHASE", "OBJECTIVE", "GAP"]
    assert newer.split()[:6] == ["default", "2", "Applied", "170", "0.00%", "+4"]
    assert older.split()[:6] == ["default", "1", "Superseded", "115", "0.00%", "+6"]


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_whole_records_are_printed(form: str, tmp_path: Path) -> None:
    code, out, _ = await dsf(plans, await two_plans(), tmp_path, "-o", form)
    found = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert (code, [item["objective"] for item in found]) == (0, [170, 115])
    assert len(found[1]["objects"]) == 6
    assert found[1]["request"]["namespace"] == "default"


async def test_a_rollback_shows_what_it_changes_and_says_what_it_did(tmp_path: Path) -> None:
    hub = await two_plans()
    code, out, err = await dsf(rollback, hub, tmp_path, "--dry-run")
    assert (code, err) == (0, "")
    assert "3g.48gb-worker01" in out
    assert (
        "Dry run: revision 1 of optimization default would be restored, and nothing was written."
        in out
    )
    assert await bound(hub) == {"2g.24gb-worker01", "2g.24gb-worker02"}
    code, out, err = await dsf(rollback, hub, tmp_path)
    assert (code, err) == (0, "")
    assert (
        "Revision 1 of optimization default was restored and recorded as PlacementPlan default-3."
        in out
    )
    assert await bound(hub) == {"3g.48gb-worker01", "3g.48gb-worker02"}
    record = await hub.get(kinds.PLACEMENT_PLAN, "default-3", "default")
    assert record["spec"]["requestedBy"] == "system:anonymous"


async def test_a_refused_rollback_is_an_error_that_names_the_differences(tmp_path: Path) -> None:
    hub = await two_plans()
    await hub.delete(kinds.POLICY, "3g.48gb-worker01", "default")
    code, _, err = await dsf(rollback, hub, tmp_path, "--to-revision=1")
    assert code == 1
    assert "no policy in namespace default is named 3g.48gb-worker01" in err
    code, _, err = await dsf(rollback, hub, tmp_path, "--to-revision=1", "--digest=ab")
    assert code == 2
    assert "toRevision" in err
