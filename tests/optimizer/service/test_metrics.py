"""The metrics of an optimizer, as Prometheus reads them at `/metrics`."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.access_reviews import NonResourceAttributes
from dsf.kube.errors import Unreachable
from dsf.kube.kinds import Kind
from dsf.kube.port import ObjectList
from optimizer.api.app import create_app
from optimizer.domain.settings import DEFAULTS
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from tests.eventually import eventually
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.kube_wrappers.wrapper import Wrapper
from tests.optimizer.build import NOW, body, guide
from tests.optimizer.follow.rollout.guide_rollout import guide_rollout
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import READER, TOKENS, WRITER, reads

PREFIX = "dynamic_scoring_optimizer_"


@asynccontextmanager
async def client(
    optimizer: Optimizer, access: Access | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(optimizer, access=access, read_only=False)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http


async def samples(http: httpx.AsyncClient) -> dict[str, float]:
    """The values of all series, by name and labels' values."""
    answer = await http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        " ".join((sample.name.removeprefix(PREFIX), *sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_plans_and_writes_are_counted() -> None:
    async with client(Optimizer(await hub_of(), now=lambda: NOW)) as http:
        before = await samples(http)
        assert before["solves_total Optimal"] == before["applies_total Applied"] == 0
        await http.post("/optimize", json={**body(), "dryRun": True})
        await http.post("/optimize", json=body())
        await http.post("/optimize", json={**body(), "namespace": "nowhere"})
        after = await samples(http)
    assert after["solves_total Optimal"] == 2
    assert after["solves_total Refused"] == 1
    assert after["plan_seconds_count"] == after["solve_seconds_count"] == 2
    assert after["gap_ratio_bucket 0.0"] == 2
    assert (after["fleet_clusters"], after["fleet_workloads"]) == (2, 2)
    assert after["applies_total Applied"] == 1
    assert not [name for name in after if name.startswith("unplaced_workloads")]


async def test_workloads_without_a_place_are_counted_by_reason_until_the_next_plan() -> None:
    hub = await hub_of()
    async with client(Optimizer(hub, now=lambda: NOW)) as http:
        for until in (NOW - timedelta(hours=1), NOW + timedelta(hours=1)):
            for score in guide().scores:
                metadata = score["metadata"]
                status = {"status": {"validUntil": rfc3339(until)}}
                named = (metadata["name"], status, metadata["namespace"])
                await hub.patch(kinds.ADD_ON_PLACEMENT_SCORE, *named, subresource="status")
            await http.post("/optimize", json={**body(), "dryRun": True})
            unplaced = {k: v for k, v in (await samples(http)).items() if k.startswith("unplaced")}
            assert unplaced == ({"unplaced_workloads NoUsableScore": 2} if until < NOW else {})


class StatusTimes(Wrapper):
    """Says of scores when their status was written, as kube-apiserver does: each 10 min before."""

    async def list(self, kind: Kind, *args: Any, **more: Any) -> ObjectList:
        """Return a page of objects with their managedFields."""
        page = await super().list(kind, *args, **more)
        for age, obj in enumerate(page.items if kind is kinds.ADD_ON_PLACEMENT_SCORE else ()):
            obj["metadata"]["managedFields"] = [
                {"subresource": "status", "time": rfc3339(NOW - timedelta(minutes=10 * age))},
                {"time": rfc3339(NOW - timedelta(days=1))},
            ]
        return page


async def test_the_age_of_the_oldest_score_is_that_of_its_last_write() -> None:
    async with client(Optimizer(StatusTimes(await hub_of()), now=lambda: NOW)) as http:
        assert math.isnan((await samples(http))["oldest_score_age_seconds"])
        await http.post("/optimize", json={**body(), "dryRun": True})
        assert (await samples(http))["oldest_score_age_seconds"] == 600


async def test_conflicts_are_counted_by_reason() -> None:
    hub = await hub_of()
    optimizer = Optimizer(hub, now=lambda: NOW)
    async with client(optimizer) as http:
        plan = await optimizer.plan(OptimizeRequest.model_validate(body()))
        assert isinstance(plan, Plan)
        labels = {"metadata": {"labels": {"cluster-name": "another"}}}
        await hub.patch(kinds.MANAGED_CLUSTER, "worker01", labels)
        await optimizer.apply(plan)
        found = await samples(http)
    assert found["applies_total Conflict"] == found["conflicts_total StalePlan"] == 1


async def test_errors_and_busy_servers_are_counted() -> None:
    down = Faulty(await hub_of(), lambda _: Fault(Unreachable("connection refused")))
    busy = replace(DEFAULTS, max_solves=0)
    for kube, settings, result in ((down, DEFAULTS, "Failed"), (await hub_of(), busy, "Busy")):
        async with client(Optimizer(kube, settings, now=lambda: NOW)) as http:
            await http.post("/optimize", json=body())
            assert (await samples(http))[f"solves_total {result}"] == 1


async def test_rollouts_are_counted_by_how_far_they_are() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    await rollout.command("pause")
    optimizer = rollout.service()
    running = asyncio.create_task(optimizer.rollouts.run())
    async with client(optimizer) as http:

        async def seen(series: str) -> bool:
            return (await samples(http)).get(series) == 1

        await eventually(lambda: seen("rollouts RolloutPaused"))
        assert (await samples(http))["rollouts StepWaiting"] == 0
        await optimizer.rollouts.command("default", "default", "cancel")
        await eventually(lambda: seen("rollouts_ended_total Cancelled"))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await rollout.condition(name) == ("False", "RolloutCancelled")


async def test_prometheus_reads_them_with_the_right_to_get_the_url() -> None:
    """A right to use resources, of whatever kind, is not the right to read the metrics."""
    rights = {
        READER.name: [NonResourceAttributes("get", "/metrics")],
        WRITER.name: reads("default"),
    }
    hub = await hub_of(access=AccessTable(TOKENS, rights))
    async with client(Optimizer(hub, now=lambda: NOW), Access(DelegatedAuth(hub))) as http:
        answers = {
            token: await http.get("/metrics", headers={"Authorization": f"Bearer {token}"})
            for token in ("forged", "token-of-writer", "token-of-reader")
        }
    codes = [answer.status_code for answer in answers.values()]
    assert codes == [401, 403, 200]
    assert "get the non-resource URL /metrics" in answers["token-of-writer"].json()["detail"]
    assert PREFIX in answers["token-of-reader"].text
