from dataclasses import replace

import pytest
import yaml

from dsf.api.names import GENERATED_LABEL
from dsf.kube import kinds
from dsf.kube.changes import Create, Delete, Patch
from dsf.kube.port import Object
from optimizer.domain.settings import DEFAULTS
from optimizer.model.formulate import formulate
from optimizer.plan.objects_reading import objects_reading
from optimizer.plan.plan import MAX_NAMED, Plan, plan, result
from optimizer.plan.staleness import stale
from optimizer.snapshot.observation import Observation
from optimizer.solve.strategy import solve_problem
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from tests.optimizer.build import (
    body,
    guide,
    managed_cluster,
    obj,
    policy,
    read_fleet,
    request,
    score,
    workload,
)


def attempt(
    observation: Observation, asked: OptimizeRequest | None = None
) -> Plan | RequestProblem:
    asked = asked or request()
    fleet = read_fleet(observation, asked)
    problem = formulate(fleet)
    solution = solve_problem(problem, solver="highs", time_limit_seconds=60)
    return plan(
        observation,
        asked,
        basis=objects_reading(observation, asked, DEFAULTS).basis,
        fleet=fleet,
        problem=problem,
        solution=solution,
        settings=DEFAULTS,
    )


def planned(observation: Observation, asked: OptimizeRequest | None = None) -> Plan:
    made = attempt(observation, asked)
    assert isinstance(made, Plan)
    return made


def existing(manifests: tuple[Object, ...], observation: Observation) -> Observation:
    """The observation after the manifests were applied."""
    live = [{**item, "metadata": {**item["metadata"], "uid": "u"}} for item in manifests]
    return replace(
        observation,
        placements=tuple(item for item in live if item["kind"] == "Placement"),
        bindings=tuple(item for item in live if item["kind"] == "PlacementBinding"),
    )


def test_the_guides_plan() -> None:
    made = planned(guide())
    assert made.policies == {"worker01": "3g.48gb-worker01", "worker02": "3g.48gb-worker02"}
    assert [(item.workload, item.cluster, item.policy, item.score) for item in made.placements] == [
        ("mwrs-app01", "worker01", "3g.48gb-worker01", 60.0),
        ("mwrs-app02", "worker02", "3g.48gb-worker02", 55.0),
    ]
    assert (made.unplaced, made.issues) == ((), ())
    assert [type(change) for change in made.changes] == [Create] * 6
    assert list(yaml.safe_load_all(made.output_yaml)) == list(made.manifests)


def test_the_same_facts_give_the_same_plan() -> None:
    assert planned(guide()).digest == planned(guide()).digest
    assert planned(guide()).output_yaml == planned(guide()).output_yaml


def test_the_digest_names_facts_decision_and_changes() -> None:
    observation = guide()
    moved = replace(
        observation,
        managed_clusters=(
            managed_cluster("worker01", name="worker01"),
            *observation.managed_clusters[1:],
        ),
    )
    once_applied = existing(planned(observation).manifests, observation)
    digests = {planned(item).digest for item in (observation, moved, once_applied)}
    assert len(digests) == 3
    assert planned(observation, request("power")).digest not in digests


def test_what_is_there_already_stays_untouched() -> None:
    observation = guide()
    assert planned(existing(planned(observation).manifests, observation)).changes == ()


def test_another_decision_removes_the_old_policies_before_it_adds_new_ones() -> None:
    observation = guide()
    applied = existing(planned(observation).manifests, observation)
    made = planned(applied, request("power"))
    steps = [(type(change), change.kind.kind) for change in made.changes]
    assert steps == [
        (Delete, "PlacementBinding"),
        (Delete, "PlacementBinding"),
        (Delete, "Placement"),
        (Delete, "Placement"),
        (Create, "Placement"),
        (Create, "Placement"),
        (Create, "PlacementBinding"),
        (Create, "PlacementBinding"),
    ]


def test_a_cluster_whose_policy_stays_is_not_touched() -> None:
    observation = guide()
    applied = existing(planned(observation).manifests, observation)
    asked = request("performance", ["worker01"], ["mwrs-app01"])
    touched = {change.name for change in planned(applied, asked).changes}
    assert touched == {
        change.name
        for change in planned(observation).changes
        if "worker02" in change.name or change.name == "app02-placement"
    }


def test_a_drifted_object_is_patched_back() -> None:
    observation = guide()
    applied = existing(planned(observation).manifests, observation)
    drifted = [
        {**item, "spec": {**item["spec"], "numberOfClusters": 2}}
        if item["metadata"]["name"] == "app01-placement"
        else item
        for item in applied.placements
    ]
    (change,) = planned(replace(applied, placements=tuple(drifted))).changes
    assert isinstance(change, Patch)
    assert (change.name, change.body) == ("app01-placement", {"spec": {"numberOfClusters": 1}})


def test_an_object_of_somebody_else_is_never_overwritten() -> None:
    foreign = obj(kinds.PLACEMENT, "app01-placement", "default", labels={GENERATED_LABEL: "no"})
    problem = attempt(replace(guide(), placements=(foreign,)))
    assert isinstance(problem, RequestProblem)
    assert (problem.status, problem.reason) == (409, "NotGenerated")
    assert "Placement app01-placement" in problem.detail


def test_other_objects_of_somebody_else_do_not_matter() -> None:
    foreign = obj(kinds.PLACEMENT, "mine", "default", spec={})
    changes = planned(replace(guide(), placements=(foreign,))).changes
    assert "mine" not in {change.name for change in changes}


def test_a_plan_that_places_nothing_changes_nothing() -> None:
    observation = guide()
    applied = existing(planned(observation).manifests, observation)
    expired = tuple(
        score(item["metadata"]["namespace"], "performance", {}, "2020-01-01T00:00:00Z")
        for item in observation.scores
        if item["metadata"]["name"] == "performance"
    )
    made = planned(replace(applied, scores=expired))
    assert (made.solution.status, made.changes, made.output_yaml) == ("Infeasible", (), "")
    assert {item.reason for item in made.unplaced} == {"NoUsableScore"}


def test_unplaced_workloads_say_why() -> None:
    observation = replace(
        guide(),
        workloads=(
            workload("mwrs-app01", "app01"),
            workload("mwrs-app02", "app02"),
            workload("greedy", "app01", 9, "p1"),
            workload("odd", "app01", "some", "p2"),
            workload("late", "app01", 2, "p3"),
        ),
    )
    asked = request(
        "performance",
        ["worker01", "worker02"],
        ["mwrs-app01", "late", "greedy", "odd", "mwrs-app02"],
    )
    made = planned(observation, asked)
    assert [(item.workload, item.reason) for item in made.unplaced] == [
        ("greedy", "NoSupply"),
        ("odd", "InvalidRequest"),
        ("mwrs-app02", "NoCapacityLeft"),
    ]
    assert "it requests 9 gpu; the most that a cluster can have is 3" in (made.unplaced[0].message)


@pytest.mark.parametrize(
    ("value", "said"),
    [(-5, "-5: placing it would lower the total"), (0, "0: no place is worth more than none")],
)
def test_a_workload_that_would_not_raise_the_total_says_so(value: int, said: str) -> None:
    entries = {"app01;3g.48gb": value, "app02;3g.48gb": value}
    scores = tuple(score(name, "performance", entries) for name in ("worker01", "worker02"))
    asked = body()
    for item in (each for one in asked["clusters"] for each in one["availablePolicies"]):
        item["changeCost"] = 1
    found = planned(replace(guide(), scores=scores), request(**asked)).unplaced
    assert [item.workload for item in found] == ["mwrs-app01", "mwrs-app02"]
    for unplaced in found:
        assert unplaced.reason == "ScoresBelowZero"
        assert f"workload {unplaced.workload}: its best score is {said}" in unplaced.message


def test_a_plan_is_stale_when_what_it_rests_on_moves() -> None:
    observation = guide()
    made = planned(observation)

    def reason(seen: Observation) -> str | None:
        problem = stale(made, seen, DEFAULTS)
        return None if problem is None else problem.reason

    other_amount = workload("mwrs-app01", "app01", 1)
    assert reason(observation) is None
    assert reason(replace(observation, workloads=observation.workloads[1:])) == "UnknownName"
    assert (
        reason(replace(observation, workloads=(other_amount, *observation.workloads[1:])))
        == "StalePlan"
    )
    assert reason(existing(made.manifests, observation)) == "StalePlan"
    fresher = tuple(
        score(item["metadata"]["namespace"], "performance", {"app01;all": 1})
        for item in observation.scores
    )
    assert reason(replace(observation, scores=fresher)) is None


def test_a_stale_plan_says_what_changed_since_it_was_made() -> None:
    observation = guide()
    made = planned(observation)

    def differences(seen: Observation) -> list[tuple[str, str]]:
        problem = stale(made, seen, DEFAULTS)
        assert problem is not None
        assert problem.reason == "StalePlan"
        for error in problem.errors[:MAX_NAMED]:
            assert f"{error.field}: {error.message}" in problem.detail
        return [(error.field, error.message) for error in problem.errors]

    other_amount = workload("mwrs-app01", "app01", 1)
    rest = observation.workloads[1:]
    assert differences(replace(observation, workloads=(other_amount, *rest))) == [
        ("workload mwrs-app01", "requests 1 gpu now; requests 2 gpu when it was planned"),
        ("workload mwrs-app01", "changed: amount (now 1, was 2)"),
    ]
    chosen = made.policies["worker01"]
    shrunk = tuple(
        policy(chosen, "3g.48gb", 3) if item["metadata"]["name"] == chosen else item
        for item in observation.policies
    )
    assert differences(replace(observation, policies=shrunk)) == [
        (
            f"policy {chosen}",
            "supplies 3 gpu of 3g.48gb now; supplies 2 gpu of 3g.48gb when it was planned",
        ),
        ("managed cluster worker01", f"changed: candidate policies (other values of {chosen})"),
    ]
    written = existing(made.manifests, observation)
    assert len(differences(written)) == len(made.changes)
    assert set(differences(written)) == {
        (f"{change.kind.kind} {change.name}", "no longer needed: create") for change in made.changes
    }


def test_a_taint_that_makes_a_plan_stale_is_told_once_for_all_workloads() -> None:
    """A field that only some clusters have, the drain, is not taken for others that follow it."""
    observation = guide()
    first, *rest = observation.managed_clusters
    taint = {"key": "maintenance", "effect": "NoSelect", "timeAdded": "2026-11-20T11:00:00Z"}
    tainted = {**first, "spec": {**first["spec"], "taints": [taint]}}
    drain = "dynamic-scoring.open-cluster-management.io/drain"
    metadata = {**first["metadata"], "annotations": {drain: "always"}}
    made = planned(observation)

    def differences(cluster: Object) -> list[tuple[str, str]]:
        seen = replace(observation, managed_clusters=(cluster, *rest))
        problem = stale(made, seen, DEFAULTS)
        assert problem is not None
        return [(error.field, error.message) for error in problem.errors]

    assert differences(tainted) == [
        (
            "managed cluster worker01",
            (
                "changed: candidate policies (no longer 2g.24gb-worker01, 3g.48gb-worker01,"
                " all-worker01), closed to new policies (now yes, was no)"
            ),
        ),
        (
            "workloads mwrs-app01, mwrs-app02",
            "changed: clusters that OCM can't select (now also worker01)",
        ),
    ]
    assert differences({**first, "metadata": metadata}) == [
        (
            "managed cluster worker01",
            'changed: drain (now "until somebody says otherwise", was none)',
        )
    ]


def test_the_answer_of_a_plan() -> None:
    answer = result(planned(guide()), None)
    assert (answer.status, answer.objective_value, answer.applied) == ("Optimal", 115.0, False)
    assert [change.action for change in answer.changes] == ["create"] * 6
