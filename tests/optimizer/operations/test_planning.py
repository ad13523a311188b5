"""POST /plan, and that what is applied is what a dry run showed."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import Kube, Object
from optimizer.domain.settings import DEFAULTS
from optimizer.domain.solution import Decision, Solution
from optimizer.operations.access.caller import Caller, progress_of
from optimizer.operations.access.rights import fleet_rights, record_rights, writing_rights
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.kube_wrappers.slow_scores import REPORT_SECONDS, SlowScores
from tests.optimizer.api.test_app import problem
from tests.optimizer.build import body
from tests.optimizer.hubs import bound, hub_of
from tests.optimizer.operations.access.callers import READER, TOKENS, WRITER
from tests.optimizer.operations.test_recorded_plans import client

BEST = {"3g.48gb-worker01", "3g.48gb-worker02"}


async def planned(http: httpx.AsyncClient, **question: Any) -> dict[str, Any]:
    answer = await http.post("/plan", json={"objective": {"performance": 1}, **question})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def apply(http: httpx.AsyncClient, shown: dict[str, Any], **options: Any) -> httpx.Response:
    params = {"expected_digest": shown["digest"]}
    return await http.post("/optimize", json=shown["request"], params=params, **options)


async def rescore(hub: EmbeddedHub, value: int) -> None:
    """Give one entry of worker01 another value, which is part of a plan's digest."""
    score = await hub.get(kinds.ADD_ON_PLACEMENT_SCORE, "performance", "worker01")
    entries = [
        {**item, "value": value} if item["name"] == "app01;2g.24gb" else item
        for item in score["status"]["scores"]
    ]
    patch = {"status": {"scores": entries}}
    await hub.patch(
        kinds.ADD_ON_PLACEMENT_SCORE, "performance", patch, "worker01", subresource="status"
    )


async def test_few_words_make_a_plan_that_is_applied_as_it_was_shown() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        shown = await planned(http)
        untouched = await bound(hub)
        await rescore(hub, 11)
        done = (await apply(http, shown)).json()
        again = await apply(http, shown)
    assert (shown["applied"], shown["objective_value"], untouched) == (False, 115, set())
    assert [(item["workload"], item["action"]) for item in shown["moves"]] == [
        ("mwrs-app01", "starts"),
        ("mwrs-app02", "starts"),
    ]
    assert {item["cluster"] for item in shown["enforcement_changes"]} == {"worker01", "worker02"}
    assert (done["applied"], done["digest"]) == (True, shown["digest"])
    assert await bound(hub) == BEST
    problem(again, 409, "PlanChanged")


async def test_another_process_applies_the_plan_only_if_it_makes_the_same() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        shown = await planned(http)
        other = await planned(http, workloads=["app01"])
    async with client(hub) as http:
        crossed = await apply(http, {**other, "digest": shown["digest"]})
        await rescore(hub, 11)
        changed = await apply(http, shown)
        await rescore(hub, 10)
        before = await bound(hub)
        done = await apply(http, shown)
    problem(crossed, 409, "PlanChanged")
    problem(changed, 409, "PlanChanged")
    assert (before, done.status_code) == (set(), 200)
    assert await bound(hub) == BEST


async def test_a_plan_that_the_hub_no_longer_allows_is_refused() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        shown = await planned(http)
        await hub.delete(kinds.POLICY, "3g.48gb-worker01", "default")
        refused = await apply(http, shown)
        crossed = await http.post(
            "/optimize", json=body("power"), params={"expected_digest": shown["digest"]}
        )
    assert refused.status_code in {409, 422}
    assert crossed.status_code in {409, 422}
    assert await bound(hub) == set()


async def test_what_if_shows_a_plan_and_only_a_possible_one_has_a_request() -> None:
    async with client(await hub_of()) as http:
        lost = await planned(http, whatIf={"lose": ["worker02"]})
        copy = {"name": "worker03", "like": "worker01"}
        pretended = await planned(http, whatIf={"add": [copy]})
        explained = await planned(http, request={"explain": True}, whatIf={"lose": ["worker02"]})
        await apply(http, explained)
        moved = await planned(http, whatIf={"lose": ["worker01"]})
        where = {"namespace": "default"}
        recorded = (await http.get(f"/plans/{explained['digest']}", params=where)).json()
    assert {item["cluster"] for item in lost["placements"]} == {"worker01"}
    # The scores of a lost cluster are not read, so nobody knows what a move from it gains.
    gains = {item["action"]: item["gain"] for item in moved["moves"]}
    assert (gains["moves"], set(gains) > {"moves"}) == ({}, True), gains
    assert [item["name"] for item in lost["request"]["clusters"]] == ["worker01"]
    assert pretended["request"] is None
    (missing,) = explained["explanation"]["unplaced"]
    assert missing["remedy"]
    assert [item["workload"] for item in recorded["unplaced"]] == [missing["workload"]]


@pytest.mark.parametrize(
    ("question", "status", "reason", "field"),
    [
        ({"objective": {"perfromance": 1}}, 422, "UnknownName", "objective"),
        ({"objective": {}}, 422, "NoObjective", "objective"),
        ({"objective": {"performance": -1}}, 422, "InvalidField", "objective.performance"),
        ({"objectiv": {}}, 422, "InvalidField", "objectiv"),
        (
            {"objective": {"performance": 1}, "request": {"explian": True}},
            422,
            "InvalidRequest",
            "explian",
        ),
        ({"objective": {"performance": 1}, "whatIf": {"lose": ["<b>"]}}, 422, "InvalidField", ""),
    ],
)
async def test_a_question_that_is_not_clear_is_a_problem(
    question: dict[str, Any], status: int, reason: str, field: str
) -> None:
    async with client(await hub_of()) as http:
        found = problem(await http.post("/plan", json=question), status, reason)
    assert field in found["errors"][0]["field"]


async def test_a_dry_run_of_a_rollback_is_applied_as_it_was_shown() -> None:
    hub = await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body())
        await http.post("/optimize", json=body("power"))
        shown = (await http.post("/rollback", json={"namespace": "default", "dryRun": True})).json()
        expected = {"expected_digest": shown["digest"]}
        wrong = await http.post(
            "/rollback", json={"namespace": "default"}, params={"expected_digest": "ab"}
        )
        await rescore(hub, 11)
        done = await http.post("/rollback", json={"namespace": "default"}, params=expected)
    assert {item["action"] for item in shown["moves"]} <= {"moves", "stays", "starts"}
    problem(wrong, 409, "PlanChanged")
    assert (done.status_code, done.json()["digest"]) == (200, shown["digest"])
    assert await bound(hub) == BEST


async def test_a_plan_is_applied_for_those_alone_who_were_shown_it_and_may_write() -> None:
    rights = {
        READER.name: [*fleet_rights("default")],
        WRITER.name: [*fleet_rights("default"), *writing_rights("default")],
    }
    hub = await hub_of(access=AccessTable(TOKENS, rights))
    reader, writer = ({"Authorization": f"Bearer token-of-{name}"} for name in ("reader", "writer"))
    async with client(hub, checked=True) as http:
        question = {"objective": {"performance": 1}}
        nobody = await http.post("/plan", json=question)
        stranger = {"Authorization": "Bearer token-of-stranger"}
        unread = await http.post("/plan", json=question, headers=stranger)
        shown = (await http.post("/plan", json=question, headers=reader)).json()
        refused = await apply(http, shown, headers=reader)
        before = await bound(hub)
        await rescore(hub, 11)
        other = await apply(http, shown, headers=writer)
    problem(nobody, 401, "Unauthorized")
    problem(unread, 403, "Forbidden")
    problem(refused, 403, "Forbidden")
    assert before == set()
    problem(other, 409, "PlanChanged")


POWER_LIMIT = {"name": "power", "maximum": 30, "score": {"addonPlacementScore": "power"}}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"request": {"limits": [POWER_LIMIT]}}, {"request.limits.0.maximum": 30}),
        (
            {"request": {"limits": [POWER_LIMIT]}, "whatIf": {"budget": {"performance": 70}}},
            {"request.limits.0.name": "power", "request.limits.1.name": "budget-performance"},
        ),
        (
            {"request": {"targetWorkloads": [{"name": "mwrs-app02"}]}},
            {"placements.0.workload": "mwrs-app02", "request.prune": False},
        ),
        (
            {"request": {"clusters": [{"name": "worker02"}], "mig": {"discover": True}}},
            {"request.clusters": [{"name": "worker02"}]},
        ),
        (
            {"objective": None, "request": {"preference": {"addonPlacementScore": "power"}}},
            {"objective_value": 170},
        ),
        ({"namespace": None, "request": {"namespace": "default"}}, {"objective_value": 115}),
        ({"request": {"namespace": "default", "dryRun": True}}, {"objective_value": 115}),
        ({"request": {"optimization": "team-a"}}, {"request.optimization": "team-a"}),
    ],
)
async def test_a_field_of_the_request_of_a_question_counts(
    question: dict[str, Any], expected: dict[str, Any]
) -> None:
    said = {"namespace": "default", "objective": {"performance": 1}, **question}
    async with client(await hub_of()) as http:
        stated = {key: value for key, value in said.items() if value is not None}
        found = (await http.post("/plan", json=stated)).json()
    for path, value in expected.items():
        part: Any = found
        for key in path.split("."):
            part = part[int(key)] if key.isdigit() else part.get(key)
        assert part == value, found


@pytest.mark.parametrize(
    ("question", "field", "said"),
    [
        ({"request": {"limits": "garbage"}}, "request.limits", "must be a list"),
        (
            {"request": {"limits": 3}, "whatIf": {"budget": {"power": 1}}},
            "request.limits",
            "must be a list",
        ),
        (
            {"request": {"targetWorkloads": [{"name": "mwrs-app01"}]}, "workloads": ["app02"]},
            "request.targetWorkloads",
            "the question says workloads too; say one of them",
        ),
        (
            {"request": {"clusters": []}, "whatIf": {"drain": ["worker01"]}},
            "request.clusters",
            "the question says what_if.drain too; say one of them",
        ),
        (
            {"request": {"clusters": [{"name": "worker01"}]}, "clusters": ["worker02"]},
            "request.clusters",
            "the question says clusters too; say one of them",
        ),
        (
            {"request": {"preference": {"addonPlacementScore": "power"}}},
            "request.preference",
            "the question says objective too; say one of them",
        ),
        (
            {"request": {"objectives": []}},
            "request.objectives",
            "the question says objective too; say one of them",
        ),
        (
            {"objective": {}, "request": {"objectives": []}},
            "request.objectives",
            "say preference too, or objective with each weight",
        ),
        (
            {"request": {"namespace": "other"}},
            "request.namespace",
            "the question is about namespace default; say it as its namespace",
        ),
        ({"request": {"namespace": 3}}, "request.namespace", "Input should be a valid string"),
        ({"request": {"dryRun": False}}, "request.dryRun", "this only plans"),
        ({"request": {"dryRun": "maybe"}}, "request.dryRun", "valid boolean"),
        (
            {"request": {"target_workloads": []}},
            "request.target_workloads",
            "did you mean targetWorkloads",
        ),
    ],
)
async def test_a_field_of_the_request_that_cannot_count_is_refused_by_name(
    question: dict[str, Any], field: str, said: str
) -> None:
    wish = {"namespace": "default", "objective": {"performance": 1}, **question}
    async with client(await hub_of()) as http:
        found = problem(await http.post("/plan", json=wish), 422, "InvalidRequest")
    assert (found["errors"][0]["field"], said in found["errors"][0]["message"]) == (field, True)


RESCORED = {"score": "performance", "cluster": "worker01", "value": 9}
COPY = {"name": "worker03", "like": "worker01"}


@pytest.mark.parametrize(
    ("question", "field", "said"),
    [
        (
            {"pin": {"app01": "worker01", "mwrs-app01": "worker02"}},
            "what_if.pin",
            "mwrs-app01 is named more than once",
        ),
        ({"pin": {"app02": "worker01"}}, "what_if.pin", "mwrs-app02: no workload of this question"),
        (
            {"exclude": {"app02": ["worker01"]}},
            "what_if.exclude",
            "mwrs-app02: no workload of this question",
        ),
        (
            {"exclude": {"app01": ["worker02"]}, "lose": ["worker02"]},
            "what_if.exclude",
            "worker02: no cluster of this question",
        ),
        (
            {"drain": ["worker02"], "lose": ["worker02"]},
            "what_if.drain",
            "worker02: no cluster of this question",
        ),
        (
            {"scores": [{**RESCORED, "cluster": "worker02"}], "lose": ["worker02"]},
            "what_if.scores",
            "worker02: no cluster of this question",
        ),
        (
            {"scores": [{**RESCORED, "score": "power"}]},
            "what_if.scores",
            "power: no score of this question",
        ),
        (
            {"scores": [{**RESCORED, "entry": "zzz"}]},
            "what_if.scores",
            "no entry of performance on worker01 contains zzz",
        ),
        (
            {"scores": [{**RESCORED, "entry": "app01"}, RESCORED]},
            "what_if.scores",
            "later changes replace that of app01 in performance on worker01",
        ),
        ({"lose": ["worker03"], "add": [COPY]}, "what_if.lose", "no managed cluster is named"),
        (
            {"add": [{"name": "worker04", "like": "worker03"}, COPY]},
            "what_if.add",
            "no managed cluster is named",
        ),
        (
            {"add": [{**COPY, "name": "worker02"}], "lose": ["worker02"]},
            "what_if.add",
            "give the new cluster its own, with like: worker02 for its nodes",
        ),
        ({"add": [COPY, {**COPY, "like": "worker02"}]}, "", "worker03"),
    ],
)
async def test_what_if_refuses_by_name_what_would_change_nothing(
    question: dict[str, Any], field: str, said: str
) -> None:
    wish = {"objective": {"performance": 1}, "workloads": ["app01"], "whatIf": question}
    async with client(await hub_of()) as http:
        answer = await http.post("/plan", json=wish)
    assert answer.status_code == 422, answer.json()
    error = answer.json()["errors"][0]
    assert (error["field"].startswith(field), said in error["message"]) == (True, True), error


async def test_what_if_refuses_a_lost_cluster_that_is_not_asked_about() -> None:
    asked = {"objective": {"performance": 1}, "clusters": ["worker01"]}
    async with client(await hub_of()) as http:
        wish = {**asked, "whatIf": {"lose": ["worker02"]}}
        found = problem(await http.post("/plan", json=wish), 422, "InvalidRequest")
    assert found["errors"][0]["field"] == "what_if.lose"


async def test_what_if_excludes_clusters_of_several_workloads() -> None:
    exclude = {"app01": ["worker01"], "app02": ["worker02"]}
    async with client(await hub_of()) as http:
        found = await planned(http, whatIf={"exclude": exclude})
    assert found["request"]["targetWorkloads"] == [
        {"name": "mwrs-app01", "excludedClusters": ["worker01"]},
        {"name": "mwrs-app02", "excludedClusters": ["worker02"]},
    ]


async def test_what_if_takes_the_last_change_of_an_entry_and_changes_copies_too() -> None:
    scores = [
        {**RESCORED, "value": 1},
        {**RESCORED, "entry": "3g.48gb", "value": 40},
        {**RESCORED, "cluster": "worker03", "entry": "3g.48gb", "value": 90},
    ]
    async with client(await hub_of()) as http:
        found = await planned(
            http,
            workloads=["app01"],
            whatIf={"scores": scores, "add": [COPY], "lose": ["worker02"]},
        )
    assert (found["placements"][0]["cluster"], found["objective_value"]) == ("worker03", 90)


async def test_a_whole_body_is_planned_as_it_is_said() -> None:
    async with client(await hub_of()) as http:
        whole = await http.post("/plan", json={"request": body("power")})
        crossed = await http.post("/plan", json={"namespace": "other", "request": body("power")})
    assert whole.json()["objective_value"] == 170
    assert "prune" not in whole.json()["request"]
    assert problem(crossed, 422, "InvalidRequest")["errors"][0]["field"] == "request.namespace"


async def test_the_objective_that_is_not_said_is_that_of_the_plan_in_force() -> None:
    async with client(await hub_of()) as http:
        problem(await http.post("/plan", json={}), 422, "NoObjective")
        objectives = [{"addonPlacementScore": "performance", "weight": 0.25}]
        given = {"objectives": objectives, "limits": [{**POWER_LIMIT, "maximum": 500}]}
        applied = (await http.post("/optimize", json={**body("power"), **given})).json()
        taken = (await http.post("/plan", json={"whatIf": {"lose": ["worker02"]}})).json()
        other = await http.post("/plan", json={"request": {"optimization": "team-b"}})
        said = (await http.post("/plan", json={"objective": {"performance": 1}})).json()
    assert taken["request"]["preference"] == body("power")["preference"]
    assert taken["request"]["objectives"] == objectives
    assert taken["objective_from"] == {
        "message": "No objective was said, so it is that of the plan in force: power x 1,"
        f" performance x 0.25 (PlacementPlan default-1, digest {applied['digest']}). Its limits"
        " are not taken over: say them in `request`.",
        "record": "default-1",
        "digest": applied["digest"],
        "scores": {"power": 1, "performance": 0.25},
    }
    problem(other, 422, "NoObjective")
    assert said["objective_from"] is None


async def test_what_a_placement_optimization_states_counts_before_the_plan_in_force() -> None:
    spec = {key: value for key, value in body("performance").items() if key != "namespace"}
    night = {"schedule": "* * * * *", "duration": "2h", **objective("power", 2)}
    hub, other = await hub_of(), await hub_of()
    async with client(hub) as http:
        await http.post("/optimize", json=body("power"))
        await hub.create(kinds.PLACEMENT_OPTIMIZATION, kept("default", spec))
        stated = (await http.post("/plan", json={})).json()
    await other.create(kinds.PLACEMENT_OPTIMIZATION, kept("b", {**spec, "schedules": [night]}))
    async with client(other) as http:
        named = (await http.post("/plan", json={"request": {"optimization": "b"}})).json()
    assert stated["objective_from"] == {
        "message": "No objective was said, so it is that of PlacementOptimization default:"
        " performance x 1.",
        "record": "",
        "digest": "",
        "scores": {"performance": 1},
    }
    assert stated["objective_value"] == 115
    assert named["objective_from"]["scores"] == {"power": 2}


def kept(name: str, spec: dict[str, Any]) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return kinds.PLACEMENT_OPTIMIZATION.object(metadata=metadata, spec=spec)


def objective(score: str, weight: float) -> dict[str, Any]:
    return {"preference": {"addonPlacementScore": score, "weight": weight}}


async def test_the_objective_in_force_is_told_to_those_alone_who_may_read_plans() -> None:
    rights = {
        READER.name: [*fleet_rights("default"), *record_rights("default")],
        WRITER.name: [*fleet_rights("default")],
    }
    hub = await hub_of(access=AccessTable(TOKENS, rights))
    async with client(hub) as http:
        await http.post("/optimize", json=body("power"))
    async with client(hub, checked=True) as http:
        reader, writer = [
            await http.post("/plan", json={}, headers={"Authorization": f"Bearer token-of-{name}"})
            for name in ("reader", "writer")
        ]
    assert reader.json()["objective_value"] == 170
    problem(writer, 422, "NoObjective")


@pytest.mark.parametrize(
    ("said", "of_server", "gap"),
    [({}, 0.0, 0.001), ({}, 0.05, 0.05), ({"gap": 0}, 0.05, 0), ({"gap": 0.02}, 0.0, 0.02)],
)
async def test_a_plan_that_a_person_waits_for_is_not_proven_to_the_last_thousandth(
    said: dict[str, Any], of_server: float, gap: float
) -> None:
    settings = replace(DEFAULTS, gap=of_server)
    async with client(await hub_of(), settings) as http:
        shown = await planned(http, request=said)
        recorded = await http.post("/optimize", json=body())
    assert shown["request"]["gap"] == gap
    assert recorded.json()["gap"] <= of_server


EVENTS = {"Accept": "application/json, text/event-stream"}


async def told(hub: Kube, monkeypatch: pytest.MonkeyPatch, **question: Any) -> list[Any]:
    """Return the events of a question to a hub that is slow: name and data."""
    monkeypatch.setattr("optimizer.operations.access.caller.TOLD_EVERY_SECONDS", REPORT_SECONDS)
    asked = {"objective": {"performance": 1}, **question}
    async with client(hub) as http:
        answer = await http.post("/plan", json=asked, headers=EVENTS)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n") for part in answer.text.strip().split("\n\n")]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in events
    ]


async def test_who_accepts_events_hears_how_far_a_plan_is_that_takes_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = await hub_of()
    (first, progress), *_, (last, shown) = await told(SlowScores(hub), monkeypatch)
    assert (first, last) == ("progress", "result")
    assert progress["message"] == "Planning: 0 s"
    async with client(hub) as http:
        assert shown["digest"] == (await planned(http))["digest"]


async def test_a_plan_that_fails_later_ends_the_events_with_its_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = await hub_of()
    *_, (refused, unknown) = await told(SlowScores(hub), monkeypatch, clusters=["worker99"])
    *_, (failed, gone) = await told(SlowScores(hub, broken=True), monkeypatch)
    assert (refused, unknown["reason"]) == ("problem", "UnknownName")
    assert (failed, gone["reason"], gone["status"]) == ("problem", "HubUnreachable", 503)


async def test_a_plan_that_is_there_soon_is_no_stream_of_events() -> None:
    async with client(await hub_of()) as http:
        asked = {"objective": {"performance": 1}}
        soon = await http.post("/plan", json=asked, headers=EVENTS)
        refused = await http.post("/plan", json={**asked, "clusters": ["worker99"]}, headers=EVENTS)
    assert soon.headers["content-type"] == "application/json"
    assert soon.json()["status"] == "Optimal"
    problem(refused, 422, "UnknownName")


async def test_progress_tells_the_best_decision_and_how_much_better_one_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("optimizer.operations.access.caller.TOLD_EVERY_SECONDS", REPORT_SECONDS)
    caller = Caller()
    caller.was_found(Solution("Feasible", Decision(), 200.0, 200.21, 1.0, "highs"))
    making = asyncio.create_task(asyncio.sleep(3600))
    told = progress_of(making, caller)
    item = await anext(told)
    making.cancel()
    assert (item.objective_value, item.bound) == (200.0, 200.21)
    assert "; the best so far is worth 200, at most 0.11% more is possible" in item.message
    assert await anext(told, None) is None


async def test_a_question_means_the_only_optimization_of_its_namespace() -> None:
    spec = {key: value for key, value in body("performance").items() if key != "namespace"}
    hub = await hub_of()
    lost = {"whatIf": {"lose": ["worker02"]}}
    async with client(hub) as http:
        batch = {**body("power", ["worker01"], ["mwrs-app01"]), "optimization": "batch"}
        await http.post("/optimize", json=batch)
        placed = (await http.post("/plan", json=lost)).json()
        whole = await http.post("/optimize", json={**batch, "optimization": "default"})
        await hub.create(kinds.PLACEMENT_OPTIMIZATION, kept("keeper", spec))
        several = await http.post("/plan", json=lost)
        await http.post("/optimize", json=body("power", ["worker02"], ["mwrs-app02"]))
        default = (await http.post("/plan", json={"workloads": ["app02"]})).json()
    other = await hub_of()
    await other.create(kinds.PLACEMENT_OPTIMIZATION, kept("keeper", spec))
    async with client(other) as http:
        only_kept = (await http.post("/plan", json=lost)).json()
    assert placed["request"]["optimization"] == "batch"
    assert placed["objective_from"]["record"] == "batch-1"
    refused = problem(whole, 409, "OtherOptimization")["detail"]
    assert 'name that one, as `"optimization": "batch"` of the request, or take it out' in refused
    [asked] = problem(several, 422, "InvalidRequest")["errors"]
    assert asked["field"] == "request.optimization"
    assert asked["message"] == "namespace default has the optimizations batch, keeper: name one"
    assert "optimization" not in default["request"]
    assert only_kept["request"]["optimization"] == "keeper"
    assert only_kept["objective_from"]["scores"] == {"performance": 1}


async def test_a_question_without_workloads_leaves_out_what_is_kept_elsewhere() -> None:
    spec = {key: value for key, value in body("performance").items() if key != "namespace"}
    named = {**spec, "targetWorkloads": [{"name": "mwrs-app02"}]}
    front = {"request": {"optimization": "front"}}
    hub = await hub_of()
    async with client(hub) as http:
        await hub.create(kinds.PLACEMENT_OPTIMIZATION, kept("keeper", named))
        left = await planned(http, **front)
        own = await planned(http, request={"optimization": "keeper"})
        said = await planned(http, **front, workloads=["app01", "app02"])
        pinned = await planned(http, **front, whatIf={"pin": {"app02": "worker01"}})
        whole = await planned(http, objective={}, request={**body(), "optimization": "front"})
        await apply(http, said)
        taken = await planned(http, **front)
        suspend = {"spec": {"suspend": True}}
        await hub.patch(kinds.PLACEMENT_OPTIMIZATION, "keeper", suspend, "default")
        resting = await planned(http, **front)
        every = {"spec": {"suspend": False, "targetWorkloads": None}}
        await hub.patch(kinds.PLACEMENT_OPTIMIZATION, "keeper", every, "default")
        all_kept = await planned(http, **front)
    assert asked_of(left) == ["mwrs-app01"]
    assert issue_of(left, "KeptElsewhere") == (
        "not planned: mwrs-app02, which PlacementOptimization keeper keeps; named in workloads, it"
        " is planned anyway"
    )
    keeper = (
        "PlacementOptimization keeper keeps mwrs-app02 too, and plans it again at its next look:"
        " plan it for that optimization, or suspend that"
    )
    for answer in (said, pinned, whole, taken):
        assert asked_of(answer) == ["mwrs-app01", "mwrs-app02"]
        assert issue_of(answer, "PlannedAgain") == keeper
    for answer in (own, resting):
        assert not {"KeptElsewhere", "PlannedAgain"} & {item["reason"] for item in answer["gaps"]}
    assert asked_of(all_kept) == ["mwrs-app01", "mwrs-app02"]
    assert "keeper keeps mwrs-app01, mwrs-app02 too" in issue_of(all_kept, "PlannedAgain")


def asked_of(answer: dict[str, Any]) -> list[str]:
    return [item["name"] for item in answer["request"]["targetWorkloads"]]


def issue_of(answer: dict[str, Any], reason: str) -> str:
    [issue] = [item for item in answer["gaps"] if item["reason"] == reason]
    return str(issue["message"])
