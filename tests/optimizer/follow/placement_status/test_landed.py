"""Landed means that a workload runs where it was decided: each fact that is lost ends it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from dsf.api.times import rfc3339
from dsf.kube.port import Object
from optimizer.follow.placement_status.comparison import placement_status
from optimizer.service.observe import observe_namespace
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import PlacementStatus
from tests.dsf.sim.builders import NOW
from tests.optimizer.follow.placement_status.guide_run import guide_run

CHOSEN = "policy-enable-mig-3g-worker01"
Edit = Callable[[Observation], Observation]


@cache
def guide_landed() -> Observation:
    async def land() -> Observation:
        run = await guide_run()
        await run.land()
        return await observe_namespace(run.hub, "default", NOW)

    return asyncio.run(land())


@pytest.fixture
def landed() -> Observation:
    return guide_landed()


def edited(kind: str, edit: Callable[[Object], Object | None]) -> Edit:
    """Change the objects that belong to worker01 in one list; None drops an object."""

    def changed(observation: Observation) -> Observation:
        objects = [
            edit(obj) if _of_worker01(obj) else obj for obj in getattr(observation, kind) or ()
        ]
        return replace(observation, **{kind: tuple(obj for obj in objects if obj is not None)})

    return changed


def _of_worker01(obj: Object) -> bool:
    metadata = obj["metadata"]
    return "worker01" in (metadata["name"], metadata.get("namespace")) or metadata["name"] == CHOSEN


def gone(_: Object) -> None:
    return None


def merged(**fields: Any) -> Callable[[Object], Object]:
    return lambda obj: {**obj, **{name: {**obj[name], **value} for name, value in fields.items()}}


def condition(kind: str, status: str = "True", **fields: Any) -> Object:
    when = "2026-01-01T00:00:00Z"
    return {"type": kind, "status": status, "reason": "Why", "lastTransitionTime": when, **fields}


def conditions(*items: Object) -> Callable[[Object], Object]:
    return merged(status={"conditions": list(items)})


def compliant(value: str | None) -> Callable[[Object], Object]:
    entry = {"clustername": "worker01", **({"compliant": value} if value else {})}
    return merged(status={"status": [entry]})


def at(before: timedelta) -> str:
    return rfc3339(NOW - before)


def reported(*, bound: timedelta, status: timedelta, manager: Object | None = None) -> Edit:
    """So long ago, OCM wrote the policy's status, it was bound, and somebody else wrote it."""
    written = [
        {"subresource": "status", "fieldsV1": {"f:status": {}}, "time": at(status)},
        {"fieldsV1": {"f:spec": {}}, "time": at(timedelta(hours=2))},
        *([manager] if manager else []),
    ]

    def changed(observation: Observation) -> Observation:
        bindings = [
            merged(metadata={"creationTimestamp": at(bound)})(obj) for obj in observation.bindings
        ]
        edit = edited("policies", merged(metadata={"managedFields": written}))
        return replace(edit(observation), bindings=tuple(bindings), observed_at=NOW)

    return changed


SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
bound_after_the_report = reported(bound=SECOND, status=2 * SECOND)
SPEC, LABELS = {"f:spec": {"f:policy-templates": {}}}, {"f:metadata": {"f:labels": {}}}
changed_after_the_report = reported(
    bound=HOUR, status=timedelta(minutes=10), manager={"fieldsV1": SPEC, "time": at(SECOND)}
)


@pytest.mark.parametrize(
    ("edit", "state", "reason"),
    [
        (edited("works", gone), "Planned", "NoManifestWork"),
        (
            edited("works", merged(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})),
            "Planned",
            "Terminating",
        ),
        (edited("works", conditions()), "Planned", "NotReported"),
        (edited("works", conditions(condition("Applied", "False"))), "Planned", "Why"),
        (edited("works", conditions(condition("Applied"))), "Planned", "NotReported"),
        (
            edited("works", conditions(condition("Applied"), condition("Available", "False"))),
            "Planned",
            "Why",
        ),
        (
            edited(
                "works",
                lambda obj: merged(metadata={"generation": 2})(
                    conditions(
                        condition("Applied", observedGeneration=1),
                        condition("Available", observedGeneration=1),
                    )(obj)
                ),
            ),
            "Planned",
            "NotReported",
        ),
        (
            edited(
                "works",
                conditions(condition("Applied"), condition("Available"), condition("Degraded")),
            ),
            "Refused",
            "Why",
        ),
        (
            edited(
                "works",
                merged(
                    metadata={
                        "labels": {
                            "work.open-cluster-management.io/manifestworkreplicaset": (
                                "default.mwrs-app01"
                            ),
                            "work.open-cluster-management.io/placementname": "by-hand",
                        }
                    }
                ),
            ),
            "Planned",
            "OfAnotherPlacement",
        ),
        (edited("policies", compliant("NonCompliant")), "WaitingForPolicy", "NonCompliant"),
        (edited("policies", compliant("Pending")), "WaitingForPolicy", "Pending"),
        (edited("policies", compliant(None)), "WaitingForPolicy", "Pending"),
        (edited("policies", merged(status={"status": []})), "WaitingForPolicy", "Pending"),
        (edited("policies", merged(spec={"disabled": True})), "Refused", "PolicyDisabled"),
        (edited("policies", gone), "Refused", "PolicyMissing"),
        (bound_after_the_report, "WaitingForPolicy", "NotReported"),
        (changed_after_the_report, "WaitingForPolicy", "NotReported"),
        (
            edited(
                "managed_clusters",
                conditions(condition("ManagedClusterConditionAvailable", "Unknown")),
            ),
            "Refused",
            "ClusterLost",
        ),
        (edited("managed_clusters", gone), "Refused", "ClusterLeft"),
        (
            edited(
                "managed_clusters",
                merged(
                    status={
                        "clusterClaims": [{"name": "policy-watcher-claim", "value": "noncompliant"}]
                    }
                ),
            ),
            "WaitingForClaim",
            "noncompliant",
        ),
    ],
)
def test_a_workload_that_has_lost_a_fact_has_not_landed(
    landed: Observation, edit: Edit, state: str, reason: str
) -> None:
    assert all_landed(landed)
    status = placement_status(edit(landed), "default")
    rows = {item.cluster: (item.state, item.reason) for item in status.workloads}
    assert rows == {"worker01": (state, reason), "worker02": ("Landed", "ResourcesAvailable")}
    assert not status.landed


@pytest.mark.parametrize("edit", [bound_after_the_report, changed_after_the_report])
def test_an_old_report_counts_once_ocm_had_time_to_write_another(
    landed: Observation, edit: Edit
) -> None:
    later = replace(edit(landed), observed_at=NOW + timedelta(minutes=2))
    assert all_landed(later)


@pytest.mark.parametrize(
    "manager",
    [
        {"fieldsV1": LABELS, "time": at(SECOND)},
        {"fieldsV1": SPEC, "time": at(timedelta(minutes=11))},
        {"subresource": "status", "fieldsV1": {"f:status": {}}, "time": at(SECOND)},
        {"time": at(SECOND)},
        {"fieldsV1": SPEC},
    ],
)
def test_who_does_not_write_the_spec_makes_no_report_old(
    landed: Observation, manager: Object
) -> None:
    edit = reported(bound=HOUR, status=timedelta(minutes=10), manager=manager)
    assert all_landed(edit(landed))


def all_landed(observation: Observation) -> PlacementStatus | None:
    status = placement_status(observation, "default")
    return status if status.landed else None
