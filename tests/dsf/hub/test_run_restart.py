"""A restart never rolls back: no managed cluster gets an older summary than it already had.

The controller is killed at each of its writes while it distributes a change. The number of
managed clusters whose ManifestWork has the change never falls, whichever replica continues.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import pytest

from dsf.hub.snapshot.summaries_work import summaries_text
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK, Kind
from dsf.kube.port import WatchEvent
from tests.dsf.hub.builders import HUB, api_config
from tests.dsf.hub.scoring_api import ScoringAPI, scoring_api
from tests.dsf.hub.test_run import (
    add_cluster,
    add_namespace,
    controlled,
    named,
    register,
    two_clusters,
    until_ready,
    until_reason,
)
from tests.dsf.hub.test_run_faults import Killed
from tests.eventually import eventually
from tests.kube_wrappers.wrapper import Answer, Call, Wrapper

CLUSTERS = ("c1", "c2", "c3", "c4")
OLD_VIEW_SECONDS = 0.5
QUIET_SECONDS = 0.5


@dataclass(frozen=True)
class Case:
    """A change of an API or of a scorer, and whether summaries carry it."""

    make: Callable[[EmbeddedHub, ScoringAPI], Awaitable[None]]
    carried: Callable[[str], bool]
    healthy_before: bool = True


async def change_config(_: EmbeddedHub, api: ScoringAPI) -> None:
    config = api_config()
    config["scoring"]["params"]["interval"] = 60
    api.body = json.dumps(config).encode()


async def fall_ill(_: EmbeddedHub, api: ScoringAPI) -> None:
    api.health = 503


async def recover(_: EmbeddedHub, api: ScoringAPI) -> None:
    api.health = 200


async def move(hub: EmbeddedHub, api: ScoringAPI) -> None:
    body = {"spec": {"configURL": f"{api.config_url}?moved"}}
    api.body = named("moved").body
    await hub.patch(DYNAMIC_SCORER, "cpu", body, HUB)


CASES = {
    "another config": Case(change_config, lambda text: '"scoringInterval": 60' in text),
    "an API that fails": Case(fall_ill, lambda text: "cpu_score" not in text),
    "an API that recovers": Case(recover, lambda text: "cpu_score" in text, healthy_before=False),
    "another configURL": Case(move, lambda text: "moved" in text),
}


class Carrying(Wrapper):
    """Counts after every write of a ManifestWork how many of them carry the change."""

    def __init__(self, inner: EmbeddedHub, carried: Callable[[str], bool]) -> None:
        super().__init__(inner)
        self._hub = inner
        self._carried = carried
        self.counts: list[int] = []

    async def count(self) -> int:
        works = (await self._hub.list(MANIFEST_WORK)).items
        return sum(self._carried(summaries_text(work)) for work in works)

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        answer = await answering
        if (call.verb, call.kind) == ("patch", MANIFEST_WORK):
            self.counts.append(await self.count())
        return answer


class OldView(Wrapper):
    """Its watches of DynamicScorers are behind those of everything else."""

    async def watch(self, kind: Kind, *args: Any, **options: Any) -> AsyncGenerator[WatchEvent]:
        async for event in super().watch(kind, *args, **options):
            if kind == DYNAMIC_SCORER:
                await asyncio.sleep(OLD_VIEW_SECONDS)
            yield event


async def before_the_change(case: Case, api: ScoringAPI) -> EmbeddedHub:
    """Return a hub that is as its users want it: nothing is left to write."""
    hub = await two_clusters()
    for name in CLUSTERS[2:]:
        await add_namespace(hub, name)
        await add_cluster(hub, name)
    api.health = 200 if case.healthy_before else 503
    await register(hub, "cpu", api)
    async with controlled(hub):
        if case.healthy_before:
            await until_ready(hub, "cpu")
        else:
            await until_reason(hub, "cpu", "Ready", "BadStatus")
            await eventually(partial(holds_works, hub))
        await asyncio.sleep(QUIET_SECONDS)
    return hub


async def holds_works(hub: EmbeddedHub) -> bool:
    return len((await hub.list(MANIFEST_WORK)).items) == len(CLUSTERS)


async def one_life(case: Case, at: int, *, arrives: bool, takeover: bool) -> tuple[list[int], bool]:
    """Return the counts over both processes, and whether the first one came to its write `at`."""
    async with scoring_api() as api, AsyncExitStack() as stack:
        hub = await before_the_change(case, api)
        carrying = Carrying(hub, case.carried)
        killed = Killed(carrying, at, arrives=arrives)

        async def after_the_first(work: Callable[[], Awaitable[None]]) -> None:
            await killed.dead.wait()
            await first.aclose()
            await work()

        async def carried_everywhere() -> bool:
            return await carrying.count() == len(CLUSTERS)

        async def dead_or_done() -> bool:
            return killed.dead.is_set() or await carried_everywhere()

        first = await stack.enter_async_context(AsyncExitStack())
        await first.enter_async_context(controlled(killed))
        if takeover:
            await stack.enter_async_context(controlled(OldView(carrying), lead=after_the_first))
        await case.make(hub, api)
        await eventually(dead_or_done)
        await asyncio.sleep(QUIET_SECONDS)
        if killed.dead.is_set() and not takeover:
            await first.aclose()
            await stack.enter_async_context(controlled(carrying))
        await eventually(carried_everywhere)
        await asyncio.sleep(QUIET_SECONDS)
        return carrying.counts, killed.dead.is_set()


QUICK = {("another configURL", False), ("an API that recovers", True)}
"""Killed at every ninth write in the quick suite; all are at every write in the exhaustive one."""


def trials() -> Iterator[Any]:
    """Each change and who goes on, with the writes from one kill to the next."""
    for change, takeover in product(CASES, (False, True)):
        then = "takeover" if takeover else "restart"
        yield pytest.param(
            change, takeover, 1, marks=pytest.mark.long, id=f"{change}-{then}-every-write"
        )
        if (change, takeover) in QUICK:
            yield pytest.param(change, takeover, 9, id=f"{change}-{then}")


@pytest.mark.parametrize(("change", "takeover", "stride"), list(trials()))
@pytest.mark.fire(
    "no cluster gets an older summary after a restart or a takeover",
    "a controller killed before and after each write",
)
async def test_no_cluster_gets_an_older_summary(
    change: str, takeover: bool, stride: int, record_property: Callable[[str, object], None]
) -> None:
    kills = 0
    for at in range(1, 100, stride):
        lives = (
            one_life(CASES[change], at, arrives=arrives, takeover=takeover)
            for arrives in (False, True)
        )
        # Side by side: most of a life is waiting.
        (counts, came), (counts_if_arrived, came_if_arrived) = await asyncio.gather(*lives)
        assert counts == sorted(counts), f"killed at write {at}"
        assert counts_if_arrived == sorted(counts_if_arrived), f"killed after write {at}"
        kills += came + came_if_arrived
        if not came_if_arrived:
            break
    record_property("count", kills)
    assert at > len(CLUSTERS)
