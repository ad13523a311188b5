"""What was decided next to what the simulated OCM has made of it, through the optimizer's door."""

from dataclasses import replace
from typing import Any

import pytest

from dsf.api.names import GENERATED_LABEL
from dsf.kube import kinds
from dsf.kube.port import Object
from optimizer.follow.placement_status.comparison import placement_status
from optimizer.service.observe import observe_namespace
from optimizer.service.optimizer import Optimizer
from optimizer.wire.placement_status import PlacementStatus
from tests.dsf.sim.builders import NOW, make
from tests.optimizer.follow.placement_status.guide_run import GuideRun, guide_run
from tests.optimizer.hubs import hub_of

CHOSEN, DISABLED = "policy-enable-mig-3g-worker02", "policy-disable-mig-worker02"


@pytest.fixture
async def run() -> GuideRun:
    return await guide_run()


async def test_every_state_is_reached_in_turn(run: GuideRun) -> None:
    await run.place()
    assert await run.states() == dict.fromkeys(run.fleet.clusters, ("Planned", "NotDecided"))
    await run.settle()
    waiting = ("WaitingForPolicy", "NonCompliant")
    assert await run.states() == {"worker01": waiting, "worker02": waiting}
    await run.divide_gpus("worker01")
    assert await run.states() == {"worker01": ("WaitingForClaim", "NoClaim"), "worker02": waiting}
    await run.claim("worker01", "compliant")
    await run.divide_gpus("worker02")
    await run.claim("worker02", "noncompliant")
    assert await run.states() == {
        "worker01": ("Landed", "ResourcesAvailable"),
        "worker02": ("WaitingForClaim", "noncompliant"),
    }
    assert not (await run.status()).landed
    await run.hub.delete(kinds.MANAGED_CLUSTER_SET_BINDING, "default", "default")
    await run.settle()
    assert await run.states() == dict.fromkeys(
        run.fleet.clusters, ("Refused", "ClusterSetNotBound")
    )


async def test_all_landed_is_told_with_compliance_claims_and_since_when(run: GuideRun) -> None:
    await run.land()
    status = await run.status()
    assert (status.landed, status.drift) == (True, ())
    assert {item.since for item in status.workloads} == {NOW}
    assert [item.model_dump() for item in status.policies] == [
        {
            "cluster": cluster,
            "policy": f"policy-enable-mig-3g-{cluster}",
            "compliance": "Compliant",
            "claim": "compliant",
        }
        for cluster in run.fleet.clusters
    ]
    assert len(status.unbound_policies) == 4
    assert "policy-disable-mig-worker01" in status.unbound_policies


async def test_a_selection_that_ocm_withdraws_is_not_landed(run: GuideRun) -> None:
    await run.land()
    await run.fleet.clusters["worker01"].patch(
        kinds.CLUSTER_CLAIM, "policy-watcher-claim", {"spec": {"value": "noncompliant"}}, None
    )
    await run.settle()
    assert await run.states() == {
        "worker01": ("WaitingForClaim", "noncompliant"),
        "worker02": ("Landed", "ResourcesAvailable"),
    }


async def test_a_work_that_is_not_applied_yet_is_planned_with_ocms_reason(run: GuideRun) -> None:
    await run.land()
    (row,) = [item for item in (await run.status()).workloads if item.cluster == "worker01"]
    failed = {
        "type": "Applied",
        "status": "False",
        "reason": "AppliedManifestWorkFailed",
        "message": "denied",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await run.hub.patch(
        kinds.MANIFEST_WORK,
        row.workload,
        {"status": {"conditions": [failed]}},
        "worker01",
        subresource="status",
    )
    assert (await run.states())["worker01"] == ("Planned", "AppliedManifestWorkFailed")
    assert (await run.states())["worker02"] == ("Landed", "ResourcesAvailable")
    (row,) = [item for item in (await run.status()).workloads if item.cluster == "worker01"]
    assert row.message == 'its ManifestWork is not applied: AppliedManifestWorkFailed, "denied"'


async def test_without_the_right_to_read_works_the_counts_of_the_replica_set_decide(
    run: GuideRun,
) -> None:
    await run.land()
    observation = replace(await observe_namespace(run.hub, "default", NOW), works=None)
    assert placement_status(observation, "default").landed
    counts = {"total": 1, "applied": 0, "available": 0}
    await _patch_status(run, kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", {"summary": counts})
    observation = replace(await observe_namespace(run.hub, "default", NOW), works=None)
    states = {item.workload: item for item in placement_status(observation, "default").workloads}
    assert states["mwrs-app01"].state == "Planned"
    assert states["mwrs-app01"].message == "0 of 1 ManifestWorks are applied, 0 are available"
    assert states["mwrs-app02"].state == "Landed"
    replica_set = await run.hub.get(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default")
    own, made = replica_set["spec"]["placementRefs"][0]["name"], {**counts, "applied": 1}
    of_placements = [
        {"name": "other", "summary": counts},
        {"name": own, "summary": {**made, "available": 1}},
    ]
    status = {"summary": counts, "placementSummary": of_placements}
    await _patch_status(run, kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", status)
    observation = replace(await observe_namespace(run.hub, "default", NOW), works=None)
    assert placement_status(observation, "default").landed


@pytest.mark.parametrize(
    ("spec", "reason"), [({"disabled": True}, "PolicyDisabled"), (None, "PolicyMissing")]
)
async def test_a_policy_that_cannot_be_enforced_refuses(
    run: GuideRun, spec: dict[str, Any] | None, reason: str
) -> None:
    await run.place()
    await run.settle()
    name = CHOSEN
    if spec is None:
        await run.hub.delete(kinds.POLICY, name, "default")
    else:
        await run.hub.patch(kinds.POLICY, name, {"spec": spec}, "default")
    await run.settle()
    assert (await run.states())["worker02"] == ("Refused", reason)
    assert _drifts(await run.status()) == [(reason, "Policy", name)]


async def test_a_lost_cluster_shows_as_drift_and_refuses_what_has_not_landed(run: GuideRun) -> None:
    await run.place()
    await run.settle()
    lost = {
        "type": "ManagedClusterConditionAvailable",
        "status": "Unknown",
        "reason": "ManagedClusterLeaseUpdateStopped",
        "message": "Registration agent stopped updating its lease.",
        "lastTransitionTime": "2026-01-01T00:05:00Z",
    }
    await _patch_status(run, kinds.MANAGED_CLUSTER, "worker02", {"conditions": [lost]})
    assert (await run.states())["worker02"] == ("Refused", "ClusterLost")
    status = await run.status()
    assert _drifts(status) == [("ClusterLost", "ManagedCluster", "worker02")]
    assert status.drift[0].message == (
        "cluster worker02 is not available: ManagedClusterLeaseUpdateStopped,"
        ' "Registration agent stopped updating its lease."'
    )


async def test_a_tainted_cluster_shows_as_drift_and_refuses(run: GuideRun) -> None:
    await run.land()
    taint = {"key": "maintenance", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}
    await run.hub.patch(kinds.MANAGED_CLUSTER, "worker02", {"spec": {"taints": [taint]}}, None)
    await run.settle()
    assert (await run.states())["worker02"] == ("Refused", "ClusterTainted")
    (row,) = [item for item in (await run.status()).workloads if item.cluster == "worker02"]
    assert row.since == NOW
    assert row.message == (
        "cluster worker02 has the taint maintenance:NoSelect since 2026-01-01T00:00:00Z:"
        " remove the taint, or tolerate it in the request's tolerations"
    )
    assert _drifts(await run.status()) == [("ClusterTainted", "ManagedCluster", "worker02")]


async def test_a_cluster_that_left_is_named(run: GuideRun) -> None:
    await run.land()
    await run.hub.delete(kinds.MANAGED_CLUSTER, "worker02")
    await run.settle()
    assert (await run.states())["worker02"] == ("Refused", "ClusterLeft")
    assert _drifts(await run.status()) == [("ClusterLeft", "ManagedCluster", "worker02")]


async def test_edits_by_hand_are_named_with_what_the_object_was_made_for(run: GuideRun) -> None:
    await run.land()
    mine = {
        obj["spec"]["predicates"][0]["requiredClusterSelector"]["labelSelector"]["matchLabels"][
            "cluster-name"
        ]: obj["metadata"]["name"]
        for obj in await _generated(run, kinds.PLACEMENT)
        if obj["metadata"]["name"].startswith("placement-")
    }
    (binding,) = [
        obj
        for obj in await _generated(run, kinds.PLACEMENT_BINDING)
        if "worker02" in obj["metadata"]["name"]
    ]
    other = {"labelSelector": {"matchLabels": {"cluster-name": "worker02"}}}
    predicates = {"spec": {"predicates": [{"requiredClusterSelector": other}]}}
    await run.hub.patch(kinds.PLACEMENT, mine["worker01"], predicates, "default")
    subject = {**binding["subjects"][0], "name": DISABLED}
    await run.hub.patch(
        kinds.PLACEMENT_BINDING, binding["metadata"]["name"], {"subjects": [subject]}, "default"
    )
    more = {"spec": {"numberOfClusters": 2}}
    await run.hub.patch(kinds.PLACEMENT, "app01-placement", more, "default")
    status = await run.status()
    assert _drifts(status) == [
        ("PlacementEdited", "Placement", "app01-placement"),
        ("PlacementEdited", "Placement", mine["worker01"]),
        ("UnplannedDecision", "Placement", mine["worker01"]),
        ("BindingEdited", "PlacementBinding", binding["metadata"]["name"]),
    ]
    assert [item.message for item in status.drift] == [
        "its predicates name worker01, and numberOfClusters is 2",
        "it names cluster worker02, and was made for worker01",
        "OCM has selected worker01, which its predicates do not name",
        f"it binds policy {DISABLED}, and was made for {CHOSEN}",
    ]


async def test_a_claim_that_somebody_removed_and_an_unused_placement_are_named(
    run: GuideRun,
) -> None:
    await run.land()
    (found,) = [
        obj
        for obj in await _generated(run, kinds.PLACEMENT)
        if obj["metadata"]["name"] == "app01-placement"
    ]
    selector = dict(found["spec"]["predicates"][0]["requiredClusterSelector"])
    del selector["claimSelector"]
    spec = {"spec": {"predicates": [{"requiredClusterSelector": selector}]}}
    await run.hub.patch(kinds.PLACEMENT, "app01-placement", spec, "default")
    await run.hub.delete(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app02", "default")
    assert _drifts(await run.status()) == [
        ("PlacementEdited", "Placement", "app01-placement"),
        ("PlacementUnused", "Placement", "app02-placement"),
        ("WorkloadMissing", "ManifestWorkReplicaSet", "mwrs-app02"),
    ]
    observation = await observe_namespace(run.hub, "default", NOW)
    rolled_out = placement_status(observation, "default", rolling_out=["default"])
    assert _drifts(rolled_out) == [("PlacementUnused", "Placement", "app02-placement")]
    other = placement_status(observation, "default", rolling_out=["other"])
    assert ("PlacementEdited", "Placement", "app01-placement") in _drifts(other)


async def test_a_namespace_without_placements_has_not_landed() -> None:
    hub = await hub_of()
    status = await Optimizer(hub, now=lambda: NOW).placement_status("default")
    assert (status.landed, status.workloads, status.policies, status.drift) == (False, (), (), ())


async def test_objects_of_others_are_not_compared(run: GuideRun) -> None:
    foreign = make(kinds.PLACEMENT, "app01-placement", "default", spec={"numberOfClusters": 3})
    await run.hub.create(kinds.PLACEMENT, foreign)
    await run.settle()
    status = await run.status()
    assert (status.workloads, status.drift) == ((), ())


def _drifts(status: PlacementStatus) -> list[tuple[str, str, str]]:
    return [(item.reason, item.kind, item.name[:]) for item in status.drift]


async def _generated(run: GuideRun, kind: kinds.Kind) -> list[Object]:
    return list((await run.hub.list(kind, "default", labels=f"{GENERATED_LABEL}=true")).items)


async def _patch_status(run: GuideRun, kind: kinds.Kind, name: str, status: dict[str, Any]) -> None:
    namespace = "default" if kind.namespaced else None
    await run.hub.patch(kind, name, {"status": status}, namespace, subresource="status")
