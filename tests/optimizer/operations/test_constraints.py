"""GET and POST /constraints, and that every later plan keeps what they remember."""

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from optimizer.snapshot.annotations import PREFIX
from tests.optimizer.build import NOW, body
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.test_planning import apply, planned
from tests.optimizer.operations.test_recorded_plans import client
from tests.optimizer.operations.test_stated_constraints import kept

WHERE = {"namespace": "default"}
NIGHT = {"schedule": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Berlin"}


async def keep(http: httpx.AsyncClient, forget: Any = None, **remember: Any) -> httpx.Response:
    asked = {**WHERE, "remember": remember, "forget": forget or {}}
    return await http.post("/constraints", json=asked)


async def told(http: httpx.AsyncClient) -> set[tuple[str, str, str]]:
    items = (await http.get("/constraints", params=WHERE)).json()["items"]
    return {(item["name"], item["constraint"], item["value"]) for item in items}


def places(plan: dict[str, Any]) -> set[tuple[str, str]]:
    return {(item["workload"], item["cluster"]) for item in plan["placements"]}


def later(**distance: float) -> str:
    return rfc3339(NOW + timedelta(**distance))


@pytest.mark.parametrize(
    ("remember", "wanted"),
    [
        ({"drain": ["worker01"]}, {("mwrs-app01", "worker02")}),
        ({"drain": {"01": {"until": later(hours=1)}}}, {("mwrs-app01", "worker02")}),
        ({"drain": {"01": {"start": later(hours=1)}}}, 2),
        ({"atMost": {"worker01": 0}}, {("mwrs-app01", "worker02")}),
        ({"pin": {"app01": "worker02"}}, {("mwrs-app01", "worker02"), ("mwrs-app02", "worker01")}),
        ({"exclude": {"app01": ["worker01", "worker02"]}}, None),
        ({"exclude": {"app01": ["worker02"]}, "atMost": {"worker02": 0}}, 1),
        ({"atLeast": {"app01": 2}}, {("mwrs-app01", "worker01"), ("mwrs-app01", "worker02")}),
        ({"together": [["app01", "app02"]]}, 0),
        ({"apart": [["app01", "app02"]]}, 2),
    ],
)
async def test_what_is_remembered_is_kept_by_plans_of_every_door(
    remember: dict[str, Any], wanted: Any
) -> None:
    async with client(await hub_of()) as http:
        kept = await keep(http, **remember)
        if wanted is None:
            assert kept.status_code == 422
            return
        assert kept.json()["written"], kept.text
        few = places(await planned(http))
        whole = places((await http.post("/optimize?dry_run=true", json=body())).json())
        asked = places(await planned(http, whatIf=remember))
    assert few == whole == asked
    assert len(few) == wanted if isinstance(wanted, int) else few == wanted


async def test_constraints_add_up_and_are_listed_and_forgotten_on_both_sides() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await keep(http, exclude={"app01": ["worker01"]}, drain={"02": NIGHT})
        shown = await http.post(
            "/constraints", json={**WHERE, "remember": {"apart": [["01", "02"]]}, "dryRun": True}
        )
        untouched = await told(http)
        await keep(http, apart=[["app01", "app02"]])
        before = await told(http)
        (night,) = (i for i in (await keep(http)).json()["items"] if i["constraint"] == "drain")
        await keep(http, forget={"app02": []})
        after = await told(http)
        unknown = await keep(http, forget={"app01": ["pin"]})
    own = {("mwrs-app01", "exclude", "worker01")}
    drained = "timeZone=Europe/Berlin;schedule=0 22 * * *;duration=8h"
    assert untouched == own | {("worker02", "drain", drained)}
    assert before - untouched == {
        ("mwrs-app01", "apart", "mwrs-app02"),
        ("mwrs-app02", "apart", "mwrs-app01"),
    }
    assert after == untouched
    assert (night["in_force"], night["message"]) == (
        False,
        f"managed cluster worker02 runs no workload, but not now ({drained})",
    )
    assert shown.json()["commands"] == [
        "kubectl annotate --overwrite manifestworkreplicaset -n default"
        f" {name} {PREFIX}apart-from={other}"
        for name, other in (("mwrs-app01", "mwrs-app02"), ("mwrs-app02", "mwrs-app01"))
    ]
    assert unknown.status_code == 422
    assert "mwrs-app01 has no pin; it has exclude" in unknown.json()["errors"][0]["message"]


async def test_a_workload_with_the_name_of_a_cluster_is_forgotten_by_what_it_states() -> None:
    hub = await hub_of()
    found = await hub.get(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default")
    metadata = {"name": "worker01", "namespace": "default", "labels": found["metadata"]["labels"]}
    await hub.create(kinds.MANIFEST_WORK_REPLICA_SET, {**found, "metadata": metadata})
    async with client(hub) as http:
        await keep(http, exclude={"worker01": ["worker01"]}, atMost={"worker01": 1})
        assert (await keep(http, forget={"worker01": ["exclude"]})).status_code == 200
        assert await told(http) == {("worker01", "atMost", "1")}


APP01, APP02 = "workload mwrs-app01 runs", "workload mwrs-app02 runs"
APART = "workload mwrs-app01 shares no cluster with mwrs-app02"
FAR = {"apart": [["app01", "app02"]]}
NEAR = {"together": [["app01", "app02"]]}


@pytest.mark.parametrize(
    ("first", "then", "conflict"),
    [
        (
            {"pin": {"app01": "worker01"}, "atMost": {"worker02": 1}},
            {"exclude": {"app01": ["worker01", "worker02"]}},
            ["workload mwrs-app01 never runs on worker01, worker02"],
        ),
        (
            {"pin": {"app01": "worker01"}},
            {"drain": ["worker01"]},
            [f"{APP01} only on worker01", "managed cluster worker01 runs no workload"],
        ),
        (NEAR, FAR, [APART, f"{APP01} only together with mwrs-app02"]),
        (
            {"pin": {"app01": "worker01"}},
            {"pin": {"app02": "worker01"}, "atMost": {"worker01": 1}},
            [
                f"{APP01} only on worker01",
                f"{APP02} only on worker01",
                "managed cluster worker01 runs at most 1 workloads",
            ],
        ),
        (
            {"pin": {"app01": "worker01", "app02": "worker01"}},
            FAR,
            [f"{APP01} only on worker01", f"{APP02} only on worker01", APART],
        ),
        (
            {"pin": {"app01": "worker01", "app02": "worker02"}},
            NEAR,
            [
                f"{APP01} only on worker01",
                f"{APP02} only on worker02",
                f"{APP01} only together with mwrs-app02",
            ],
        ),
        (
            {"pin": {"app01": "worker01"}},
            {"atLeast": {"app01": 2}},
            [f"{APP01} only on worker01", f"{APP01} on 2 clusters"],
        ),
        (
            {"atLeast": {"app01": 2}},
            FAR,
            [f"{APP01} on 2 clusters", "workload mwrs-app02 shares no cluster with mwrs-app01"],
        ),
        (
            {"pin": {"app02": "worker01"}, "atMost": {"worker01": 1}, "exclude": {"app01": "01"}},
            {"pin": {"app01": "worker01"}},
            [f"{APP01} only on worker01", "workload mwrs-app01 never runs on worker01"],
        ),
        (
            {"pin": {"app01": "worker01"}, **FAR, "exclude": {"app02": "worker01"}},
            {"pin": {"app02": "worker01"}},
            [f"{APP02} only on worker01", "workload mwrs-app02 never runs on worker01"],
        ),
    ],
)
async def test_the_smallest_contradiction_is_told_and_nothing_is_written(
    first: dict[str, Any], then: dict[str, Any], conflict: list[str]
) -> None:
    async with client(await hub_of()) as http:
        assert (await keep(http, **first)).status_code == 200
        before = await told(http)
        refused = await keep(http, **then)
        whole = {key: then.get(key) or first[key] for key in {**first, **then}}
        for key in first.keys() & then.keys():
            whole[key] = {**first[key], **then[key]}
        tried = await http.post("/plan", json={"objective": {"performance": 1}, "whatIf": whole})
        assert await told(http) == before
    for answer in (refused, tried):
        assert answer.status_code == 422
        said, _, rest = answer.json()["errors"][0]["message"].partition(": ")
        assert set(said.split("; ")) == set(conflict)
        assert rest == "this leaves no place; leave out a part of it, or forget it"


@pytest.mark.parametrize(
    ("remember", "said"),
    [
        ({"drain": {"worker": {}}}, "worker is ambiguous; managed clusters that match: worker01"),
        ({"pin": {"nobody": "worker01"}}, "no workload is named nobody"),
        ({"drain": {"01": {"until": "tonight"}}}, "with its offset from UTC, such as 2026-"),
        ({"drain": {"01": {"until": "2099-01-01T06:00"}}}, "it has no time zone"),
        ({"drain": {"01": {"until": later(hours=-1)}}}, "this drain is over, it is"),
        ({"drain": {"01": {"until": later(hours=1), "start": later(hours=2)}}}, "later than start"),
        ({"drain": {"01": {"schedule": "0 22 * * *"}}}, "state both or none"),
        ({"apart": [["app01", "mwrs-app01"]]}, "mwrs-app01 is named more than once"),
        ({"pin": {"app01": "worker01", "mwrs-app01": "worker02"}}, "named more than once"),
        ({"atMost": {"worker01": -1}}, "greater than or equal to 0"),
        ({"drain": {"01": {"timeZone": "Asia/Tokyo"}}}, "it is that of a schedule"),
        ({"apart": [[f"app{at}" for at in range(101)]]}, "at most 100"),
    ],
)
async def test_what_can_not_be_kept_is_refused_with_what_to_say(
    remember: dict[str, Any], said: str
) -> None:
    async with client(await hub_of()) as http:
        refused = await keep(http, **remember)
        assert refused.status_code == 422
        assert said in json.dumps(refused.json())
        assert await told(http) == set()


async def test_a_plan_of_one_workload_keeps_it_apart_from_those_that_it_leaves_alone() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await apply(http, await planned(http, workloads=["app01"], whatIf={"pin": {"01": "01"}}))
        await keep(http, apart=[["app01", "app02"]])
        alone = await planned(http, workloads=["app02"], clusters=["worker01"])
        free = await planned(http, workloads=["app02"])
    assert places(alone) == set()
    assert places(free) == {("mwrs-app02", "worker02")}


async def test_a_kept_fleet_leaves_a_drained_cluster_and_comes_back_when_it_is_forgotten() -> None:
    hub = await hub_of()
    runs_on = await kept(hub)
    async with client(hub) as http:
        assert await runs_on(0) == {"worker01"}
        await keep(http, drain={"worker01": {"start": later(hours=1), "until": later(hours=3)}})
        assert [await runs_on(hours) for hours in (0.5, 1.5)] == [{"worker01"}, {"worker02"}]
        await keep(http, drain=["worker02"])
        assert await runs_on(4) == {"worker01"}


async def selected(hub: EmbeddedHub) -> str:
    """The text of the Placement that places app01."""
    found = (await hub.list(kinds.PLACEMENT, "default")).items
    return json.dumps([i["spec"] for i in found if "app01" in i["metadata"]["name"]])


async def test_where_a_drain_can_not_be_read_nothing_new_is_placed_and_what_runs_stays() -> None:
    hub = await hub_of()

    async def drain(name: str, text: str | None) -> None:
        patch = {"metadata": {"annotations": {f"{PREFIX}drain": text}}}
        await hub.patch(kinds.MANAGED_CLUSTER, name, patch)

    async with client(hub) as http:
        await drain("worker01", "always")
        placed = await planned(http)
        await drain("worker02", "tonight")
        new = await planned(http)
        await drain("worker02", None)
        await apply(http, placed)
        await drain("worker02", "tonight")
        kept = await planned(http)
        copied = await planned(http, whatIf={"add": [{"name": "worker03", "like": "worker01"}]})
        drained = await planned(http, whatIf={"drain": ["worker02"]})
        found = (await http.get("/fleet", params=WHERE)).json()["findings"]
        refused = await keep(http, atMost={"worker02": 1})
    assert {cluster for _, cluster in places(placed)} == {"worker02"}
    assert places(kept) == places(placed)
    assert places(new) == places(drained) == set()
    assert {cluster for _, cluster in places(copied)} == {"worker02", "worker03"}
    assert "its drain can't be read, so it gets nothing new" in json.dumps(new)
    (unread,) = (item for item in found if item["reason"] == "InvalidAnnotation")
    assert (unread["name"], unread["severity"]) == ("worker02", "error")
    assert unread["message"].startswith(
        "plans read no annotation of worker02, and place nothing new there"
    )
    assert '"tonight" does not have the form always' in unread["message"]
    assert "worker02: drain can't be read; forget it first" in refused.text


async def test_what_can_not_be_read_is_listed_and_can_be_forgotten() -> None:
    hub = await hub_of()
    wrong = {f"{PREFIX}apart-from": "Not a name!", f"{PREFIX}priority": "high"}
    annotated = {"metadata": {"annotations": {**wrong, f"{PREFIX}clusters": "worker01"}}}
    await hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", annotated, "default")
    patch = {"metadata": {"annotations": {f"{PREFIX}drain": "tonight"}}}
    await hub.patch(kinds.MANAGED_CLUSTER, "worker02", patch)
    async with client(hub) as http:
        items = (await http.get("/constraints", params=WHERE)).json()["items"]
        refused = await keep(http, exclude={"app01": ["worker02"]})
        planned_before = places(await planned(http))
        forgotten = await keep(
            http, {"app01": ["apart", "priority"], "worker02": []}, exclude={"app01": ["worker02"]}
        )
        after = places(await planned(http))
    unread = {item["name"]: item["message"] for item in items if not item["in_force"]}
    assert [(item["name"], item["value"], item["in_force"]) for item in items] == [
        ("worker02", "tonight", False),
        ("mwrs-app01", "high", False),
        ("mwrs-app01", "worker01", True),
        ("mwrs-app01", "Not a name!", False),
    ]
    assert unread["worker02"] == "managed cluster worker02 has a drain that can't be read"
    assert "mwrs-app01: priority, apart can't be read; forget it first" in refused.text
    assert "app01" not in str(planned_before)
    assert forgotten.status_code == 200, forgotten.text
    assert ("mwrs-app01", "worker01") in after
