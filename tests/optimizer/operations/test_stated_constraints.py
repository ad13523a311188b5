"""What workloads and clusters state in annotations is kept by plans of every door."""

import json
from collections.abc import Awaitable, Callable
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
        (f"until={later(hours=1)};until={later(hours=2)}", "has a name twice"),
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


@pytest.mark.parametrize(
    ("said", "prune", "wanted"),
    [
        ({}, False, FIRST),
        ({APP02: {"apart-from": APP01}}, False, ""),
        ({APP01: {"apart-from": APP02}}, False, ""),
        ({APP02: {"apart-from": APP01}}, True, FIRST),
        ({APP02: {"together-with": APP01}}, False, FIRST),
        ({APP02: {"together-with": APP01}}, True, ""),
        ({FIRST: {"max-workloads": "1"}}, False, ""),
        ({FIRST: {"max-workloads": "2"}}, False, FIRST),
        ({FIRST: {"max-workloads": "1"}}, True, FIRST),
    ],
)
async def test_a_plan_of_one_workload_counts_those_that_it_leaves_where_they_are(
    said: Any, prune: bool, wanted: str
) -> None:
    hub = await hub_of()
    await state(hub, {FIRST: {"allocatable": "gpu/2g.24gb=9"}})
    async with client(hub) as http:
        await apply(http, await planned(http, workloads=["app01"], whatIf={"pin": {"01": "01"}}))
        await state(hub, said)
        asked = {**body(clusters=[FIRST], workloads=[APP02]), "prune": prune}
        found = (await http.post("/optimize?dry_run=true", json=asked)).json()
    assert places(found) == ({(APP02, wanted)} if wanted else set())


async def test_a_plan_of_one_workload_goes_where_it_may() -> None:
    hub = await hub_of()
    await state(hub, {APP02: {"apart-from": APP01}, FIRST: {"allocatable": "gpu/2g.24gb=9"}})
    async with client(hub) as http:
        await apply(http, await planned(http, workloads=["app01"], whatIf={"pin": {"01": "01"}}))
        apart = await planned(http, workloads=["app02"])
        await state(hub, {APP02: {"apart-from": None, "together-with": APP01}})
        near = await planned(http, workloads=["app02"])
        far = await planned(http, workloads=["app02"], clusters=[SECOND])
    assert [places(apart), places(near)] == [{(APP02, SECOND)}, {(APP02, FIRST)}]
    assert places(far) == set()


async def test_a_workload_that_does_not_exist_is_told() -> None:
    hub = await hub_of()
    await state(hub, {APP01: {"apart-from": "mwrs-ap02"}, APP02: {"together-with": "mwrs-ap01"}})
    async with client(hub) as http:
        found = await planned(http)
    told = [item["message"] for item in found["gaps"] if item["reason"] == "UnknownWorkloads"]
    assert [name in text for name, text in zip(("ap02", "ap01"), told, strict=True)] == [True] * 2


async def test_a_drained_cluster_is_listed_as_drained() -> None:
    hub = await hub_of()
    await state(hub, {FIRST: {"drain": BY_DAY}, SECOND: {"drain": f"start={later(hours=1)}"}})
    async with client(hub) as http:
        found = (await http.get("/fleet", params={"namespace": "default"})).json()["findings"]
    drains = [item for item in found if item["reason"] == "Drained"]
    assert [(item["name"], item["severity"]) for item in drains] == [(FIRST, "info")]
    assert "until 2026-" in drains[0]["message"]


async def test_the_explanation_of_what_has_no_place_names_the_drain() -> None:
    hub = await hub_of()
    await state(hub, {FIRST: {"drain": "always"}, SECOND: {"drain": "always"}})
    async with client(hub) as http:
        found = await planned(http, request={"explain": True})
    assert {item["reason"] for item in found["unplaced"]} == {"Drained"}
    told = json.dumps(found["explanation"])
    assert "cluster worker01 is drained until somebody says otherwise" in told
    assert "end the drain of cluster" in told


async def kept(hub: EmbeddedHub) -> Callable[[float], Awaitable[set[str]]]:
    """Keep app01 placed; return what tells where it runs after a look so many hours later."""
    clock = [NOW]
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

    return runs_on


async def test_a_kept_fleet_leaves_a_drained_cluster_and_comes_back() -> None:
    hub = await hub_of()
    runs_on = await kept(hub)
    assert await runs_on(0) == {FIRST}
    drain = f"start={later(hours=1)};until={later(hours=3)}"
    await state(hub, {FIRST: {"drain": drain}})
    assert [await runs_on(hours) for hours in (0.5, 1.5)] == [{FIRST}, {SECOND}]
    await state(hub, {SECOND: {"drain": "always"}})
    assert await runs_on(4) == {FIRST}
    await state(hub, {SECOND: {"drain": None}})
    assert await runs_on(5) == {FIRST}
    await state(hub, {FIRST: {"max-workloads": "0"}})
    assert await runs_on(6) == {SECOND}
