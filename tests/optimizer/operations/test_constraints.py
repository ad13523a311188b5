"""GET and POST /constraints, and that every later plan keeps what they remember."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from optimizer.snapshot.annotations import PREFIX
from tests.optimizer.build import NOW, body, guide, workload
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.test_planning import apply, planned
from tests.optimizer.operations.test_recorded_plans import client
from tests.optimizer.operations.test_stated_constraints import kept, state

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
    night_of = "from 2026-11-20 22:00 to 2026-11-21 06:00 Europe/Berlin"
    drained = "timeZone=Europe/Berlin;schedule=0 22 * * *;duration=8h"
    assert untouched == own | {("worker02", "drain", drained)}
    assert before - untouched == {
        ("mwrs-app01", "apart", "mwrs-app02"),
        ("mwrs-app02", "apart", "mwrs-app01"),
    }
    assert after == untouched
    assert (night["in_force"], night["message"]) == (
        False,
        (
            f"managed cluster worker02 runs no workload, but not now: next {night_of}; {night_of}"
            " it leaves no place: managed cluster worker02 runs no workload; workload mwrs-app01"
            f" never runs on worker01 ({drained})"
        ),
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
AT_MOST = [f"managed cluster worker0{at} runs at most 1 workload" for at in (1, 2)]
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
                "managed cluster worker01 runs at most 1 workload",
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
        counts = any("shares no cluster" in item or " clusters" in item for item in conflict)
        left = "too few of 2 managed clusters" if counts else "no place"
        assert rest == f"this leaves {left}; leave out a part of it, or forget it"


NOWHERE = {"mwrs-app01": {"excluded-clusters": "worker01,worker02"}}


@pytest.mark.parametrize(
    ("by_hand", "remember", "conflict"),
    [
        (
            {**NOWHERE, "worker02": {"drain": "always"}},
            {"drain": ["01"]},
            {f"managed cluster worker0{at} runs no workload" for at in (1, 2)},
        ),
        (
            NOWHERE,
            {"apart": [[f"app0{at}" for at in (1, 2, 3)]]},
            {
                "workload mwrs-app01 shares no cluster with mwrs-app02, mwrs-app03",
                "workload mwrs-app02 shares no cluster with mwrs-app01, mwrs-app03",
            },
        ),
        (
            {"mwrs-app03": {"together-with": "mwrs-app01,mwrs-app02"}},
            {"apart": [["app01", "app02"]]},
            {"workload mwrs-app03 runs only together with mwrs-app01, mwrs-app02", APART},
        ),
        (NOWHERE, {"pin": {"app02": "worker01"}, "atMost": {"worker02": 0}}, set()),
    ],
)
async def test_a_contradiction_is_found_beside_what_was_annotated_by_hand(
    by_hand: Any, remember: dict[str, Any], conflict: set[str]
) -> None:
    found = guide()
    hub = await hub_of(
        replace(found, workloads=(*found.workloads, workload("mwrs-app03", "app03")))
    )
    await state(hub, by_hand)
    async with client(hub) as http:
        answer = await keep(http, **remember)
    assert answer.status_code == (422 if conflict else 200), answer.text
    if conflict:
        said = answer.json()["errors"][0]["message"].partition(": this leaves")[0]
        assert set(said.split("; ")) == conflict


APP01_NOWHERE = "workload mwrs-app01 never runs on worker01, worker02; it leaves no place"
ONE_EACH = {
    f"{one}; it leaves no place for 1 of 3 workloads, because {other}"
    for one, other in (AT_MOST, AT_MOST[::-1])
}
BY_DAY = {"schedule": "0 11 * * *", "duration": "8h", "timeZone": "Etc/UTC"}
NONE_AT_ALL = "managed cluster worker01 runs at most 0 workloads"
DRAINED = [f"managed cluster worker0{at} runs no workload" for at in (1, 2)]


@pytest.mark.parametrize(
    ("remember", "conflict", "leaves"),
    [
        ({"drain": ["01", "02"]}, DRAINED, "for 2 of 2 workloads"),
        (  # their windows leave no gap
            {"drain": {"01": {**BY_DAY, "duration": "24h"}, "02": {**BY_DAY, "duration": "25h"}}},
            DRAINED,
            "for 2 of 2 workloads",
        ),
        (
            {"drain": {"01": {"start": later(hours=1)}, "02": {"start": later(hours=9)}}},
            DRAINED,
            "for 2 of 2 workloads",
        ),
        ({"atMost": {"01": 0}, "drain": ["02"]}, [DRAINED[1], NONE_AT_ALL], "for 2 of 2 workloads"),
        (
            {"together": [["app01", "app02"]], "atMost": {"01": 1, "02": 1}},
            [f"{APP01} only together with mwrs-app02", *AT_MOST],
            "",
        ),
    ],
)
async def test_what_leaves_no_place_for_ever_is_refused_for_workloads_that_state_nothing(
    remember: dict[str, Any], conflict: list[str], leaves: str
) -> None:
    async with client(await hub_of()) as http:
        refused = await keep(http, **remember)
        assert await told(http) == set()
    assert refused.status_code == 422, refused.text
    said, _, rest = refused.json()["errors"][0]["message"].partition(": this leaves no place")
    assert set(said.split("; ")) == set(conflict)
    assert rest.strip() == f"{leaves}; leave out a part of it, or forget it"


@pytest.mark.parametrize(
    ("remember", "at", "period"),
    [
        (
            {"apart": [["app01", "app02"]], "drain": {"02": NIGHT}},
            "worker02",
            "2026-11-20 22:00 to 2026-11-21 06:00 Europe/Berlin",
        ),
        (
            {
                "drain": {
                    "01": {**NIGHT, "schedule": "0 22 * * tue"},
                    "02": {**NIGHT, "schedule": "0 1 * * *", "duration": "1h"},
                }
            },
            "worker02",
            "2026-11-25 01:00 to 2026-11-25 02:00 Europe/Berlin",
        ),
        ({"drain": {"01": NIGHT, "02": BY_DAY}}, "", ""),
        (  # a pinned workload, while its cluster is maintained now
            {"pin": {"app02": "02"}, "drain": {"02": {"until": "2026-11-21T01:00:00+01:00"}}},
            "worker02",
            "2026-11-20 12:00 to 2026-11-21 00:00 Etc/UTC",
        ),
        (
            {"atMost": {"01": 1}, "drain": ["02"]},
            "worker02",
            "2026-11-20 12:00 Etc/UTC until somebody says otherwise",
        ),
    ],
)
async def test_what_leaves_no_place_at_times_is_kept_and_says_when(
    remember: dict[str, Any], at: str, period: str
) -> None:
    async with client(await hub_of()) as http:
        kept = await keep(http, **remember)
        listed = await http.get("/constraints", params=WHERE)
    assert kept.status_code == 200, kept.text
    assert kept.json()["items"] == listed.json()["items"]
    told_of = {i["name"]: i["message"] for i in kept.json()["items"] if "it leaves" in i["message"]}
    assert set(told_of) == ({at} if at else set())
    if at:
        assert f"; from {period} it leaves " in told_of[at]
        assert "managed cluster worker02 runs no workload" in told_of[at]


@pytest.mark.parametrize(
    ("by_hand", "remember", "leaving"),
    [
        ({}, {"atMost": {"01": 1, "02": 1}}, ONE_EACH),
        ({}, {"atMost": {"01": 1, "02": 2}}, set()),
        (NOWHERE, {"pin": {"app02": "worker01"}}, {APP01_NOWHERE}),
        (  # each of two contradictions is told, and the drain says its own
            NOWHERE,
            {"atMost": {"01": 1, "02": 1}, "drain": {"02": NIGHT}},
            {APP01_NOWHERE, *ONE_EACH},
        ),
        (
            {
                f"mwrs-app0{at}": {
                    "apart-from": ",".join(f"mwrs-app0{i}" for i in {1, 2, 3} - {at})
                }
                for at in (1, 2, 3)
            },
            {"atMost": {"02": 2}},
            {
                f"workload mwrs-app0{at} shares no cluster with"
                f" {', '.join(f'mwrs-app0{i}' for i in (1, 2, 3) if i != at)}; it leaves too few of"
                " 2 managed clusters, because workload "
                for at in (1, 2, 3)
            },
        ),
    ],
)
async def test_each_constraint_that_leaves_too_few_places_says_so(
    by_hand: Any, remember: dict[str, Any], leaving: set[str]
) -> None:
    found = guide()
    third = workload("mwrs-app03", "app03")
    hub = await hub_of(replace(found, workloads=(*found.workloads, third)))
    await state(hub, by_hand)
    async with client(hub) as http:
        items = (await keep(http, **remember)).json()["items"]
    messages = {i["message"] for i in items if "it leaves" in i["message"] and i["in_force"]}
    assert len(messages) == len(leaving)
    assert all(any(text.startswith(said) for text in messages) for said in leaving)
    drained = [item["message"] for item in items if item["constraint"] == "drain"]
    assert all("it leaves no place for 2 of 3 workloads: " in text for text in drained)


async def test_each_drain_says_when_it_leaves_no_place() -> None:
    until = {"until": "2026-11-20T18:00:00+01:00"}
    remember = {"apart": [["app01", "app02"]], "drain": {"01": until, "02": NIGHT}}
    async with client(await hub_of()) as http:
        kept = await keep(http, **remember)
    periods = {
        item["name"]: item["message"].partition("; from ")[2].partition(" it leaves too few")[0]
        for item in kept.json()["items"]
        if item["constraint"] == "drain"
    }
    assert periods == {
        "worker01": "2026-11-20 12:00 to 2026-11-20 17:00 Etc/UTC",
        "worker02": "2026-11-20 22:00 to 2026-11-21 06:00 Europe/Berlin",
    }


@pytest.mark.parametrize("drain", [{"start": later(hours=1)}, NIGHT])
async def test_a_plan_refuses_a_drain_that_does_not_hold_now(drain: dict[str, Any]) -> None:
    async with client(await hub_of()) as http:
        asked = {"objective": {"performance": 1}, "whatIf": {"drain": {"worker01": drain}}}
        refused = await http.post("/plan", json=asked)
    assert refused.status_code == 422
    assert "a plan is for now: leave out its times" in refused.text


async def test_a_plan_without_any_cluster_says_which_field_takes_them_away() -> None:
    async with client(await hub_of()) as http:
        asked = {"objective": {"performance": 1}, "whatIf": {"lose": ["01", "02"]}}
        refused = await http.post("/plan", json=asked)
    (wrong,) = refused.json()["errors"]
    assert wrong["field"] == "what_if.lose"
    assert wrong["message"] == "no cluster would be left to plan for; lose fewer, or add one"


THREE = ("app01", "app02", "app03")


@pytest.mark.parametrize(
    ("names", "remember", "conflict"),
    [
        (
            ("worker01", "worker02"),
            {"apart": [THREE]},
            {
                f"workload mwrs-{name} shares no cluster with"
                f" {', '.join(f'mwrs-{other}' for other in THREE if other != name)}"
                for name in THREE[:2]
            },
        ),
        (
            ("worker01", "worker02", "worker03"),
            {"apart": [THREE[1:]], "atLeast": {"app02": 3, "app03": 1}},
            {
                "workload mwrs-app02 runs on 3 clusters",
                "workload mwrs-app03 shares no cluster with mwrs-app02",
            },
        ),
        (
            ("worker01", "worker02", "worker03"),
            {"apart": [THREE], "pin": {name: ["worker01", "worker02"] for name in THREE}},
            {f"workload mwrs-{name} runs only on worker01, worker02" for name in THREE}
            | {
                "workload mwrs-app01 shares no cluster with mwrs-app02, mwrs-app03",
                "workload mwrs-app02 shares no cluster with mwrs-app01, mwrs-app03",
            },
        ),
        (
            ("worker01", "worker02", "worker03"),
            {
                "atMost": {"worker01": 1, "worker02": 1},
                "pin": {name: ["worker01", "worker02"] for name in THREE},
            },
            {f"workload mwrs-{name} runs only on worker01, worker02" for name in THREE}
            | {f"managed cluster worker0{at} runs at most 1 workload" for at in (1, 2)},
        ),
    ],
)
async def test_more_workloads_than_clusters_is_a_contradiction(
    names: tuple[str, ...], remember: dict[str, Any], conflict: set[str]
) -> None:
    found = guide(names)
    third = workload("mwrs-app03", "app03")
    hub = await hub_of(replace(found, workloads=(*found.workloads, third)))
    async with client(hub) as http:
        refused = await keep(http, **remember)
    assert refused.status_code == 422, refused.text
    said, _, rest = refused.json()["errors"][0]["message"].partition(": ")
    assert set(said.split("; ")) == conflict
    assert rest.startswith(("this leaves too few of ", "this leaves no place;"))


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
        ({"drain": {"01": {"schedule": "0 22 * * *", "duration": "8h"}}}, "say timeZone, such as"),
        ({"drain": [{"01": {"until": later(hours=1)}}]}, 'write [\\"worker01\\"], or {'),
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
