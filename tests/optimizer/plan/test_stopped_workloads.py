"""A workload that a plan takes away stops: OCM leaves the work of a Placement that is missing."""

import json

import pytest

from dsf.kube import kinds
from optimizer.plan.plan import Plan, result
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Applied
from tests.optimizer.follow.placement_status.guide_run import SCENARIO, GuideRun, guide_run


@pytest.fixture
async def run() -> GuideRun:
    found = await guide_run()
    await found.land()
    return found


async def works(run: GuideRun) -> list[str]:
    """The ManifestWorks of workloads on all clusters."""
    listed = (await run.hub.list(kinds.MANIFEST_WORK)).items
    return sorted(
        item["metadata"]["name"] for item in listed if item["metadata"]["name"].startswith("mwrs-")
    )


async def place_only(run: GuideRun, *names: str) -> Plan:
    asked = json.loads((SCENARIO / "params.json").read_text())
    asked["targetWorkloads"] = [{"name": name} for name in names]
    plan = await run.optimizer.plan(OptimizeRequest.model_validate(asked))
    assert isinstance(plan, Plan), plan
    assert isinstance(await run.optimizer.apply(plan), Applied)
    await run.settle()
    return plan


async def test_a_workload_that_is_no_longer_named_stops(run: GuideRun) -> None:
    assert await works(run) == ["mwrs-app01", "mwrs-app02"]
    plan = await place_only(run, "mwrs-app01")
    assert [item.workload for item in result(plan, None).removals] == ["mwrs-app02"]
    assert await works(run) == ["mwrs-app01"]
    assert (await run.status()).drift == ()
    assert (await place_only(run, "mwrs-app01")).changes == ()


async def test_a_stopped_workload_runs_again_by_the_next_plan(run: GuideRun) -> None:
    await place_only(run, "mwrs-app01")
    await place_only(run, "mwrs-app01", "mwrs-app02")
    assert await works(run) == ["mwrs-app01", "mwrs-app02"]


async def test_a_placement_that_no_workload_refers_to_is_deleted(run: GuideRun) -> None:
    await run.hub.delete(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app02", "default")
    await place_only(run, "mwrs-app01")
    names = [item["metadata"]["name"] for item in (await run.hub.list(kinds.PLACEMENT)).items]
    assert "app02-placement" not in names
