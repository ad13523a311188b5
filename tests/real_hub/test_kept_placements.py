"""PlacementOptimizations on a real hub: kept, approved by digest, killed, applied again."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx
import pytest

from dsf.api.names import APPROVED_DIGEST_ANNOTATION, PLAN_REQUESTED_ANNOTATION
from dsf.api.times import rfc3339
from dsf.kube.client.connect import connect
from optimizer.api.app import create_app
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer
from tests.eventually import until
from tests.optimizer.service.kept_fleet import AT_ONCE, said
from tests.optimizer.service.test_namespace_lease import Killed, Mortal
from tests.real_hub.harness.api import ApiError
from tests.real_hub.test_placement_plans import (
    CLUSTERS,
    MANIFEST,
    PLACEMENT,
    PLAN,
    SCORE,
    decided,
    prefer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_hub.harness.api import Object
    from tests.real_hub.harness.hub import Hub

KEPT = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "PlacementOptimization")
SUPPLY = [{"kind": "gpu", "device": "all", "amount": 2}]
UNPROCESSABLE = 422
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

pytestmark = pytest.mark.usefixtures("clusters", "placement_plans")


@pytest.fixture
def place(hub: Hub, bound_namespace: str) -> Iterator[str]:
    """A namespace with a workload; both clusters have a score for it."""
    hub.apply(MANIFEST.format(name="app", namespace=bound_namespace))
    for cluster in CLUSTERS:
        metadata = {"name": "worth", "namespace": cluster}
        hub.apply({"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": metadata})
    prefer(hub, "east")
    yield bound_namespace
    for cluster in CLUSTERS:
        hub.api.delete(*SCORE, "worth", cluster)


def manifest(namespace: str, **spec: object) -> Object:
    whole = {
        "clusters": [{"name": name, "allocatable": SUPPLY} for name in CLUSTERS],
        "preference": {"addonPlacementScore": "worth"},
        "hysteresis": AT_ONCE,
        "mode": "Apply",
        **spec,
    }
    metadata = {"name": "kept", "namespace": namespace}
    return {"apiVersion": KEPT[0], "kind": KEPT[1], "metadata": metadata, "spec": whole}


async def ended(tasks: set[asyncio.Task[object]]) -> None:
    """End what a killed process would have left behind: no task of it goes on."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def look(hub: Hub, namespace: str, *, writes: int | None = None) -> bool:
    """Let a new process look, which is killed after some writes; return whether it was."""

    async def looked() -> bool:
        async with connect(hub.admin_kubeconfig) as kube:
            mortal = Mortal(kube, 1_000 if writes is None else writes)
            service = Optimizer(mortal, now=lambda: datetime.now(UTC), lease_seconds=1)
            with contextlib.suppress(Killed, BaseExceptionGroup):
                await OptimizationController(service, read_only=False).look(namespace, "kept")
            await ended(asyncio.all_tasks() - {asyncio.current_task()})
            return mortal.dead

    return asyncio.run(looked())


def approve(hub: Hub, namespace: str, digest: str) -> httpx.Response:
    """Approve a plan by REST."""

    async def approved() -> httpx.Response:
        async with connect(hub.admin_kubeconfig) as kube:
            service = Optimizer(kube, now=lambda: datetime.now(UTC))
            app = httpx.ASGITransport(app=create_app(service, read_only=False))
            async with httpx.AsyncClient(transport=app, base_url="http://optimizer") as http:
                path = f"/placementoptimizations/{namespace}/kept/approve"
                return await http.post(path, params={"digest": digest})

    return asyncio.run(approved())


def conditions(hub: Hub, namespace: str) -> dict[str, str]:
    return said(hub.api.get(*KEPT, "kept", namespace))


def test_what_is_declared_follows_the_scores_and_new_workloads(hub: Hub, place: str) -> None:
    hub.apply(manifest(place))
    look(hub, place)
    until("east to be decided", lambda: decided(hub, place) == {"east"})
    assert conditions(hub, place)["Applied"] == "True UpToDate"
    prefer(hub, "west")
    look(hub, place)
    until("west to be decided", lambda: decided(hub, place) == {"west"})
    hub.apply(MANIFEST.format(name="another", namespace=place))
    look(hub, place)
    assert hub.api.get(*PLACEMENT, "another", place)
    table: Object = hub.api.request("GET", hub.api.path(*KEPT, place), accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]][:9] == [
        *("Name", "Mode", "Ready", "Planned", "Applied", "Satisfied"),
        *("Gain", "Moves left", "Last change"),
    ]
    [row] = table["rows"]
    assert row["cells"][:5] == ["kept", "Apply", "True", "True", "True"]


def test_the_same_manifest_applied_again_changes_nothing(hub: Hub, place: str) -> None:
    hub.apply(manifest(place))
    look(hub, place)
    look(hub, place)
    before = hub.api.get(*KEPT, "kept", place)
    records = hub.api.list(*PLAN, place)
    hub.apply(manifest(place))
    look(hub, place)
    assert hub.api.get(*KEPT, "kept", place) == before
    assert hub.api.list(*PLAN, place) == records


def test_a_plan_waits_for_its_digest(hub: Hub, place: str) -> None:
    hub.apply(manifest(place, mode="Approve"))
    look(hub, place)
    assert conditions(hub, place)["Applied"] == "False AwaitingApproval"
    digest = hub.api.get(*KEPT, "kept", place)["status"]["plan"]["digest"]
    assert approve(hub, place, "0" * 64).json()["reason"] == "StaleApproval"
    assert approve(hub, place, digest).json()["approved"] is True
    annotations = hub.api.get(*KEPT, "kept", place)["metadata"]["annotations"]
    assert annotations[APPROVED_DIGEST_ANNOTATION] == digest
    look(hub, place)
    until("east to be decided", lambda: decided(hub, place) == {"east"})
    hub.apply(manifest(place, mode="Approve"))
    look(hub, place)
    assert conditions(hub, place)["Applied"] == "True UpToDate"


def test_the_scores_of_a_stopped_agent_expire_and_move_nothing(hub: Hub, place: str) -> None:
    hub.apply(manifest(place))
    look(hub, place)
    until("east to be decided", lambda: decided(hub, place) == {"east"})
    last = datetime.now(UTC) + timedelta(seconds=1)
    stopped = {"status": {"validUntil": rfc3339(last)}}
    hub.api.patch(*SCORE, "worth", stopped, "east", subresource="status")
    until("its last score to expire", lambda: datetime.now(UTC) > last)
    ask = {"metadata": {"annotations": {PLAN_REQUESTED_ANNOTATION: "now"}}}
    hub.api.patch(*KEPT, "kept", ask, place)
    look(hub, place)
    assert hub.api.get(*KEPT, "kept", place)["status"]["planRequested"] == "now"
    assert conditions(hub, place)["Applied"] == "True UpToDate"
    assert decided(hub, place) == {"east"}


def test_an_optimizer_killed_between_any_two_writes_goes_on(hub: Hub, place: str) -> None:
    hub.apply(manifest(place, deletionPolicy="Reset"))
    kills = 0
    while look(hub, place, writes=kills):
        kills += 1
        assert kills < 60
    assert kills > 5
    until("east to be decided", lambda: decided(hub, place) == {"east"})
    assert conditions(hub, place)["Applied"] == "True UpToDate"
    hub.api.delete(*KEPT, "kept", place)
    look(hub, place)
    with pytest.raises(ApiError):
        hub.api.get(*PLACEMENT, "app", place)


@pytest.mark.parametrize(
    "wrong",
    [
        {"budgets": [{"moves": -1}]},
        {"triggers": {"scoreChange": -1}},
        {"freezes": [{"schedule": "never", "duration": "1h"}]},
        {"mode": "Perhaps"},
        {"missingScore": "none"},
    ],
    ids=str,
)
def test_what_the_schema_can_tell_is_refused(hub: Hub, place: str, wrong: Object) -> None:
    with pytest.raises(ApiError) as refused:
        hub.api.create(manifest(place, **wrong))
    assert refused.value.status == UNPROCESSABLE
