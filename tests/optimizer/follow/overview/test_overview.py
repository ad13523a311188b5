"""Answers about the guide's fleet on an embedded hub: overview, names, requests, what-if."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import mean
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.names import GROUP
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    NODE_INVENTORY,
)
from optimizer.domain.fleet import Workload
from optimizer.domain.issue import Issue
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.overview.findings.fleet_findings import findings, findings_about
from optimizer.follow.overview.findings.scorer_findings import scorer_findings
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.fleet_matrix import fleet_matrix
from optimizer.follow.overview.fleet_overview import describe_workload, fleet_overview
from optimizer.follow.overview.name_search import find_name
from optimizer.follow.overview.plan_request import PartialRequest
from optimizer.follow.overview.question_completion import PlanningQuestion, complete_question
from optimizer.follow.overview.score_overview import (
    ScoreSummary,
    ranking,
    score_overviews,
    score_summary,
    scorer_overview,
)
from optimizer.follow.overview.what_if import AddedCluster, PretendedObjects, ScoreChange, WhatIf
from optimizer.plan.plan import Plan
from optimizer.plan.text.tables import render
from optimizer.plan.workload_moves import score_totals
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.capacity.node_inventories import read_inventory
from optimizer.snapshot.capacity.pod_templates import pods_of
from optimizer.snapshot.object_readers import read_workload
from optimizer.snapshot.scores.score_row import ScoreRow
from optimizer.wire.object_specs import DrainSpec
from optimizer.wire.placement_status import UnplacedByPlan
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.mcp_server.service import PERFORMANCE, POWER, request, scenario_hub
from tests.optimizer.build import NOW, obj
from tests.optimizer.inventoried_nodes import GPU, MIG, deploying, deployment, inventory, node
from tests.optimizer.neighbours import work_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub() -> EmbeddedHub:
    """The guide's fleet, which no test of this module changes."""
    return await scenario_hub()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def facts(hub: EmbeddedHub) -> FleetFacts:
    return await Optimizer(hub, now=utc_now).fleet("default")


def asked(facts: FleetFacts, **partial: Any) -> OptimizeRequest:
    found = complete_question(facts, PartialRequest(**partial))
    assert isinstance(found, PlanningQuestion), found
    return found.request


async def planned(hub: EmbeddedHub, made: OptimizeRequest, what_if: WhatIf) -> Plan:
    pretended = what_if.pretended("default", {}, utc_now())
    plan = await Optimizer(hub, now=utc_now).plan(made, pretended=pretended)
    assert isinstance(plan, Plan), plan
    return plan


async def test_a_score_in_words_makes_the_guides_request(facts: FleetFacts) -> None:
    made = asked(facts, objective={"performance": 1})
    guide = OptimizeRequest(**request())

    def policies(of: OptimizeRequest) -> dict[str, set[str]]:
        return {c.name: {p.name for p in c.available_policies} for c in of.clusters}

    assert policies(made) == policies(guide)
    assert made.target_workloads == guide.target_workloads
    unformatted = {"score_dimension_format": None}
    assert made.preference == guide.preference.model_copy(update=unformatted)
    assert made.prune
    assert not asked(facts, objective={"power": 1}, workloads=["app01"]).prune


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        ({"perfromance": 1}, PERFORMANCE),
        ({"score": 1}, "ambiguous"),
        ({}, "name the score to maximise"),
    ],
)
async def test_names_that_are_not_clear_are_refused_with_near_ones(
    facts: FleetFacts, objective: dict[str, float], said: str
) -> None:
    refused = complete_question(facts, PartialRequest(objective))
    assert isinstance(refused, RequestProblem)
    assert said in refused.detail
    assert PERFORMANCE in refused.errors[0].available


async def test_a_lost_cluster_has_no_place(hub: EmbeddedHub, facts: FleetFacts) -> None:
    what_if = WhatIf(lose=("worker02",))
    made = asked(facts, objective={"performance": 1}, what_if=what_if)
    plan = await planned(hub, made, what_if)
    assert {place.cluster for place in plan.placements} == {"worker01"}
    assert [move.action for move in plan.moves] == ["starts", "waits"] or [
        move.action for move in plan.moves
    ] == ["waits", "starts"]


async def test_a_pretended_cluster_takes_what_its_model_would(
    hub: EmbeddedHub, facts: FleetFacts
) -> None:
    what_if = WhatIf.model_validate(
        {"add": [{"name": "worker03", "like": "worker01"}], "lose": ["worker02"]}
    )
    plan = await planned(hub, asked(facts, objective={"power": 1}, what_if=what_if), what_if)
    assert {place.cluster for place in plan.placements} == {"worker01", "worker03"}
    assert plan.policies["worker03"] == "policy-enable-mig-2g-worker03"
    assert [obj["metadata"]["name"] for obj in (await hub.list(MANAGED_CLUSTER)).items] == [
        "worker01",
        "worker02",
    ]


async def test_a_workload_that_does_not_exist_is_placed_beside_what_runs(
    hub: EmbeddedHub, facts: FleetFacts
) -> None:
    for amount, places in ((2, 1), (4, 0)):
        run = [{"name": "new", "amount": amount, "like": "app01"}]
        partial = PartialRequest({"performance": 1}, what_if=WhatIf.model_validate({"run": run}))
        found = complete_question(facts, partial)
        assert isinstance(found, PlanningQuestion)
        assert [item.name for item in found.request.target_workloads] == ["new"]
        plan = await Optimizer(hub, now=utc_now).plan(found.request, pretended=found.pretended)
        assert isinstance(plan, Plan)
        assert [place.workload for place in plan.placements] == ["new"] * places
        assert plan.explanation is not None
        assert [item.workload for item in plan.explanation.unplaced] == ["new"] * (1 - places)
    names = {obj["metadata"]["name"] for obj in (await hub.list(MANIFEST_WORK_REPLICA_SET)).items}
    assert names == {"mwrs-app01", "mwrs-app02"}


@pytest.mark.parametrize(
    ("run", "device"),
    [
        ({"amount": 1}, "all"),  # whole GPUs, unless the question says more
        ({"amount": 2}, None),
        ({"amount": 2, "device": "3g.48gb"}, "3g.48gb"),
        ({"amount": 3, "device": "2g.24gb"}, "2g.24gb"),
        ({"amount": 4, "device": "2g.24gb"}, None),
        ({"amount": 2, "like": "app01"}, "3g.48gb"),  # its Pods may run on any device
        ({"amount": 2, "like": "app01", "name": "app01"}, "3g.48gb"),  # its scores count
    ],
)
async def test_a_workload_that_does_not_exist_asks_for_whole_gpus(
    hub: EmbeddedHub, facts: FleetFacts, run: dict[str, Any], device: str | None
) -> None:
    partial = PartialRequest({"performance": 1}, what_if=WhatIf.model_validate({"run": [run]}))
    found = complete_question(facts, partial)
    assert isinstance(found, PlanningQuestion)
    plan = await Optimizer(hub, now=utc_now).plan(found.request, pretended=found.pretended)
    assert isinstance(plan, Plan)
    assert [place.device for place in plan.placements] == ([device] if device else [])
    missing = [item.message for item in plan.issues if item.reason == "MissingScore"]
    told = "workload new has no scores, as it is like no other"
    unscored = "like" not in run
    assert [text.partition(":")[0] for text in missing] == [told] * unscored
    (move,) = plan.moves
    assert [bool(place.scores) for place in move.after] == [not unscored] * len(move.after)
    assert bool(move.gain) is (bool(device) and not unscored)
    assert plan.explanation is not None
    assert [place.device for place in plan.explanation.places] == [device] * bool(move.gain)
    assert unscored is (re.search(r"^(new|app01) .* [0-9]+$", render(plan), re.MULTILINE) is None)


async def test_a_workload_like_one_whose_pods_name_a_device_asks_for_it() -> None:
    like = deploying("mwrs-app01", "app01", 1, deployment(mig=1))
    asked = WhatIf.model_validate({"run": [{"amount": 2, "like": "mwrs-app01"}]})
    pretended = asked.pretended("default", {"mwrs-app01": like}, utc_now())
    assert pretended is not None
    (pods,) = map(pods_of, pretended.new[MANIFEST_WORK_REPLICA_SET])
    assert not isinstance(pods, InvalidInput)
    assert [dict(group.requests) for group in pods] == [{MIG: 2, "pods": 1}]


async def test_an_amount_of_seven_digits_counts_in_full() -> None:
    asked = WhatIf.model_validate({"run": [{"amount": 12345678, "kind": "memory"}]})
    pretended = asked.pretended("default", {}, utc_now())
    assert pretended is not None
    (made,) = map(read_workload, pretended.new[MANIFEST_WORK_REPLICA_SET])
    assert isinstance(made, Workload)
    assert made.amount == 12345678


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ({"name": "mwrs-app01", "amount": 1}, "another workload has this name"),
        ({"name": "app01", "amount": 1}, "the app of mwrs-app01, whose scores would count"),
        ({"name": "new", "amount": 1, "like": "app"}, "what_if.run"),
        ({"name": "new", "amount": 1, "like": "gone"}, "what_if.run"),
    ],
)
async def test_a_workload_that_exists_or_is_like_none_is_refused(
    facts: FleetFacts, run: Any, why: str
) -> None:
    what_if = WhatIf.model_validate({"run": [run]})
    found = complete_question(facts, PartialRequest({"power": 1}, what_if=what_if))
    assert isinstance(found, RequestProblem)
    assert why in f"{found.errors[0].field}: {found.errors[0].message}"


@pytest.mark.parametrize(
    ("policy", "places"),
    [
        ({"supplies": "gpu/all=4"}, {("new", "worker01"), ("new", "worker02")}),
        ({"supplies": "gpu/all=4", "clusters": ["er02"]}, {("new", "worker02")}),
        ({"supplies": "gpu/all=3"}, set()),
    ],
)
async def test_a_policy_that_does_not_exist_supplies_its_devices(
    hub: EmbeddedHub, facts: FleetFacts, policy: Any, places: set[tuple[str, str]]
) -> None:
    said = {"run": [{"amount": 4}], "policies": [policy]}
    partial = PartialRequest({"performance": 1}, what_if=WhatIf.model_validate(said))
    found = complete_question(facts, partial)
    assert isinstance(found, PlanningQuestion)
    plan = await Optimizer(hub, now=utc_now).plan(found.request, pretended=found.pretended)
    assert isinstance(plan, Plan)
    placed = {(item.workload, item.cluster) for item in plan.placements}
    assert placed <= places
    assert bool(placed) == bool(places)
    assert {plan.policies[cluster] for _, cluster in placed} <= {"new-policy"}


@pytest.mark.parametrize(
    ("supplies", "run", "why"),
    [
        ("gpu/2g.24gb=4", {"amount": 1}, "policy new-policy: it supplies gpu/2g.24gb, and they"),
        ("memory=4,cpu=8", {"amount": 1}, "policy new-policy: it supplies cpu, memory, and they"),
        ("gpu/2g.24gb=4", {"amount": 1, "like": "app01"}, ""),
        ("gpu/9g.9gb=4", {"amount": 1, "device": "9g.9gb"}, ""),
        ("gpu/all=4,cpu=1", {"amount": 1}, ""),
    ],
)
async def test_a_policy_that_no_workload_can_use_is_told(
    hub: EmbeddedHub, facts: FleetFacts, supplies: str, run: dict[str, Any], why: str
) -> None:
    said = {"run": [run], "policies": [{"supplies": supplies}]}
    partial = PartialRequest({"performance": 1}, what_if=WhatIf.model_validate(said))
    found = complete_question(facts, partial)
    assert isinstance(found, PlanningQuestion)
    plan = await Optimizer(hub, now=utc_now).plan(found.request, pretended=found.pretended)
    assert isinstance(plan, Plan)
    told = [item.message for item in plan.issues if item.reason == "UnusedPolicy"]
    assert len(told) == bool(why)
    assert all(why in text and text.endswith("can use gpu/all") for text in told)


@pytest.mark.parametrize(
    ("policies", "why"),
    [
        (
            [{"name": "policy-disable-mig-worker01", "supplies": "gpu/all=4"}],
            "another policy has this name",
        ),
        ([{"supplies": "gpu/all=4"}] * 2, "another policy has this name"),
        ([{"supplies": "gpu/all=4", "clusters": ["worker"]}], "worker is ambiguous"),
    ],
)
async def test_a_policy_that_exists_or_names_no_cluster_is_refused(
    facts: FleetFacts, policies: Any, why: str
) -> None:
    what_if = WhatIf.model_validate({"policies": policies})
    found = complete_question(facts, PartialRequest({"power": 1}, what_if=what_if))
    assert isinstance(found, RequestProblem)
    assert why in f"{found.errors[0].field}: {found.errors[0].message}"


async def test_a_cluster_that_does_not_exist_has_nodes_of_now() -> None:
    """Its inventory is a copy, which may have expired."""
    what_if = WhatIf.model_validate({"add": [{"name": "worker03", "like": "worker01"}]})
    old = inventory("worker01", [node({GPU: 4})], age=3600)
    pretended = what_if.pretended("default", {}, NOW)
    assert pretended is not None
    own, copy = pretended.seen(NODE_INVENTORY, [old])
    assert own == old
    found = read_inventory(copy, NOW)
    assert not isinstance(found, InvalidInput)
    assert found.left == 180


async def test_a_changed_score_changes_the_plan_and_not_the_hub(
    hub: EmbeddedHub, facts: FleetFacts
) -> None:
    change = {"score": PERFORMANCE, "cluster": "worker01", "entry": "2g.24gb", "value": 100}
    what_if = WhatIf.model_validate({"scores": [change]})
    made = asked(facts, objective={"performance": 1}, what_if=what_if)
    plan = await planned(hub, made, what_if)
    assert plan.policies["worker01"] == "policy-enable-mig-2g-worker01"
    stored = await hub.get(ADD_ON_PLACEMENT_SCORE, PERFORMANCE, "worker01")
    assert 100 not in [entry["value"] for entry in stored["status"]["scores"]]


async def test_pins_drains_exclusions_and_budgets_are_fields_of_the_request(
    facts: FleetFacts,
) -> None:
    what_if = WhatIf.model_validate(
        {
            "pin": {"app01": "worker02"},
            "drain": ["worker01"],
            "exclude": {"app02": ["worker01"]},
            "budget": {"power": 30},
        }
    )
    made = asked(facts, objective={"performance": 1}, what_if=what_if)
    first, second = made.target_workloads
    assert first.clusters == ("worker02",)
    assert second.excluded_clusters == ("worker01",)
    assert [item.drain for item in made.clusters] == [DrainSpec(), None]
    assert (made.limits[0].maximum, made.limits[0].score and made.limits[0].score.score_name) == (
        30,
        POWER,
    )


async def test_a_plan_is_told_by_workload() -> None:
    hub = await scenario_hub()
    optimizer = Optimizer(hub, now=utc_now)
    first = await optimizer.plan(OptimizeRequest(**request(PERFORMANCE)))
    assert isinstance(first, Plan)
    assert {move.action for move in first.moves} == {"starts"}
    await optimizer.apply(first)
    second = await optimizer.plan(OptimizeRequest(**request(POWER)))
    assert isinstance(second, Plan)
    for move in second.moves:
        assert (move.action, move.uncovered) == ("moves", True)
        assert move.before[0].device == "3g.48gb"
        assert move.after[0].device == "2g.24gb"
    assert sum(move.gain[POWER] for move in second.moves) == 85
    assert score_totals(second.moves) == {POWER: 170}
    assert second.enforcement_changes[0].before == ("policy-enable-mig-3g-worker01",)
    assert second.enforcement_changes[0].after == ("policy-enable-mig-2g-worker01",)


async def test_the_steps_of_a_rollout_say_who_is_uncovered() -> None:
    hub = await scenario_hub()
    optimizer = Optimizer(hub, now=utc_now)
    first = await optimizer.plan(OptimizeRequest(**request(PERFORMANCE)))
    assert isinstance(first, Plan)
    await optimizer.apply(first)
    second = await optimizer.plan(OptimizeRequest(**request(POWER), rollout="Stepwise"))
    assert isinstance(second, Plan)
    assert second.rollout is not None
    told = {name for step in second.rollout.actions for name in step.uncovered}
    assert {item.workload for item in second.moves if item.uncovered} == told


async def test_the_overview_counts(facts: FleetFacts) -> None:
    found = fleet_overview(facts)
    assert (found.total_clusters, found.ready_clusters, found.total_workloads) == (2, 2, 2)
    assert [len(found.clusters), len(found.workloads), len(found.scores)] == [2, 2, 2]
    assert found.clusters[0].state == "Ready"


async def test_a_workload_says_what_it_asks_for(facts: FleetFacts) -> None:
    found = describe_workload(facts, "mwrs-app01")
    assert (found.app, found.requests, found.places) == ("app01", {"gpu": 2}, ())


async def test_what_is_broken_comes_with_a_next_step() -> None:
    hub = await scenario_hub()
    await hub.patch(
        ADD_ON_PLACEMENT_SCORE,
        POWER,
        {"status": {"validUntil": "2020-01-01T00:00:00Z"}},
        "worker01",
        subresource="status",
    )
    await hub.patch(MANAGED_CLUSTER, "worker02", {"spec": {"hubAcceptsClient": False}})
    found = findings(await Optimizer(hub, now=utc_now).fleet("default"))
    assert [(item.stage, item.reason) for item in found] == [
        ("score", "ScoreExpired"),
        ("cluster", "ClusterNotAccepted"),
        ("workload", "NotPlaced"),
    ]
    assert [item.count for item in found] == [1, 1, 2]
    assert all(item.next for item in found)
    assert found[0].since == datetime(2020, 1, 1, tzinfo=UTC)
    created = [
        read_time(
            (await hub.get(MANIFEST_WORK_REPLICA_SET, name, "default"))["metadata"][
                "creationTimestamp"
            ]
        )
        for name in ("mwrs-app01", "mwrs-app02")
    ]
    assert found[2].since == min(filter(None, created))


async def test_findings_with_one_cause_are_one_finding() -> None:
    hub = await scenario_hub()
    for cluster in ("worker01", "worker02"):
        await hub.patch(MANAGED_CLUSTER, cluster, {"spec": {"hubAcceptsClient": False}})
        for score in (PERFORMANCE, POWER):
            expired = {"status": {"validUntil": "2020-01-01T00:00:00Z"}}
            await hub.patch(ADD_ON_PLACEMENT_SCORE, score, expired, cluster, subresource="status")
    found = findings(await Optimizer(hub, now=utc_now).fleet("default"))
    assert [(item.stage, item.reason, item.count) for item in found] == [
        ("score", "ScoreExpired", 2),
        ("cluster", "ClusterNotAccepted", 2),
        ("workload", "NotPlaced", 2),
    ]
    assert [item.cause for item in found] == ["ClusterNotAccepted", "", ""]
    assert f"2 scores ({PERFORMANCE}, {POWER}); the first: score" in found[0].message
    for name in (PERFORMANCE, POWER):
        assert findings_about(found, [name]) == found[:1]


async def test_a_workload_without_all_its_places_is_a_finding() -> None:
    hub = await scenario_hub()
    service = Optimizer(hub, now=utc_now)
    plan = await service.plan(OptimizeRequest(**request(PERFORMANCE)))
    assert isinstance(plan, Plan)
    await service.apply(plan)
    more = {"metadata": {"annotations": {f"{GROUP}/replicas": "2"}}}
    await hub.patch(MANIFEST_WORK_REPLICA_SET, "mwrs-app01", more, "default")
    found = findings(await service.fleet("default"))
    reasons = {item.reason: item for item in found if item.stage == "workload"}
    assert "mwrs-app01 (2 gpu) has 1 place of 2" in reasons["FewerPlaces"].message


async def test_a_workload_without_a_place_says_why_the_plan_left_it_out() -> None:
    hub = await scenario_hub()
    service = Optimizer(hub, now=utc_now)
    many = {"metadata": {"labels": {"resource-request-amount": "9"}}}
    await hub.patch(MANIFEST_WORK_REPLICA_SET, "mwrs-app01", many, "default")
    plan = await service.plan(OptimizeRequest(**request(PERFORMANCE)))
    assert isinstance(plan, Plan)
    await service.apply(plan)
    facts = await service.fleet("default")
    found = next(item for item in findings(facts) if item.reason == "NotPlaced")
    assert found.message == (
        "mwrs-app01 (9 gpu) has no place; plan default-1 says why: it requests 9 gpu; the most"
        " that a cluster can have is 3 of 2g.24gb (cluster worker01)"
    )
    assert "`dsf why mwrs-app01 -n default`" in found.next
    records = await service.recorded_plans("default")
    assert not isinstance(records, Issue)
    assert found.since == records[0].created
    shown = {item.name: item.unplaced for item in fleet_matrix(facts).workloads}
    assert shown == {"mwrs-app01": found.message, "mwrs-app02": ""}


async def test_a_workload_has_no_place_since_the_first_of_the_plans_that_left_it_out() -> None:
    time = datetime(2026, 1, 1, tzinfo=UTC)
    hub = await scenario_hub(now=lambda: time)
    service = Optimizer(hub, OptimizerSettings(plan_history_limit=3), now=utc_now)

    async def replanned(amount: str, score: str) -> UnplacedByPlan | None:
        """Return what is said of app01 a minute later, once a plan is made for another amount."""
        nonlocal time
        time += timedelta(minutes=1)
        asked = {"metadata": {"labels": {"resource-request-amount": amount}}}
        await hub.patch(MANIFEST_WORK_REPLICA_SET, "mwrs-app01", asked, "default")
        plan = await service.plan(OptimizeRequest(**request(score)))
        assert isinstance(plan, Plan)
        assert isinstance(await service.apply(plan), Applied)
        return (await service.fleet("default")).left_out.get("mwrs-app01")

    assert await replanned("2", PERFORMANCE) is None
    for score in (POWER, PERFORMANCE):
        found = await replanned("9", score)
        assert found is not None
        assert (found.since, found.earlier) == (datetime(2026, 1, 1, 0, 2, tzinfo=UTC), False)
    for score in (POWER, PERFORMANCE):
        found = await replanned("9", score)
    assert found is not None
    assert (found.since, found.earlier) == (datetime(2026, 1, 1, 0, 3, tzinfo=UTC), True)
    told = next(
        item for item in findings(await service.fleet("default")) if item.reason == "NotPlaced"
    )
    assert "(9 gpu) has no place, at least since 2026-01-01T00:03:00Z; plan" in told.message


async def test_a_workload_whose_step_is_yet_to_come_is_no_fault() -> None:
    hub = await scenario_hub()
    service = Optimizer(hub, now=utc_now)
    plan = await service.plan(OptimizeRequest(**request(PERFORMANCE), rollout="Stepwise"))
    assert isinstance(plan, Plan)
    await service.apply(plan)
    facts = await service.fleet("default")
    coming = {item.name: item.unplaced for item in fleet_matrix(facts).workloads}
    later = "yet: revision 1 places it in a step that its rollout has yet to make"
    assert coming["mwrs-app02"] == f"mwrs-app02 (2 gpu) has no place {later}"
    told = [(item.reason, item.severity) for item in findings(facts) if item.stage == "workload"]
    assert ("RolloutInProgress", "info") in told
    assert "NotPlaced" not in dict(told)


async def test_one_cause_of_many_placements_is_one_finding() -> None:
    hub = await scenario_hub()
    service = Optimizer(hub, now=utc_now)
    plan = await service.plan(OptimizeRequest(**request(PERFORMANCE)))
    assert isinstance(plan, Plan)
    await service.apply(plan)

    async def told(stage: str) -> list[tuple[str, int]]:
        found = findings(await service.fleet("default"))
        assert all(str(item.count) in item.message for item in found if item.count > 1)
        return [(item.reason, item.count) for item in found if item.stage == stage]

    assert await told("workload") == [("NotDecided", 2)]
    for number in (1, 2):
        await work_of(hub, f"mwrs-app0{number}", f"worker0{number}", f"app0{number}-placement")
        nothing = {"metadata": {"labels": {"cluster-name": None}}}
        await hub.patch(MANAGED_CLUSTER, f"worker0{number}", nothing)
    assert await told("workload") == [("SelectsNothing", 2)]
    assert await told("generated object") == [("ClusterLabelMoved", 2)]
    await service.reset("default")
    assert await told("workload") == [("NotPlaced", 2)]
    assert await told("generated object") == [("RunsWithoutPlacement", 2)]


async def test_a_finding_about_a_scorer_that_is_not_ready_says_since_when() -> None:
    started = "2026-11-20T11:00:00Z"
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Unreachable",
        "message": "refused",
        "lastTransitionTime": started,
    }
    changed = {"healthStatus": "Inactive", "failingClusters": [], "conditions": [condition]}
    status = {**SCORER["status"], **changed}
    (found,) = scorer_findings([scorer_overview({**SCORER, "status": status})])
    assert (found.reason, found.since) == ("Unreachable", read_time(started))


async def test_no_scorer_scores_on_0_of_0_clusters() -> None:
    for counts in ({}, {"desired": 0, "distributed": 0, "scoring": 0}):
        obj = {**SCORER, "status": {**SCORER["status"], "clusters": counts}}
        reach = scorer_overview(obj).reach
        assert "0 of 0" not in reach


async def test_one_cause_of_failing_scorers_has_one_finding_and_its_own_reason() -> None:
    """Where a score expired its own finding says so, and what scorers say of it comes once."""
    hub = await scenario_hub()
    expired, empty = {"status": {"validUntil": "2020-01-01T00:00:00Z"}}, {"status": {"scores": []}}
    for score, cluster, status in (
        (PERFORMANCE, "worker01", expired),
        (POWER, "worker01", expired),
        (POWER, "worker02", empty),
    ):
        await hub.patch(ADD_ON_PLACEMENT_SCORE, score, status, cluster, subresource="status")
    facts = await Optimizer(hub, now=utc_now).fleet("default")
    stopped = {"name": "worker01", "reason": "ScoreExpired", "message": "not renewed"}
    said = r'prometheus rejected the query: "invalid parameter \"query\""'
    started = "2026-11-20T11:00:00Z"
    rejected = {"name": "worker02", "reason": "QueryRejected", "message": said, "since": started}
    scorers = [
        scorer_overview(
            {
                "metadata": {"name": name, "namespace": "open-cluster-management"},
                "spec": {},
                "status": {
                    "healthStatus": "Active",
                    "scoreName": name,
                    "clusters": {"desired": 2, "scoring": 1, "failing": len(failing)},
                    "failingClusters": failing,
                },
            }
        )
        for name, failing in ((PERFORMANCE, [stopped]), (POWER, [stopped, rejected]))
    ]
    found = findings(replace(facts, scorers=tuple(scorers)))
    told = [(item.stage, item.reason, item.count) for item in found if item.stage != "workload"]
    assert told == [("score", "ScoreExpired", 2), ("scorer", "QueryRejected", 1)]
    assert found[1].message.endswith(
        "it fails on 1 cluster (worker02): QueryRejected: \"prometheus rejected the query: 'invalid"
        " parameter 'query''\""
    )
    assert found[1].since == read_time(started)
    alone = [(item.reason, item.count) for item in scorer_findings(scorers)]
    assert alone == [("ScoreExpired", 2), ("QueryRejected", 1)]


SCORER = {
    "metadata": {"name": "energy", "namespace": "open-cluster-management"},
    "spec": {"description": "Watts", "scoring": {"params": {"name": "watts"}}},
    "status": {
        "healthStatus": "Active",
        "scoreName": "watts",
        "meaning": {"unit": "W", "direction": "LowerIsBetter"},
        "clusters": {"desired": 2, "distributed": 2, "scoring": 1, "failing": 1},
        "failingClusters": [{"name": "b", "reason": "NoResults", "message": "none"}],
    },
}


async def test_the_best_cluster_is_best_by_direction() -> None:
    later = datetime(2027, 1, 1, tzinfo=UTC)
    rows = [
        ScoreSummary(cluster=name, mean=mean, minimum=0, maximum=9, entries=1, valid_until=until)
        for name, mean, until in (("a", 5.0, later), ("b", 1.0, later + timedelta(1)))
    ]
    gone = ScoreSummary(cluster="c", mean=0, minimum=0, maximum=0, entries=1, expired=True)
    scorer = scorer_overview(SCORER)
    [found] = score_overviews({"watts": [*rows, gone]}, [scorer], shown=1)
    assert (found.best[0].cluster, found.worst[0].cluster) == ("b", "a")
    assert (found.expired, found.valid_until, found.unit) == (1, later, "W")
    assert ranking(rows, None)[0].cluster == "a"
    assert not scorer.ready


@given(
    entries=st.dictionaries(st.sampled_from(["c1", "c2", "c3"]), st.lists(st.integers(-9, 9))),
    direction=st.sampled_from([None, "LowerIsBetter", "HigherIsBetter"]),
    shown=st.integers(1, 3),
)
async def test_a_score_is_summed_up_by_cluster_and_over_the_fleet(
    entries: dict[str, list[int]], direction: Any, shown: int
) -> None:
    now, rows = utc_now(), []
    for cluster, values in entries.items():
        listed = [{"name": f"e{at}", "value": value} for at, value in enumerate(values)]
        status = {"scores": listed, "validUntil": rfc3339(now + timedelta(hours=len(values)))}
        score = obj(ADD_ON_PLACEMENT_SCORE, "watts", namespace=cluster)
        rows.append(score_summary(ScoreRow({**score, "status": status}), now=now))
    means = {cluster: mean(values) for cluster, values in entries.items() if values}
    for row in rows:
        values = entries[row.cluster] or [0]
        assert row.mean == round(mean(values), 2)
        assert (row.minimum, row.maximum) == (min(values), max(values))
        assert row.entries == len(entries[row.cluster])
    stated = {**SCORER, "status": {"meaning": {"direction": direction}}}
    [found] = score_overviews({"watts": rows}, [scorer_overview(stated)], shown=shown)
    assert found.clusters == len(entries)
    assert found.entries == sum(map(len, entries.values()))
    of_clusters = [round(each, 2) for each in means.values()]
    assert found.mean == (round(mean(of_clusters), 2) if means else None)
    sign = 1 if direction == "LowerIsBetter" else -1
    best = sorted(means, key=lambda cluster: (sign * round(means[cluster], 2), cluster))
    assert [item.cluster for item in found.best] == best[:shown]
    worst = [each for each in best[shown:] if means[each] != means[best[0]]][-shown:]
    assert [item.cluster for item in found.worst] == worst[::-1]


CHANGES = st.builds(
    ScoreChange,
    score=st.just("power"),
    cluster=st.sampled_from(["c1", "c2", "copy"]),
    entry=st.sampled_from(["", "a", "ab", "z"]),
    value=st.integers(-5, 5),
)


@given(st.lists(CHANGES, min_size=1, max_size=5, unique_by=lambda each: each.model_dump_json()))
async def test_the_last_change_of_an_entry_counts_and_others_are_named(
    changes: list[ScoreChange],
) -> None:
    """Compared with making one change after another; `copy` is a copy of c1."""
    values = {"c1": {"a": 50, "ab": 51, "b": 52}, "c2": {"a": 60}}
    objects = [
        obj(ADD_ON_PLACEMENT_SCORE, "power", namespace=cluster)
        | {"status": {"scores": [{"name": name, "value": each} for name, each in of.items()]}}
        for cluster, of in values.items()
    ]
    pretended = PretendedObjects((AddedCluster(name="copy", like="c1"),), tuple(changes), utc_now())
    expected = {**values, "copy": values["c1"]}
    decides: dict[tuple[str, str], ScoreChange] = {}
    for change in changes:
        of = expected[change.cluster]
        hit = {name: change.value for name in of if change.entry in name}
        expected[change.cluster] = {**of, **hit}
        decides |= {(change.cluster, name): change for name in hit}
    seen = {
        item["metadata"]["namespace"]: {
            entry["name"]: entry["value"] for entry in item["status"]["scores"]
        }
        for item in pretended.seen(ADD_ON_PLACEMENT_SCORE, objects)
    }
    assert seen == expected
    effective = list(pretended.effective(objects))
    assert all(change in effective for change in decides.values())
    assert all(change in decides.values() for change in effective)
    named = list(pretended.without_effect(effective))
    useless = [change for change in changes if change not in effective]
    for change, text in zip(useless, named, strict=True):
        later = changes[changes.index(change) + 1 :]
        replaced = any(
            each.cluster == change.cluster and each.entry in change.entry for each in later
        )
        assert text.startswith("later changes") == replaced, text
        assert f"power on {change.cluster}" in text
        assert ("contains" in text) == (bool(change.entry) and not replaced), text


async def test_a_part_of_a_name_is_enough_if_only_one_has_it() -> None:
    names = ["app-one", "app-two", "other"]
    assert find_name("two", names, field="f", what="workload") == "app-two"
    refused = find_name("app", names, field="f", what="workload")
    assert isinstance(refused, RequestProblem)
    assert "app-one, app-two" in refused.detail
