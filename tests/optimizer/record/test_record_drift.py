"""What differs from the plan in force, through the optimizer's door."""

from typing import Any

import pytest

from dsf.kube import kinds
from dsf.kube.kinds import Kind
from tests.optimizer.placement_status.guide_run import GuideRun, guide_run


@pytest.fixture
async def run() -> GuideRun:
    found = await guide_run()
    await found.place()
    return found


async def name_of_first(run: GuideRun, kind: Kind) -> str:
    listed = (await run.hub.list(kind, "default")).items
    return min(
        str(item["metadata"]["name"])
        for item in listed
        if "dynamic-scoring-framework-mcp/generated" in (item["metadata"].get("labels") or {})
    )


async def drifts(run: GuideRun, optimization: str | None = None) -> list[tuple[str, str, str]]:
    status = await run.optimizer.placement_status("default", optimization)
    return [(item.reason, item.kind, item.message) for item in status.drift]


async def test_what_is_as_it_was_planned_is_no_drift(run: GuideRun) -> None:
    assert await drifts(run) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"tolerations": [{"operator": "Exists"}]}, "spec.tolerations differ from revision 1"),
        ({"clusterSets": ["global"]}, "spec.clusterSets differ from revision 1"),
    ],
)
async def test_a_well_formed_edit_is_named_by_its_field(
    run: GuideRun, spec: dict[str, Any], message: str
) -> None:
    name = await name_of_first(run, kinds.PLACEMENT)
    await run.hub.patch(kinds.PLACEMENT, name, {"spec": spec}, "default")
    assert await drifts(run) == [("DiffersFromPlan", "Placement", message)]


async def test_a_deleted_object_is_named(run: GuideRun) -> None:
    await run.hub.delete(
        kinds.PLACEMENT_BINDING, await name_of_first(run, kinds.PLACEMENT_BINDING), "default"
    )
    assert (
        "MissingFromHub",
        "PlacementBinding",
        "revision 1 has it, and somebody deleted it",
    ) in await drifts(run)


async def test_a_generated_object_that_no_plan_has_is_named(run: GuideRun) -> None:
    name = await name_of_first(run, kinds.PLACEMENT_BINDING)
    one = await run.hub.get(kinds.PLACEMENT_BINDING, name, "default")
    metadata = {"name": "extra", "namespace": "default", "labels": one["metadata"]["labels"]}
    await run.hub.create(kinds.PLACEMENT_BINDING, {**one, "metadata": metadata})
    found = {(reason, kind) for reason, kind, _ in await drifts(run)}
    assert {"NotInPlan", "BindingEdited"} & {reason for reason, _ in found}


async def test_another_optimization_has_no_drift(run: GuideRun) -> None:
    await run.hub.delete(
        kinds.PLACEMENT_BINDING, await name_of_first(run, kinds.PLACEMENT_BINDING), "default"
    )
    assert await drifts(run, "other") == []
