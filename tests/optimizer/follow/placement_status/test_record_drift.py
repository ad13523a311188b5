"""What differs from the plan in force, through the optimizer's door."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from dsf.api.conditions import conditions_of, find
from dsf.kube import kinds
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import Kind
from optimizer.follow.overview.findings.fleet_findings import findings
from optimizer.follow.placement_status.landing_report import status_tables
from optimizer.follow.record.content import RecordContent, packed, unpacked
from optimizer.follow.record.recorded_plan import record_digest
from optimizer.service.observe_fleet import observe_fleets
from optimizer.service.optimizer import Optimizer
from tests.dsf.sim.builders import NOW
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call
from tests.optimizer.follow.placement_status.guide_run import GuideRun, guide_run
from tests.optimizer.follow.record.signing import sign
from tests.optimizer.hubs import record_keys


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


async def relabel(run: GuideRun, **labels: str | None) -> None:
    for cluster, value in labels.items():
        patch = {"metadata": {"labels": {"cluster-name": value}}}
        await run.hub.patch(kinds.MANAGED_CLUSTER, cluster, patch, None)


async def swap_labels(run: GuideRun) -> None:
    await relabel(run, worker01="worker02", worker02="worker01")


async def move_label(run: GuideRun) -> None:
    await relabel(run, worker01=None)


async def patch(run: GuideRun, kind: Kind, name: str, body: dict[str, Any]) -> None:
    await run.hub.patch(kind, name, body, "default")


async def remove_generated_label(run: GuideRun) -> None:
    label = {"dynamic-scoring-framework-mcp/generated": None}
    await patch(run, kinds.PLACEMENT, "app01-placement", {"metadata": {"labels": label}})


async def disable_scheduling(run: GuideRun) -> None:
    off = {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}
    await patch(run, kinds.PLACEMENT, "app01-placement", {"metadata": {"annotations": off}})


async def add_a_placement(run: GuideRun) -> None:
    references = [{"name": "app01-placement"}, {"name": "by-hand"}]
    spec = {"placementRefs": [{**item, "rolloutStrategy": {"type": "All"}} for item in references]}
    await patch(run, kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", {"spec": spec})


async def supply_less(run: GuideRun) -> None:
    labels = {"metadata": {"labels": {"resource-supply-amount": "1"}}}
    await patch(run, kinds.POLICY, "policy-enable-mig-3g-worker01", labels)


async def request_more(run: GuideRun) -> None:
    labels = {"metadata": {"labels": {"resource-request-amount": "3"}}}
    await patch(run, kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", labels)


async def disable_policy(run: GuideRun) -> None:
    await patch(run, kinds.POLICY, "policy-enable-mig-3g-worker01", {"spec": {"disabled": True}})


async def override_a_binding(run: GuideRun) -> None:
    name = await name_of_first(run, kinds.PLACEMENT_BINDING)
    override = {"bindingOverrides": {"remediationAction": "enforce"}}
    await patch(run, kinds.PLACEMENT_BINDING, name, override)


async def bind_by_hand(run: GuideRun) -> None:
    name = await name_of_first(run, kinds.PLACEMENT_BINDING)
    one = await run.hub.get(kinds.PLACEMENT_BINDING, name, "default")
    (subject,) = one["subjects"]
    other = {**subject, "name": "policy-disable-mig-worker01"}
    metadata = {"name": "by-hand", "namespace": "default"}
    await run.hub.create(
        kinds.PLACEMENT_BINDING, {**one, "metadata": metadata, "subjects": [other]}
    )


CHOSEN = "policy-enable-mig-3g-worker01"
OURS = "dynamic-scoring.open-cluster-management.io/"


def edit_of(kind: Kind, name: str, body: dict[str, Any]) -> Callable[[GuideRun], Awaitable[None]]:
    async def edit(run: GuideRun) -> None:
        namespace = None if kind == kinds.MANAGED_CLUSTER else "default"
        await run.hub.patch(kind, name, body, namespace)

    return edit


def policy(**fields: Any) -> Callable[[GuideRun], Awaitable[None]]:
    return edit_of(kinds.POLICY, CHOSEN, fields)


def workload(**fields: Any) -> Callable[[GuideRun], Awaitable[None]]:
    return edit_of(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", fields)


def annotated(**said: str) -> dict[str, Any]:
    return {"annotations": {f"{OURS}{key.replace('_', '-')}": text for key, text in said.items()}}


def referring_to(placement: str) -> dict[str, Any]:
    return {"placementRefs": [{"name": placement, "rolloutStrategy": {"type": "All"}}]}


async def copy_workload(run: GuideRun, name: str, placement: str) -> None:
    one = await run.hub.get(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default")
    metadata = {"name": name, "namespace": "default", "labels": one["metadata"]["labels"]}
    spec = {**one["spec"], **referring_to(placement)}
    copy = {**one, "metadata": metadata, "spec": spec}
    await run.hub.create(kinds.MANIFEST_WORK_REPLICA_SET, copy)


async def share_a_placement(run: GuideRun) -> None:
    await copy_workload(run, "mwrs-again", "app01-placement")


async def place_by_hand(run: GuideRun) -> None:
    one = await run.hub.get(kinds.PLACEMENT, "app01-placement", "default")
    metadata = {"name": "by-hand", "namespace": "default"}
    await run.hub.create(kinds.PLACEMENT, {**one, "metadata": metadata})
    await copy_workload(run, "mwrs-by-hand", "by-hand")


async def delete_workload(run: GuideRun) -> None:
    await run.hub.delete(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default")


POLICY, WORKLOAD = ("Policy", CHOSEN), ("ManifestWorkReplicaSet", "mwrs-app01")
CLUSTER = ("ManagedCluster", "worker01")


@pytest.mark.parametrize(
    ("edit", "reason", "of", "named"),
    [
        (
            policy(spec={"remediationAction": "inform"}),
            "PolicyInforms",
            POLICY,
            "remediationAction",
        ),
        (policy(spec={"policy-templates": []}), "PolicyChanged", POLICY, "spec.policy-templates"),
        (
            policy(
                spec={
                    "dependencies": [
                        {
                            "apiVersion": "policy.open-cluster-management.io/v1",
                            "kind": "Policy",
                            "name": "first",
                            "compliance": "Compliant",
                        }
                    ]
                }
            ),
            "PolicyChanged",
            POLICY,
            "spec.dependencies",
        ),
        (policy(metadata=annotated(cluster="worker02")), "SupplyChanged", POLICY, "worker02"),
        (policy(metadata=annotated(pool="other")), "PolicyChanged", POLICY, "pool"),
        (
            policy(metadata={"labels": {"resource-supply-amount": None}}),
            "SupplyChanged",
            POLICY,
            "resource-supply-amount is missing",
        ),
        (
            workload(metadata={"labels": {"resource-request-kind": None}}),
            "RequestChanged",
            WORKLOAD,
            "resource-request-kind is missing",
        ),
        (workload(metadata={"labels": {"app": "app02"}}), "WorkloadChanged", WORKLOAD, "app"),
        (
            workload(metadata=annotated(excluded_clusters="worker01")),
            "WorkloadChanged",
            WORKLOAD,
            '"excluded clusters" differs from what revision 1 was made for',
        ),
        (workload(metadata=annotated(replicas="2")), "WorkloadChanged", WORKLOAD, "replicas"),
        (delete_workload, "WorkloadMissing", WORKLOAD, "revision 1 places it"),
        (
            edit_of(
                kinds.MANAGED_CLUSTER, "worker01", {"metadata": annotated(allocatable="gpu=0")}
            ),
            "ClusterChanged",
            CLUSTER,
            "allocatable",
        ),
        (
            share_a_placement,
            "SharedPlacement",
            ("Placement", "app01-placement"),
            "mwrs-again, mwrs-app01 refer to it",
        ),
        (
            place_by_hand,
            "CapacityExceeded",
            CLUSTER,
            "made by hand, uses 2, of 2 that are supplied",
        ),
        (
            workload(spec=referring_to("app02-placement")),
            "ReferenceChanged",
            WORKLOAD,
            "refers to Placement app02-placement instead of Placement app01-placement",
        ),
    ],
)
async def test_an_edit_of_what_runs_is_named_with_its_object_and_its_field(
    edit: Callable[[GuideRun], Awaitable[None]], reason: str, of: tuple[str, str], named: str
) -> None:
    run = await guide_run()
    await run.land()
    assert (await run.status()).drift == ()
    await edit(run)
    await run.settle()
    drift = (await run.status()).drift
    (found,) = [item for item in drift if (item.kind, item.name) == of]
    assert (found.reason, found.next != "") == (reason, True)
    assert named in found.message
    assert "ClusterLabelMoved" not in {item.reason for item in drift}


async def test_a_new_plan_that_decides_the_same_records_what_the_objects_say_then(
    run: GuideRun,
) -> None:
    await policy(spec={"dependencies": []})(run)
    assert [reason for reason, _, _ in await drifts(run)] == ["PolicyChanged"]
    await run.place()
    assert await drifts(run) == []
    await run.place()
    assert len((await run.hub.list(kinds.PLACEMENT_PLAN, "default")).items) == 2


async def test_labels_that_constraints_name_are_compared(run: GuideRun) -> None:
    spread = annotated(spread="zone=1", workload_anti_affinity="team=a")
    await workload(metadata=spread)(run)
    await run.place()
    assert await drifts(run) == []
    await edit_of(kinds.MANAGED_CLUSTER, "worker01", {"metadata": {"labels": {"zone": "b"}}})(run)
    await workload(metadata={"labels": {"team": "a", "other": "a"}})(run)
    assert {
        (reason, message.partition(" differ")[0]) for reason, _, message in await drifts(run)
    } == {("ClusterChanged", '"label zone"'), ("WorkloadChanged", '"label team"')}


async def test_a_workload_that_refers_to_another_placement_has_not_landed() -> None:
    run = await guide_run()
    await run.land()
    await workload(spec=referring_to("app02-placement"))(run)
    await run.settle()
    status = await run.status()
    assert not status.landed
    rows = {(item.workload, item.cluster): item.reason for item in status.workloads}
    assert rows == {
        ("mwrs-app01", "worker01"): "ReferenceChanged",
        ("mwrs-app02", "worker02"): "ResourcesAvailable",
    }
    head, *_ = status_tables(status).splitlines()
    assert head == "1 of 2 placements in namespace default have landed."


async def test_what_an_older_record_does_not_say_is_not_compared(run: GuideRun) -> None:
    record = await run.hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    content = unpacked(record["spec"]["content"], RecordContent)
    assert isinstance(content, RecordContent)
    older = content.model_copy(update={"digests": {}, "placements": {}})
    await record_again(run, packed(older))
    await policy(spec={"policy-templates": []})(run)
    await workload(metadata=annotated(replicas="2"))(run)
    assert await drifts(run) == []
    await request_more(run)
    assert [reason for reason, _, _ in await drifts(run)] == ["RequestChanged"]
    await workload(spec=referring_to("app02-placement"))(run)
    found = {reason for reason, _, _ in await drifts(run)}
    assert found == {"PlacementUnused", "SharedPlacement", "RequestChanged"}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            swap_labels,
            {("ClusterLabelMoved", "ManagedCluster", name) for name in ("worker01", "worker02")},
        ),
        (move_label, {("ClusterLabelMoved", "ManagedCluster", "worker01")}),
        (remove_generated_label, {("LabelRemoved", "Placement", "app01-placement")}),
        (disable_scheduling, {("SchedulingDisabled", "Placement", "app01-placement")}),
        (add_a_placement, {("SecondPlacement", "ManifestWorkReplicaSet", "mwrs-app01")}),
        (supply_less, {("SupplyChanged", "Policy", "policy-enable-mig-3g-worker01")}),
        (request_more, {("RequestChanged", "ManifestWorkReplicaSet", "mwrs-app01")}),
        (disable_policy, {("PolicyDisabled", "Policy", "policy-enable-mig-3g-worker01")}),
        (override_a_binding, {("DiffersFromPlan", "PlacementBinding", "")}),
        (bind_by_hand, {("HeldByOthers", "Policy", "policy-enable-mig-3g-worker01")}),
    ],
)
async def test_what_makes_a_plan_untrue_is_named_with_what_comes_next(
    run: GuideRun, edit: Callable[[GuideRun], Awaitable[None]], expected: set[tuple[str, str, str]]
) -> None:
    await run.settle()
    await edit(run)
    status = await run.optimizer.placement_status("default")
    found = {
        (item.reason, item.kind, "" if item.kind == "PlacementBinding" else item.name[:])
        for item in status.drift
    }
    assert found == expected
    assert all(item.message and item.next for item in status.drift)


async def test_what_a_plan_is_said_to_write_anew_it_does(run: GuideRun) -> None:
    await override_a_binding(run)
    await run.hub.delete(kinds.PLACEMENT, "app01-placement", "default")
    status = await run.optimizer.placement_status("default")
    assert {item.next for item in status.drift} == {"the next plan writes it anew"}
    await run.place()
    assert await drifts(run) == []


async def test_what_runs_without_a_placement_is_named(run: GuideRun) -> None:
    await run.settle()
    for cluster in run.fleet.clusters:
        await run.divide_gpus(cluster)
        await run.claim(cluster, "compliant")
    assert (await run.status()).landed
    await run.optimizer.reset("default")
    await run.settle()
    left = "it runs on {}, and OCM leaves it there, because it refers to {}, which does not exist"
    assert await drifts(run) == [
        ("RunsWithoutPlacement", "ManifestWorkReplicaSet", left.format(cluster, placement))
        for placement, cluster in (("app01-placement", "worker01"), ("app02-placement", "worker02"))
    ]


async def test_a_work_that_ocm_does_not_create_is_named_after_a_while() -> None:
    run = await guide_run()
    await run.land()
    await run.hub.patch(
        kinds.MANIFEST_WORK, "mwrs-app01", {"metadata": {"finalizers": []}}, "worker01"
    )
    await run.hub.delete(kinds.MANIFEST_WORK, "mwrs-app01", "worker01")
    assert await drifts(run) == []
    later = NOW + timedelta(minutes=1)
    status = await Optimizer(run.hub, now=lambda: later).placement_status("default")
    assert [(item.reason, item.name) for item in status.drift] == [
        ("ManifestWorkMissing", "mwrs-app01")
    ]


async def record_again(run: GuideRun, content: str | None) -> None:
    """Replace the record of the plan in force by one with another content."""
    kind, name = kinds.PLACEMENT_PLAN, "default-1"
    record = await run.hub.get(kind, name, "default")
    await run.hub.delete(kind, name, "default")
    spec = {key: value for key, value in record["spec"].items() if key != "content"}
    spec |= {"content": content} if content else {}
    spec["recordDigest"] = record_digest(spec)
    metadata = {key: record["metadata"][key] for key in ("name", "namespace", "labels")}
    await run.hub.create(kind, {**record, "metadata": metadata, "spec": spec})
    body = {"status": {"phase": "Applied"}}
    await run.hub.patch(kind, name, body, "default", subresource="status")
    await sign(run.hub, name)


@pytest.mark.parametrize(("content", "reason"), [("AAAA", "UnreadableRecord"), (None, "NoContent")])
async def test_a_record_with_which_nothing_can_be_compared_says_so(
    run: GuideRun, content: str | None, reason: str
) -> None:
    await record_again(run, content)
    watch = run.optimizer.landings
    await watch.look()
    status = await run.optimizer.placement_status("default")
    assert [item.reason for item in status.not_compared] == [reason]
    assert "Drift is not known: the hub is not compared with PlacementPlan default-1" in (
        status_tables(status)
    )
    record = await run.hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    drifted = find(conditions_of(record), "Drifted")
    assert drifted is not None
    assert (drifted["status"], drifted["reason"]) == ("Unknown", reason)


async def test_plans_that_may_not_be_read_are_named_and_not_taken_for_as_planned(
    run: GuideRun,
) -> None:
    await run.settle()
    said = (
        'placementplans is forbidden: User "reader" cannot list resource "placementplans" in API'
        ' group "dynamic-scoring.open-cluster-management.io" at the cluster scope'
    )

    def refuse(call: Call) -> Fault | None:
        listed = (call.verb, call.kind) == ("list", kinds.PLACEMENT_PLAN)
        return Fault(Forbidden(said)) if listed else None

    hub = Faulty(run.hub, refuse)
    status = await Optimizer(hub, now=lambda: NOW).placement_status("default")
    assert [item.reason for item in status.not_compared] == ["PlanNotRecorded"]
    for facts in (
        await Optimizer(hub, now=lambda: NOW).fleet("default"),
        (await observe_fleets(hub, keys=record_keys(hub), now=lambda: NOW))[1],
    ):
        (found,) = [item for item in findings(facts) if item.stage == "plan"]
        assert (found.reason, found.severity) == ("PlanNotRecorded", "warning")
        assert found.message.startswith("drift is not known: ")
