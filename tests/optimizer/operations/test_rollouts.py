"""Rollouts over HTTP: status, stream and commands."""

import asyncio
import json
from collections.abc import AsyncGenerator

from dsf.kube import kinds
from dsf.kube.port import Kube
from optimizer.api.app import create_app
from optimizer.api.operation_routes import event_stream
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.rollouts import follow_rollout
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from optimizer.wire.rollout import RolloutStatus
from tests.eventually import eventually
from tests.kube_wrappers.wrapper import Call, Wrapper
from tests.optimizer.api.test_app import client, problem
from tests.optimizer.follow.rollout.guide_rollout import asked, guide_rollout


async def test_a_rollout_is_begun_followed_and_changed() -> None:
    rollout = await guide_rollout()
    body = asked().model_dump(mode="json", by_alias=True, exclude_defaults=True)
    async with client(rollout.hub) as http:
        dry = (await http.post("/optimize?dry_run=true", json=body)).json()
        assert (dry["applied"], len(dry["rollout_steps"])) == (False, 8)
        problem(await http.get("/rollouts/default/default"), 404, "NoRollout")
        begun = (await http.post("/optimize", json=body)).json()
        assert (begun["applied"], begun["record"]) == (True, "default-2")
        problem(await http.post("/optimize", json=body), 409, "RolloutInProgress")

        status = (await http.get("/rollouts/default/default")).json()
        assert (status["phase"], status["step"], len(status["steps"])) == ("Progressing", 0, 8)
        assert (await http.get("/rollouts?namespace=default")).json() == {"items": [status]}
        problem(await http.get("/rollouts?namspace=default"), 422, "InvalidField")
        assert (await http.post("/rollouts/default/default/stop")).status_code == 422

        paused = (await http.post("/rollouts/default/default/pause")).json()
        assert (paused["paused"], paused["reason"]) == (True, "RolloutPaused")
        cancelled = (await http.post("/rollouts/default/default/cancel")).json()
        assert cancelled["phase"] == "Cancelled"
        problem(await http.post("/rollouts/default/default/undo"), 409, "RolloutEnded")
        stream = await http.get("/rollouts/default/default/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    event, data, end = stream.text.split("\n", 2)
    assert (event, end) == ("event: status", "\n")
    assert json.loads(data.removeprefix("data: ")) == cancelled


async def test_a_stream_follows_a_rollout_to_its_end_and_says_meanwhile_that_it_lives() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    statuses = await follow_rollout(AuthorizedOptimizer(rollout.service()), "default", "default")
    assert not isinstance(statuses, RequestProblem)
    stream = event_stream(statuses, heartbeat_seconds=0.001)
    first = {await anext(stream)}
    while not (": waiting\n\n" in first and any("event: status" in part for part in first)):
        first.add(await anext(stream))
    await rollout.command("cancel")
    last = [part async for part in stream if part != ": waiting\n\n"][-1]
    assert '"phase":"Cancelled"' in last
    assert (await rollout.record(name)).progress.phase == "Cancelled"


async def test_a_stream_that_nobody_reads_any_more_ends_what_it_follows() -> None:
    ended = asyncio.Event()

    async def forever() -> AsyncGenerator[RolloutStatus]:
        try:
            await asyncio.Event().wait()
            yield RolloutStatus.model_construct()
        finally:
            ended.set()

    stream = event_stream(forever(), heartbeat_seconds=0.001)
    assert await anext(stream) == ": waiting\n\n"
    await stream.aclose()
    assert ended.is_set()


class FailsOnce(Wrapper):
    """A hub whose first answer about a single PlacementPlan is not one."""

    def __init__(self, hub: Kube) -> None:
        super().__init__(hub)
        self.failed = False

    def after(self, call: Call) -> None:
        if (call.verb, call.kind) == ("get", kinds.PLACEMENT_PLAN) and not self.failed:
            self.failed = True
            raise RuntimeError("not an object")


async def test_a_server_makes_the_steps_of_a_rollout_and_tells_them_as_events() -> None:
    """A failure that nobody expected delays it and does not end it."""
    rollout = await guide_rollout()
    hub = FailsOnce(rollout.hub)
    service = rollout.service(hub)
    app = create_app(service, read_only=False)

    async def reasons() -> set[str]:
        found = (await rollout.hub.list(kinds.EVENT, "default")).items
        return {item["reason"] for item in found if item["involvedObject"]["name"] == name}

    async def waiting() -> bool:
        status = (await rollout.record(name)).obj.get("status") or {}
        told = {item["reason"] for item in status.get("conditions", ())}
        return "StepWaiting" in told and "StepStarted" in await reasons()

    async with app.router.lifespan_context(app):
        applied = await service.apply(await rollout.plan())
        assert isinstance(applied, Applied)
        name = applied.record
        await eventually(waiting)
    assert "StepWritten" in await reasons()
    assert hub.failed
