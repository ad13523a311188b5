"""Capacity is counted from what runs: OCM leaves the ManifestWorks of a Placement that is gone."""

import json

import pytest

from dsf.kube import kinds
from dsf.kube.errors import Forbidden
from dsf.kube.port import Object
from optimizer.follow.rollout.rollout_record import status_of
from optimizer.plan.plan import Plan, result
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied, ResetResult
from tests.dsf.sim.builders import NOW
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call
from tests.mcp_server.service import put
from tests.optimizer.follow.placement_status.guide_run import SCENARIO, GuideRun, guide_run
from tests.optimizer.follow.rollout.guide_rollout import GuideRollout, guide_rollout
from tests.optimizer.neighbours import TEAM, in_namespace

APPS = ["mwrs-app01", "mwrs-app02"]


@pytest.fixture
async def run() -> GuideRun:
    """The guide's fleet on which performance runs, and a second team with the same objects."""
    found = await guide_run()
    await put(found.hub, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
    for kind in (kinds.POLICY, kinds.MANIFEST_WORK_REPLICA_SET):
        for item in (await found.hub.list(kind, "default")).items:
            metadata = {key: item["metadata"][key] for key in ("name", "labels")}
            copy = {key: value for key, value in item.items() if key != "status"}
            await put(found.hub, in_namespace({**copy, "metadata": metadata}, TEAM))
    binding = (await found.hub.list(kinds.MANAGED_CLUSTER_SET_BINDING, "default")).items[0]
    metadata = {"name": binding["metadata"]["name"]}
    await put(found.hub, in_namespace({**binding, "metadata": metadata}, TEAM))
    await found.land()
    return found


def asked(namespace: str = "default", workloads: list[str] | None = None) -> OptimizeRequest:
    body = json.loads((SCENARIO / "params.json").read_text()) | {"namespace": namespace}
    if workloads is not None:
        body["targetWorkloads"] = [{"name": name} for name in workloads]
    return OptimizeRequest.model_validate(body)


async def planned(run: GuideRun, request: OptimizeRequest) -> Plan:
    plan = await run.optimizer.plan(request)
    assert isinstance(plan, Plan), plan
    return plan


async def applied(run: GuideRun, plan: Plan) -> None:
    done = await run.optimizer.apply(plan)
    assert isinstance(done, Applied), done
    assert done.failed == ()
    await run.settle()


async def reset(run: GuideRun, **how: object) -> ResetResult:
    done = await run.optimizer.reset("default", **how)  # type: ignore[arg-type]
    assert isinstance(done, ResetResult), done
    assert done.failed == ()
    await run.settle()
    return done


async def works(run: GuideRun) -> list[tuple[str, str]]:
    """Replica set and cluster of everything that runs."""
    listed = (await run.hub.list(kinds.MANIFEST_WORK)).items
    return sorted((item["metadata"]["name"], item["metadata"]["namespace"]) for item in listed)


def reasons(plan: Plan, reason: str) -> str:
    return "\n".join(item.message for item in plan.issues if item.reason == reason)


async def test_a_reset_says_what_goes_on_running_and_the_next_team_is_not_placed_on_it(
    run: GuideRun,
) -> None:
    before = await works(run)
    done = await reset(run)
    assert [(i.workload, i.clusters) for i in done.running] == [
        ("mwrs-app01", ("worker01",)),
        ("mwrs-app02", ("worker02",)),
    ]
    assert done.stopping == ()
    assert await works(run) == before
    other = await planned(run, asked(TEAM))
    assert other.placements == ()
    used = reasons(other, "UsedByOthers")
    gone = "mwrs-app01 of Placement app01-placement of namespace default, now gone, uses 2 gpu"
    assert f"worker01: {gone}, which is not planned again" in used
    assert all("now gone" in item.message for item in other.unplaced)


async def test_a_reset_deletes_what_places_workloads_before_it_releases_policies(
    run: GuideRun,
) -> None:
    done = await reset(run)
    order = [(item.kind, item.name) for item in done.deleted]
    assert set(order[:2]) == {("Placement", "app01-placement"), ("Placement", "app02-placement")}


async def test_a_reset_that_stops_workloads_frees_their_devices(run: GuideRun) -> None:
    done = await reset(run, stop_workloads=True)
    assert done.running == ()
    assert [(i.workload, i.clusters) for i in done.stopping] == [
        ("mwrs-app01", ("worker01",)),
        ("mwrs-app02", ("worker02",)),
    ]
    assert await works(run) == []
    assert {i.kind for i in done.deleted} == {"Placement", "PlacementBinding"}
    assert len((await planned(run, asked(TEAM))).placements) == 2
    again = await reset(run, stop_workloads=True)
    assert (again.stopping, again.deleted) == ((), ())
    assert len((await reset(run)).deleted) == 2


async def test_what_an_earlier_reset_left_can_be_stopped(run: GuideRun) -> None:
    await reset(run)
    one = await reset(run, stop_workloads=True, optimization="default")
    assert [item.workload for item in one.running] == APPS
    assert len(await works(run)) == 2
    done = await reset(run, stop_workloads=True)
    assert [item.workload for item in done.stopping] == APPS
    assert await works(run) == []


async def test_a_reset_without_the_right_to_list_works_tells_what_ocm_decided(
    run: GuideRun,
) -> None:
    done = await blind(run).reset("default")
    assert isinstance(done, ResetResult)
    assert [item.workload for item in done.running] == APPS
    assert [item.reason for item in done.gaps] == ["OthersNotRead"]


def blind(run: GuideRun) -> Optimizer:
    def faults(call: Call) -> Fault | None:
        hidden = call.verb == "list" and call.kind == kinds.MANIFEST_WORK
        return Fault(Forbidden("not listed")) if hidden else None

    return Optimizer(Faulty(run.hub, faults), now=lambda: NOW)


async def test_who_may_not_list_works_is_told_that_they_are_not_counted(run: GuideRun) -> None:
    plan = await blind(run).plan(asked())
    assert isinstance(plan, Plan)
    assert reasons(plan, "OthersNotRead").endswith("is not known: ManifestWork")


async def test_what_the_own_team_left_is_where_its_workloads_are(run: GuideRun) -> None:
    await reset(run)
    plan = await planned(run, asked())
    assert len(plan.placements) == 2
    found = {i.workload: (i.action, [p.cluster for p in i.before], i.uncovered) for i in plan.moves}
    assert found == {
        "mwrs-app01": ("moves", ["worker01"], True),
        "mwrs-app02": ("moves", ["worker02"], True),
    }
    await applied(run, plan)
    assert len(await works(run)) <= 2


async def test_a_left_over_that_the_plan_has_no_place_for_is_stopped(run: GuideRun) -> None:
    await reset(run)
    replica_set = await run.hub.get(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default")
    labels = {"metadata": {"labels": {"resource-request-amount": "9"}}}
    await run.hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", labels, "default")
    assert replica_set["spec"]["placementRefs"][0]["name"] == "app01-placement"
    plan = await planned(run, asked())
    assert [item.workload for item in plan.placements] == ["mwrs-app02"]
    assert [(item.workload, item.clusters) for item in plan.removals] == [
        ("mwrs-app01", ("worker01",))
    ]
    assert {item.workload: item.action for item in plan.moves}["mwrs-app01"] == "stops"
    await applied(run, plan)
    assert "mwrs-app01" not in dict(await works(run))


async def test_a_left_over_that_the_request_does_not_name_keeps_what_it_uses(run: GuideRun) -> None:
    await reset(run)
    plan = await planned(run, asked(workloads=["mwrs-app02"]))
    assert {item.cluster for item in plan.placements} == {"worker02"}
    assert "mwrs-app01 of Placement app01-placement of namespace default, now gone," in reasons(
        plan, "UsedByOthers"
    )


async def test_a_plan_is_out_of_date_if_more_runs_and_not_if_less_does(run: GuideRun) -> None:
    work = await run.hub.get(kinds.MANIFEST_WORK, "mwrs-app01", "worker01")
    await reset(run, stop_workloads=True)
    plan = await planned(run, asked(TEAM))
    await leave(run, work)
    refused = await run.optimizer.apply(plan)
    assert isinstance(refused, RequestProblem)
    assert (refused.status, refused.reason) == (409, "HeldByOthers")
    assert "mwrs-app01" in refused.detail
    other = await planned(run, asked(TEAM))
    assert {item.cluster for item in other.placements} == {"worker02"}
    await run.hub.delete(kinds.MANIFEST_WORK, "mwrs-app01", "worker01")
    await applied(run, other)


async def leave(run: GuideRun, work: Object) -> None:
    """Let a ManifestWork run whose replica set refers to a Placement that is gone."""
    await run.hub.delete(kinds.PLACEMENT, "app01-placement", "default")
    kept = {key: work["metadata"][key] for key in ("name", "namespace", "labels")}
    await run.hub.create(
        kinds.MANIFEST_WORK, {**work, "metadata": kept, "spec": {"workload": {"manifests": []}}}
    )


async def test_a_workload_that_is_deleted_counts_until_its_work_is_gone(run: GuideRun) -> None:
    await reset(run)
    await run.hub.delete(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default")
    assert ("mwrs-app01", "worker01") in await works(run)
    plan = await planned(run, asked(TEAM))
    assert "worker01: mwrs-app01 of" in reasons(plan, "UsedByOthers")


async def test_a_plan_without_places_says_that_the_old_placements_stay(run: GuideRun) -> None:
    for cluster in ("worker01", "worker02"):
        for item in (await run.hub.list(kinds.ADD_ON_PLACEMENT_SCORE, cluster)).items:
            status = {"status": {"validUntil": "2020-01-01T00:00:00Z"}}
            kind, name = kinds.ADD_ON_PLACEMENT_SCORE, item["metadata"]["name"]
            await run.hub.patch(kind, name, status, cluster, subresource="status")
    plan = await planned(run, asked())
    assert (plan.placements, plan.changes, plan.enforcement_changes) == ((), (), ())
    assert {item.workload: item.action for item in plan.moves} == dict.fromkeys(APPS, "stays")
    assert "mwrs-app01 stays on worker01 as Placement app01-placement says" in reasons(
        plan, "StaysInForce"
    )
    assert result(plan, None).uncovers_others == ()


async def test_a_rollout_from_what_a_reset_left_stops_nothing_unsaid() -> None:
    run = await guide_rollout()
    since = await run.mark()
    done = await run.service().reset("default")
    assert isinstance(done, ResetResult)
    await run.play()
    assert len(await run.running()) == 2
    name = await run.begin()
    record = await run.finish(name)
    assert record.progress.phase == "Complete"
    assert await run.running() == {"mwrs-app01 on worker01", "mwrs-app02 on worker02"}
    assert set(await run.check_history(since, name)) <= set(APPS)


async def test_a_left_over_without_a_place_stops_in_the_first_step() -> None:
    run: GuideRollout = await guide_rollout()
    assert isinstance(await run.service().reset("default"), ResetResult)
    labels = {"metadata": {"labels": {"resource-request-amount": "9"}}}
    await run.hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", labels, "default")
    name = await run.begin()
    (first, *_) = status_of(await run.record(name)).steps
    assert ([item.workload for item in first.stop], first.uncovered) == (APPS, ("mwrs-app02",))
    assert (await run.finish(name)).progress.phase == "Complete"
    assert await run.running() == {"mwrs-app02 on worker02"}
