"""Many readers of the events of a rollout: what they cost, and how many there may be."""

from pathlib import Path

from optimizer.api.caller_limits import StreamLimits
from tests.eventually import eventually
from tests.optimizer.api.event_streams import EVENTS, PLANS, served, token_of
from tests.optimizer.api.test_app import problem

MORE_THAN_A_POOL = 130
"""A client of the hub has 100 connections."""


async def test_many_streams_cost_the_hub_one_watch_and_stop_nobody_else(tmp_path: Path) -> None:
    limits = StreamLimits(total=MORE_THAN_A_POOL, of_caller=MORE_THAN_A_POOL)
    async with served(tmp_path, limits) as server:
        streams = [await server.stream() for _ in range(MORE_THAN_A_POOL)]
        assert {stream.status for stream in streams} == {200}
        assert {(await stream.next_status())["paused"] for stream in streams} == {True}
        assert server.watches.most[PLANS] == 1
        await server.answers()
        server.hub.end_watches()
        await server.change("cancel")
        assert {(await stream.last_status())["phase"] for stream in streams} == {"Cancelled"}
        assert server.watches.most[PLANS] == 1


async def test_a_caller_has_few_streams_and_gets_a_place_back_when_it_leaves(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, StreamLimits(total=3, of_caller=2)) as server:
        own = [await server.stream() for _ in range(2)]
        refused = await server.http.get(EVENTS, headers=token_of("reader"))
        found = problem(refused, 429, "TooManyStreams")
        assert "one caller may have 2 streams" in found["detail"]
        assert int(refused.headers["retry-after"]) > 0
        other = await server.stream("writer")
        found = problem(
            await server.http.get(EVENTS, headers=token_of("writer")), 429, "TooManyStreams"
        )
        assert "all 3 streams" in found["detail"]
        assert {stream.status for stream in (*own, other)} == {200}
        status = await server.http.get("/rollouts/default/default", headers=token_of("reader"))
        assert status.status_code == 200
        await own[0].leave()

        async def has_a_place() -> bool:
            return (await server.stream()).status == 200

        assert await eventually(has_a_place)


async def test_each_stream_needs_the_rights_of_its_reader(tmp_path: Path) -> None:
    async with served(tmp_path, StreamLimits()) as server:
        reader = await server.stream()
        problem(await server.http.get(EVENTS, headers=token_of("stranger")), 403, "Forbidden")
        problem(await server.http.get(EVENTS), 401, "Unauthorized")
        assert (await reader.next_status())["paused"] is True
