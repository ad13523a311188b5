"""Clusters that OCM can't select are not planned on; each is named with what would change it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.port import Object
from dsf.placement import DEFAULT_SETS, SET_LABEL, UNAVAILABLE, UNREACHABLE
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.plan.manifests import manifests
from optimizer.snapshot.observation import Observation
from tests.optimizer.build import NOW, body, guide, obj, read_fleet, request

LOST = {"key": UNAVAILABLE, "effect": "NoSelect"}


def cluster_set(name: str, **spec: Any) -> Object:
    return obj(kinds.MANAGED_CLUSTER_SET, name, spec=spec)


def bound_to(*names: str) -> tuple[Object, ...]:
    return tuple(
        obj(kinds.MANAGED_CLUSTER_SET_BINDING, name, "default", spec={"clusterSet": name})
        for name in names
    )


def world(
    bindings: tuple[str, ...] = ("default",), member: str = "default", **second: Any
) -> Observation:
    """The guide on a hub with cluster sets; `second` changes the cluster worker02."""
    observation = guide()
    clusters = [
        {**item, "metadata": {**item["metadata"], "labels": {**item["metadata"]["labels"]}}}
        for item in observation.managed_clusters
    ]
    for item in clusters:
        item["metadata"]["labels"][SET_LABEL] = "default"
    clusters[1]["metadata"]["labels"][SET_LABEL] = member
    clusters[1]["metadata"] |= second.pop("metadata", {})
    clusters[1]["spec"] = {**clusters[1]["spec"], **second.pop("spec", {})}
    clusters[1] |= second
    sets = (*(cluster_set(name, **spec) for name, spec in DEFAULT_SETS.items()), cluster_set("gpu"))
    return replace(
        observation,
        managed_clusters=tuple(clusters),
        cluster_sets=sets,
        set_bindings=bound_to(*bindings),
        observed_at=NOW,
    )


def tainted(effect: str = "NoSelect", **more: Any) -> Observation:
    return world(spec={"taints": [{"key": "maintenance", "effect": effect, **more}]})


def usable(fleet: Fleet) -> list[str]:
    """The clusters on which every workload and some policy can be."""
    return [
        item.name
        for item in fleet.clusters
        if item.candidates
        and all(item.name not in workload.unselectable for workload in fleet.workloads)
    ]


def reasons(fleet: Fleet) -> Mapping[str, str]:
    return {item.cluster: item.reason for item in fleet.issues if item.reason.startswith("Cluster")}


def joined(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "ManagedClusterJoined", "status": status}]}


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (world(), ""),
        (world(("global",), member="gpu"), ""),
        (world(member="gpu"), "ClusterSetNotBound"),
        (world(("default", "ghost"), member="gpu"), "ClusterSetNotBound"),
        (world(("default", "gpu"), member="gpu"), ""),
        (world(metadata={"deletionTimestamp": rfc3339(NOW)}), "ClusterBeingDeleted"),
        (world(spec={"hubAcceptsClient": False}), "ClusterNotAccepted"),
        (world(status=joined("False")), "ClusterNotJoined"),
        (world(status=joined("True")), ""),
        (tainted(), "ClusterTainted"),
        (tainted("NoSelectIfNew"), "ClusterTainted"),
        (tainted("PreferNoSelect"), ""),
        (world(spec={"taints": [LOST]}), "ClusterTainted"),
    ],
)
def test_a_cluster_that_ocm_can_not_select_is_named(observation: Observation, reason: str) -> None:
    fleet = read_fleet(observation)
    assert reasons(fleet) == ({"worker02": reason} if reason else {})
    assert usable(fleet) == (["worker01"] if reason else ["worker01", "worker02"])


def test_an_issue_says_what_would_change_it() -> None:
    (issue,) = read_fleet(world(member="gpu")).issues
    assert "clusteradm clusterset bind gpu --namespace default" in issue.message


def test_files_without_cluster_sets_are_not_asked_about_them() -> None:
    assert usable(read_fleet(guide())) == ["worker01", "worker02"]


@pytest.mark.parametrize(("asked", "found"), [(["gpu"], ["worker02"]), (["default"], ["worker01"])])
def test_the_request_names_cluster_sets(asked: list[str], found: list[str]) -> None:
    both = world(("default", "gpu"), member="gpu")
    fleet = read_fleet(both, request(**body(), clusterSets=asked))
    assert usable(fleet) == found
    assert set(reasons(fleet).values()) == {"ClusterSetNotAsked"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "maintenance", "operator": "Exists"}, True),
        ({"key": "maintenance"}, True),
        ({"key": "maintenance", "value": "x"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "maintenance", "operator": "Exists", "effect": "NoSelectIfNew"}, False),
        ({"key": "maintenance", "operator": "Exists", "tolerationSeconds": 60}, True),
        ({"key": "maintenance", "operator": "Exists", "tolerationSeconds": 20}, False),
    ],
)
def test_a_request_tolerates_taints(toleration: dict[str, Any], tolerated: bool) -> None:
    since = rfc3339(NOW - timedelta(seconds=30))
    fleet = read_fleet(tainted(timeAdded=since), request(**body(), tolerations=[toleration]))
    assert ("worker02" in usable(fleet)) == tolerated


@pytest.mark.parametrize(
    ("added", "tolerated"),
    [
        ("9999-12-31T23:59:59Z", True),
        ("0001-01-01T00:00:00Z", False),
        ("0000-01-01T00:00:00Z", False),
        ("2026-11-20T11:59:60Z", False),
        ("not a time", False),
        ("2026-11-20T11:59:59", False),
    ],
)
def test_a_taint_can_have_any_time(added: str, tolerated: bool) -> None:
    toleration = {"key": "maintenance", "operator": "Exists", "tolerationSeconds": 10**18}
    if not tolerated:
        toleration["tolerationSeconds"] = 600
    fleet = read_fleet(tainted(timeAdded=added), request(**body(), tolerations=[toleration]))
    assert ("worker02" in usable(fleet)) == tolerated


def test_a_cluster_whose_taint_everything_tolerates_is_no_issue() -> None:
    asked = body()
    for item in (*asked["targetWorkloads"], *asked["clusters"][1]["availablePolicies"]):
        item["tolerations"] = "maintenance"
    fleet = read_fleet(tainted(), request(**asked))
    assert usable(fleet) == ["worker01", "worker02"]
    assert reasons(fleet) == {}


def test_a_workload_that_tolerates_a_taint_alone_gets_no_policy_there() -> None:
    asked = body()
    asked["targetWorkloads"][0]["tolerations"] = "maintenance"
    fleet = read_fleet(tainted(), request(**asked))
    first, second = fleet.workloads
    assert (first.unselectable, second.unselectable) == ((), ("worker02",))
    assert [bool(item.candidates) for item in fleet.clusters] == [True, False]


def running_on_second(observation: Observation) -> Observation:
    """The observation after a plan that put app01 onto worker02, and a policy."""
    fleet = read_fleet(replace(observation, managed_clusters=world().managed_clusters))
    decision = Decision(
        (PolicyEnforcement("worker02", fleet.clusters[1].candidates[0].policy),),
        (Assignment("mwrs-app01", "worker02", fleet.clusters[1].candidates[0].supplies[0].device),),
    )
    made = manifests(fleet, decision, claim_name="claim")
    return replace(
        observation,
        placements=tuple(item for item in made if item["kind"] == "Placement"),
        bindings=tuple(item for item in made if item["kind"] == "PlacementBinding"),
    )


@pytest.mark.parametrize(
    ("key", "effect", "seconds", "stays"),
    [
        (UNREACHABLE, "NoSelect", 60, True),
        (UNAVAILABLE, "NoSelect", 299, True),
        (UNAVAILABLE, "NoSelect", 301, False),
        ("maintenance", "NoSelect", 60, False),
        ("maintenance", "NoSelectIfNew", 9999, True),
    ],
)
def test_what_runs_stays_through_a_short_loss_and_nothing_new_comes(
    key: str, effect: str, seconds: int, stays: bool
) -> None:
    since = rfc3339(NOW - timedelta(seconds=seconds))
    taint = {"key": key, "effect": effect, "timeAdded": since}
    fleet = read_fleet(running_on_second(world(spec={"taints": [taint]})))
    first, second = fleet.workloads
    assert ("worker02" not in first.unselectable) == stays
    assert "worker02" in second.unselectable
    assert len(fleet.clusters[1].candidates) == (1 if stays else 0)


def test_generated_placements_carry_what_the_plan_assumed() -> None:
    asked = request(
        **body(),
        tolerations=[{"key": "maintenance", "effect": "NoSelect"}],
        clusterSets=["default"],
    )
    fleet = read_fleet(world(), asked)
    decision = Decision((), (Assignment("mwrs-app01", "worker01", "all"),))
    (placement,) = manifests(fleet, decision, claim_name="claim")
    assert placement["spec"]["clusterSets"] == ["default"]
    assert placement["spec"]["tolerations"] == [
        {"key": "maintenance", "operator": "Equal", "effect": "NoSelect"},
        {"key": UNAVAILABLE, "operator": "Exists", "tolerationSeconds": 300},
        {"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300},
    ]
