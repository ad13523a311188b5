"""Others on the clusters of a request: what they enforce and use counts, and has a name."""

from typing import TYPE_CHECKING

import pytest

from dsf.kube import kinds
from dsf.kube.errors import Forbidden
from optimizer.domain.issue import TakenIssue
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request_problem import RequestProblem
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call
from tests.optimizer.build import NOW, obj, request, score, workload
from tests.optimizer.hubs import hub_of
from tests.optimizer.neighbours import (
    TEAM,
    applied,
    bind_by_hand,
    everything,
    hub_of_two_teams,
    in_namespace,
    of_team,
    place_by_hand,
    planned,
    run_by_hand,
    service,
)

if TYPE_CHECKING:
    from dsf.kube.embedded import EmbeddedHub


def reasons(plan: Plan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for issue in plan.issues:
        found.setdefault(issue.reason, []).append(issue.message)
    return found


async def test_a_policy_of_another_namespace_excludes_others_of_its_pool() -> None:
    hub = await hub_of_two_teams()
    await applied(hub, of_team("power", ["worker01"], ["mwrs-app01"]))
    made = await planned(
        hub, request("performance", whyNot=[{"cluster": "worker01", "policy": "3g.48gb-worker01"}])
    )
    assert made.policies == {"worker02": "3g.48gb-worker02"}
    assert reasons(made)["HeldByOthers"] == [
        (
            "cluster worker01: optimization default of namespace team-b enforces policy"
            " 2g.24gb-worker01 in the same pool, so 2g.24gb-worker01, 3g.48gb-worker01,"
            " all-worker01 can't be enforced"
        )
    ]
    (unplaced,) = made.unplaced
    assert "optimization default of namespace team-b" in unplaced.message
    assert made.explanation is not None
    (answer,) = made.explanation.why_not
    assert "optimization default of namespace team-b enforces" in answer.message


async def test_what_others_hold_is_not_told_as_what_a_cluster_lacks() -> None:
    hub = await hub_of()
    await bind_by_hand(hub, "by-hand", "2g.24gb-worker02", "worker02")
    clusters = [
        {"name": "worker02", "availablePolicies": [{"name": "3g.48gb-worker02"}]},
        {"name": "worker01", "allocatable": "cpu=8"},
    ]
    asked = [{"cluster": name, "workload": "mwrs-app01"} for name in ("worker02", "worker01")]
    made = await planned(hub, request(clusters=clusters, whyNot=asked, explain=True))
    by_hand = "PlacementBinding by-hand of namespace default, made by hand"
    (held,) = reasons(made)["HeldByOthers"]
    assert made.explanation is not None
    assert [item.message for item in made.explanation.why_not] == [
        f"cluster worker02 has no gpu free. {held}",
        "cluster worker01 supplies no gpu",
    ]
    assert [item.message for item in made.explanation.unplaced[0].limits] == [
        f"cluster worker02 has no gpu free (held by {by_hand})",
        "cluster worker01 supplies at most 0 gpu",
    ]
    assert made.unplaced[0].message == (
        f"workload mwrs-app01: it requests 2 gpu, and no cluster has gpu free; {held}"
    )


async def test_a_binding_made_by_hand_excludes_others_of_its_pool() -> None:
    hub = await hub_of()
    await bind_by_hand(hub, "by-hand", "3g.48gb-worker02", "worker02")
    made = await planned(hub, request("power"))
    assert made.policies["worker02"] == "3g.48gb-worker02"
    (held,) = reasons(made)["HeldByOthers"]
    assert "PlacementBinding by-hand of namespace default, made by hand," in held


async def test_a_bound_policy_set_counts_by_the_status_of_its_policies() -> None:
    hub = await hub_of()
    await bind_by_hand(hub, "set", "gold", "worker02", subject="PolicySet")
    placement = [{"placement": "set", "placementBinding": "set", "policySet": "gold"}]
    status = {"status": {"placement": placement}}
    await hub.patch(kinds.POLICY, "3g.48gb-worker02", status, "default", subresource="status")
    made = await planned(hub, request("power"))
    assert made.policies["worker02"] == "3g.48gb-worker02"
    (held,) = reasons(made)["HeldByOthers"]
    assert "PlacementBinding set of namespace default, made by hand," in held


async def test_a_policy_of_another_optimization_may_be_shared_and_its_rest_used() -> None:
    hub = await hub_of()
    await hub.create(
        kinds.MANIFEST_WORK_REPLICA_SET, workload("small", "app02", 1, "small-placement")
    )
    await applied(hub, request("power", ["worker01"], ["mwrs-app01"]))
    made = await planned(
        hub, request("power", ["worker01"], ["mwrs-app02", "small"], optimization="second")
    )
    assert [(item.workload, item.policy) for item in made.placements] == [
        ("small", "2g.24gb-worker01")
    ]
    assert reasons(made)["UsedByOthers"] == [
        (
            "cluster worker01: mwrs-app01 of optimization default of namespace default uses 2 gpu,"
            " which is not planned again"
        )
    ]
    assert "mwrs-app01 of optimization default" in made.unplaced[0].message


async def test_what_a_workload_uses_that_a_person_placed_is_not_planned_again() -> None:
    hub = await hub_of()
    await run_by_hand(hub, "by-hand", "worker01", 2)
    made = await planned(hub, request("power"))
    assert {item.cluster for item in made.placements} == {"worker02"}
    assert "Placement by-hand-placement of namespace default, made by hand" in str(reasons(made))


async def test_cpu_of_others_is_deducted_from_what_a_cluster_can_allocate() -> None:
    hub = await hub_of()
    status = {"status": {"allocatable": {"cpu": "8"}}}
    await hub.patch(kinds.MANAGED_CLUSTER, "worker01", status, subresource="status")
    other = workload("other", "other", 5)
    other["metadata"]["labels"]["resource-request-kind"] = "cpu"
    await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, TEAM))
    await hub.create(kinds.MANIFEST_WORK_REPLICA_SET, in_namespace(other, TEAM))
    await place_by_hand(hub, "other-placement", ["worker01"], TEAM)
    asked = [{"name": "mwrs-app01", "requests": {"cpu": "4"}}]
    made = await planned(hub, request("performance", ["worker01"], [], targetWorkloads=asked))
    assert made.placements == ()
    asked = [{"name": "mwrs-app01", "requests": {"cpu": "3"}}]
    made = await planned(hub, request("performance", ["worker01"], [], targetWorkloads=asked))
    assert len(made.placements) == 1
    (used,) = reasons(made)["UsedByOthers"]
    assert used.startswith(
        "cluster worker01: other of Placement other-placement of namespace team-b"
    )


@pytest.mark.parametrize(("available", "fits"), [(-98, 1), (-96, 2), (100, 8)])
async def test_what_runs_without_the_hub_is_taken_from_the_resource_usage_score(
    available: int, fits: int
) -> None:
    hub = await hub_of()
    status = {"status": {"allocatable": {"cpu": "8"}}}
    await hub.patch(kinds.MANAGED_CLUSTER, "worker01", status, subresource="status")
    usage = score("worker01", "resource-usage-score", {"cpuAvailable": available})
    await hub.create(kinds.ADD_ON_PLACEMENT_SCORE, usage)
    await hub.patch(
        kinds.ADD_ON_PLACEMENT_SCORE,
        "resource-usage-score",
        {"status": usage["status"]},
        "worker01",
        subresource="status",
    )
    for cpu in (fits, fits + 1):
        asked = [{"name": "mwrs-app01", "requests": {"cpu": str(cpu)}}]
        made = await planned(hub, request("performance", ["worker01"], [], targetWorkloads=asked))
        assert len(made.placements) == (cpu == fits)
        assert ("UsedWithoutTheHub" in reasons(made)) == (fits < 8)


async def test_what_does_not_contradict_changes_nothing() -> None:
    hub = await hub_of_two_teams()
    before = await planned(hub, request())
    policy = obj(kinds.POLICY, "unrelated", TEAM, spec={"disabled": False, "policy-templates": []})
    await hub.create(kinds.POLICY, policy)
    await bind_by_hand(hub, "unrelated", "unrelated", "worker01", TEAM)
    await hub.patch(kinds.POLICY, "2g.24gb-worker02", {"spec": {"disabled": True}}, TEAM)
    await bind_by_hand(hub, "disabled", "2g.24gb-worker02", "worker02", TEAM)
    after = await planned(hub, request())
    assert (after.digest, after.issues) == (before.digest, before.issues)


async def test_a_plan_that_somebody_contradicts_meanwhile_is_refused_with_both_names() -> None:
    hub = await hub_of_two_teams()
    plan = await planned(hub, request())
    await applied(hub, of_team("power"))
    refused = await service(hub).apply(plan)
    assert isinstance(refused, RequestProblem)
    assert (refused.status, refused.reason) == (409, "HeldByOthers")
    assert "since optimization default of namespace default was planned" in refused.detail
    assert "optimization default of namespace team-b enforces policy 2g" in refused.detail


async def test_kept_workloads_hold_their_policy_and_what_they_use() -> None:
    hub = await hub_of()
    await applied(hub, request("performance", ["worker01"], ["mwrs-app01"]))
    asked = request("power", ["worker01"], ["mwrs-app02"], prune=False)
    made = await planned(hub, asked)
    assert (made.placements, made.removals) == ((), ())
    assert "optimization default of namespace default (not in the request, and kept" in str(
        made.unplaced
    )
    owners = {item.owner for item in made.issues if isinstance(item, TakenIssue)}
    assert owners == {asked.owner.without_prune}


def _only_in_one_namespace(call: Call) -> Fault | None:
    shared = (kinds.POLICY, kinds.MANIFEST_WORK_REPLICA_SET, kinds.PLACEMENT)
    if call.verb == "list" and call.kind in shared and not call.namespace:
        return Fault(Forbidden("not in all namespaces"))
    return None


async def test_namespaces_that_may_not_be_listed_are_an_issue() -> None:
    hub = await hub_of_two_teams()
    made = await Optimizer(Faulty(hub, _only_in_one_namespace), now=lambda: NOW).plan(request())
    assert isinstance(made, Plan)
    assert made.solution.objective_value == 115
    (unread,) = reasons(made)["OthersNotRead"]
    assert "Policy, ManifestWorkReplicaSet, Placement" in unread


async def test_others_count_without_their_names_for_those_who_may_not_list_them() -> None:
    hub = await hub_of_two_teams()
    await applied(hub, of_team("power", ["worker01"], ["mwrs-app01"]))
    named = await planned(hub, request())
    unnamed = await service(hub).plan(request(), name_others=False)
    assert isinstance(unnamed, Plan)
    assert unnamed.basis == named.basis
    assert unnamed.policies == named.policies
    assert "another namespace enforces a policy in the same pool" in str(reasons(unnamed))
    assert TEAM not in str(unnamed)


async def test_a_hub_of_one_team_reads_as_few_lists_as_kinds() -> None:
    lists = list[Call]()

    def note(call: Call) -> None:
        if call.verb == "list":
            lists.append(call)

    hub: EmbeddedHub = await hub_of()
    made = await Optimizer(Faulty(hub, note), now=lambda: NOW).plan(request())
    assert isinstance(made, Plan)
    assert len({call.kind for call in lists}) == 12
    assert len(lists) <= 2 * 13


async def test_objects_of_others_are_never_written() -> None:
    hub = await hub_of_two_teams()
    await applied(hub, of_team("power", ["worker02"], ["mwrs-app01"]))
    await bind_by_hand(hub, "by-hand", "2g.24gb-worker01", "worker01")
    await run_by_hand(hub, "alone", "worker01", 1)
    before = await everything(hub)
    asked = request("power", ["worker01", "worker02"], ["mwrs-app01"])
    assert len((await applied(hub, asked)).changes) == 3
    during = await everything(hub)
    assert {key: during[key] for key in before} == before
    await service(hub).reset("default", optimization="default")
    assert await everything(hub) == before
