"""What workloads and clusters state in annotations is kept by plans of every door."""

import json
from datetime import timedelta
from typing import Any

import pytest

from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.annotations import PREFIX
from tests.optimizer.build import NOW, body
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.test_planning import apply, planned
from tests.optimizer.operations.test_recorded_plans import client

APP01, APP02, FIRST, SECOND = "mwrs-app01", "mwrs-app02", "worker01", "worker02"
TOGETHER = {APP01: {"together-with": APP02}, APP02: {"together-with": APP01}}
BY_DAY = "schedule=0 11 * * *;duration=8h"


def later(**distance: float) -> str:
    return rfc3339(NOW + timedelta(**distance))


def places(plan: dict[str, Any]) -> set[tuple[str, str]]:
    return {(item["workload"], item["cluster"]) for item in plan["placements"]}


async def state(hub: EmbeddedHub, said: dict[str, dict[str, str | None]]) -> None:
    for name, texts in said.items():
        patch = {"metadata": {"annotations": {PREFIX + key: text for key, text in texts.items()}}}
        if name in (FIRST, SECOND):
            await hub.patch(kinds.MANAGED_CLUSTER, name, patch)
        else:
            await hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, name, patch, "default")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({FIRST: {"drain": "always"}}, {(APP01, SECOND)}),
        ({FIRST: {"drain": f"until={later(hours=1)}"}}, {(APP01, SECOND)}),
        ({FIRST: {"drain": BY_DAY}}, {(APP01, SECOND)}),
        ({FIRST: {"drain": f"until={later(hours=-1)}"}}, 2),
        ({FIRST: {"drain": f"start={later(hours=1)}"}}, 2),
        ({FIRST: {"drain": f"{BY_DAY};timeZone=Asia/Tokyo"}}, 2),
        ({FIRST: {"max-workloads": "0"}}, {(APP01, SECOND)}),
        (TOGETHER, 0),
        ({APP01: {"apart-from": APP02}}, 2),
    ],
)
async def test_a_plan_keeps_what_workloads_and_clusters_state(said: Any, wanted: Any) -> None:
    hub = await hub_of()
    await state(hub, said)
    async with client(hub) as http:
        few = places(await planned(http))
        whole = places((await http.post("/optimize?dry_run=true", json=body())).json())
    assert few == whole
    assert len(few) == wanted if isinstance(wanted, int) else few == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("until=tonight", "write a time with its offset from UTC, such as 2026-"),
        ("until=2099-01-01T06:00", "it has no time zone"),
        (f"until={later(hours=1)};start={later(hours=2)}", "must be later than start"),
        ("schedule=0 22 * * *", "state both or none"),
        ("tonight", "does not have the form always, until="),
    ],
)
async def test_a_drain_that_can_not_be_read_is_told_with_what_to_write(
    text: str, said: str
) -> None:
    hub = await hub_of()
    await state(hub, {FIRST: {"drain": text}})
    async with client(hub) as http:
        found = await planned(http)
    assert said in json.dumps(found["gaps"])


async def test_a_plan_of_one_workload_keeps_it_apart_from_those_that_it_leaves_alone() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await apply(http, await planned(http, workloads=["app01"], whatIf={"pin": {"01": "01"}}))
        await state(hub, {APP02: {"apart-from": APP01}})
        alone = await planned(http, workloads=["app02"], clusters=[FIRST])
        free = await planned(http, workloads=["app02"])
        await state(hub, {APP02: {"apart-from": None, "together-with": APP01}})
        near = await planned(http, workloads=["app02"], clusters=[SECOND])
    assert places(alone) == places(near) == set()
    assert places(free) == {(APP02, SECOND)}


async def test_the_explanation_of_what_has_no_place_names_the_drain() -> None:
    hub = await hub_of()
    await state(hub, {FIRST: {"drain": "always"}, SECOND: {"drain": "always"}})
    async with client(hub) as http:
        found = await planned(http, request={"explain": True})
    assert {item["reason"] for item in found["unplaced"]} == {"Drained"}
    told = json.dumps(found["explanation"])
    assert "cluster worker01 is drained until somebody says otherwise" in told
    assert "end the drain of cluster" in told


async def test_a_kept_fleet_leaves_a_drained_cluster_and_comes_back() -> None:
    hub, clock = await hub_of(), [NOW]
    spec: dict[str, Any] = {"preference": body()["preference"], "mode": "Apply"}
    spec["targetWorkloads"] = [{"name": APP01}]
    spec["hysteresis"] = {"stabilizationWindowSeconds": 0}
    made = {"metadata": {"name": "kept", "namespace": "default"}, "spec": spec}
    await hub.create(kinds.PLACEMENT_OPTIMIZATION, made)
    controller = OptimizationController(Optimizer(hub, now=lambda: clock[0]), read_only=False)

    async def runs_on(hours: float) -> set[str]:
        clock[0] = NOW + timedelta(hours=hours)
        await controller.look("default", "kept")
        found = (await hub.list(kinds.PLACEMENT, "default")).items
        text = json.dumps([i["spec"] for i in found if "app01" in i["metadata"]["name"]])
        return {name for name in (FIRST, SECOND) if name in text}

    assert await runs_on(0) == {FIRST}
    drain = f"start={later(hours=1)};until={later(hours=3)}"
    await state(hub, {FIRST: {"drain": drain}})
    assert [await runs_on(hours) for hours in (0.5, 1.5)] == [{FIRST}, {SECOND}]
    await state(hub, {SECOND: {"drain": "always"}})
    assert await runs_on(4) == {FIRST}
