"""Several optimizers write to one namespace: plans never mix; a refusal names the winner."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import LEASE, NAMESPACE, PLACEMENT_PLAN, Kind
from dsf.kube.port import Kube, Object, Subresource
from optimizer.follow.record.recorded_plan import read_records
from optimizer.plan.plan import Plan
from optimizer.service.namespace_lease import LEASE_NAME
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.kube_wrappers.wrapper import WRITES, Call, Wrapper
from tests.optimizer.build import NOW, request
from tests.optimizer.hubs import bound, hub_of

SIDE_BY_SIDE = 8
"""Lives at the same time: most of one is waiting for the Lease of the killed process."""
POLICIES = {
    "performance": {"3g.48gb-worker01", "3g.48gb-worker02"},
    "power": {"2g.24gb-worker01", "2g.24gb-worker02"},
}


class Slow(Wrapper):
    """A hub whose calls take a few random milliseconds."""

    def __init__(self, hub: EmbeddedHub, random_: random.Random) -> None:
        super().__init__(hub)
        self._random = random_

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        await self._wait()
        return await super().create(kind, obj)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: Subresource | None = None,
    ) -> Object:
        await self._wait()
        return await super().patch(kind, name, patch, namespace, subresource=subresource)

    async def delete(self, kind: Kind, name: str, *args: Any, **kwargs: Any) -> None:
        await self._wait()
        await super().delete(kind, name, *args, **kwargs)

    async def _wait(self) -> None:
        await asyncio.sleep(self._random.random() / 500)


async def plans() -> dict[str, Plan]:
    service = Optimizer(await hub_of(), now=lambda: NOW)
    made = {}
    for name in POLICIES:
        plan = await service.plan(request(name))
        assert isinstance(plan, Plan)
        made[name] = plan
    return made


async def race(made: Mapping[str, Plan], seed: int) -> None:
    random_ = random.Random(seed)  # noqa: S311 - a seeded schedule
    hub = await hub_of()
    names = random_.sample(list(made), 2)
    services = [Optimizer(Slow(hub, random_), now=lambda: NOW) for _ in names]
    outcomes = dict(
        zip(
            names,
            await asyncio.gather(
                *(service.apply(made[name]) for service, name in zip(services, names, strict=True))
            ),
            strict=True,
        )
    )
    won = [name for name, outcome in outcomes.items() if isinstance(outcome, Applied)]
    assert len(won) == 1, outcomes
    assert await bound(hub) == POLICIES[won[0]]
    (lost,) = (outcome for outcome in outcomes.values() if isinstance(outcome, RequestProblem))
    assert lost.status == 409
    assert made[won[0]].digest in lost.detail


async def test_two_optimizers_never_mix_their_plans() -> None:
    made = await plans()
    for seed in range(8):
        await race(made, seed)


@pytest.mark.exhaustive
@pytest.mark.fire(
    "two optimizers never mix their plans", "races on an embedded hub with latency", count=50
)
@pytest.mark.parametrize(
    "chunk", [0, *(pytest.param(chunk, marks=pytest.mark.long) for chunk in range(1, 10))]
)
async def test_two_optimizers_never_mix_their_plans_in_500_races(chunk: int) -> None:
    made = await plans()
    for seed in range(50):
        await race(made, 1_000 + 50 * chunk + seed)


class Killed(BaseException):
    """The process ends here: nothing that follows is done, not even what cleans up."""


class Mortal(Wrapper):
    """A hub that a process reaches until it is killed: right after a number of its writes."""

    def __init__(self, hub: Kube, after: int) -> None:
        super().__init__(hub)
        self._left = after
        self.dead = False

    def before(self, call: Call) -> None:
        if self.dead or (call.verb in WRITES and self._left == 0):
            self.dead = True
            raise Killed
        if call.verb in WRITES:
            self._left -= 1


def another(kube: Kube) -> Optimizer:
    """Return an optimizer as another process has it."""
    return Optimizer(kube, now=lambda: NOW, lease_seconds=1)


async def killed_after(
    hub: EmbeddedHub, plan: Plan, writes: int, process: Callable[[Kube], Optimizer] = another
) -> bool:
    """Apply a plan in a process that is killed; tell whether it was, before it ended."""
    mortal = Mortal(hub, writes)
    service = process(mortal)
    with contextlib.suppress(Killed, BaseExceptionGroup):
        await service.apply(plan)
    return mortal.dead


@pytest.mark.fire(
    "after a kill at any write the next caller makes one whole plan",
    "an optimizer killed after each write",
)
@pytest.mark.parametrize(
    "next_score", ["performance", pytest.param("power", marks=pytest.mark.exhaustive)]
)
async def test_the_next_caller_makes_whole_what_a_kill_at_any_write_left(
    next_score: str, record_property: Callable[[str, object], None]
) -> None:
    kills = 0
    for first in range(1, 40, SIDE_BY_SIDE):
        lives = (one_life(next_score, first + number) for number in range(SIDE_BY_SIDE))
        killed = await asyncio.gather(*lives)
        kills += sum(killed)
        if not all(killed):
            record_property("count", kills)
            return
    pytest.fail("the process was killed at every write and never ended")


@pytest.mark.fire(
    "an optimizer that is started again with its identity writes at once",
    "killed after each write; its Lease would last an hour",
)
async def test_a_process_that_is_started_again_takes_its_leases_back_at_once(
    record_property: Callable[[str, object], None],
) -> None:
    for writes in range(1, 40):
        hub = await hub_of()
        plan = await again(hub).plan(request("power"))
        assert isinstance(plan, Plan)
        if not await killed_after(hub, plan, writes, again):
            record_property("count", writes - 1)
            return
        await apply_now(again(hub), "performance")
        assert await bound(hub) == POLICIES["performance"]
    pytest.fail("the process was killed at every write and never ended")


def again(kube: Kube) -> Optimizer:
    """Return an optimizer as a restarted container has it: with the identity of its Pod."""
    return Optimizer(kube, now=lambda: NOW, identity="pod", lease_seconds=3_600)


async def test_two_callers_of_one_process_write_one_after_the_other() -> None:
    hub = await hub_of()
    service, made = again(hub), await plans()
    outcomes = await asyncio.gather(*map(service.apply, made.values()))
    (won,) = (item for item in outcomes if isinstance(item, Applied))
    (lost,) = (item for item in outcomes if isinstance(item, RequestProblem))
    assert won.failed == ()
    assert lost.status == 409


async def test_a_lease_that_a_predecessor_left_elsewhere_keeps_nobody_waiting() -> None:
    hub = await hub_of()
    await hub.create(NAMESPACE, {"metadata": {"name": "another"}})
    spec = {"holderIdentity": "pod", "leaseDurationSeconds": 3_600}
    metadata = {"name": LEASE_NAME, "namespace": "another"}
    await hub.create(LEASE, {"metadata": metadata, "spec": spec})
    await apply_now(again(hub), "power")
    assert await bound(hub) == POLICIES["power"]


async def one_life(next_score: str, writes: int) -> bool:
    """Kill a process after some writes and let the next one apply a plan; whether it came to it."""
    hub = await hub_of()
    before = Optimizer(hub, now=lambda: NOW)
    await apply_now(before, "performance")
    plan = await before.plan(request("power"))
    assert isinstance(plan, Plan)
    if not await killed_after(hub, plan, writes):
        return False
    clusters = [policy.rsplit("-", 1)[1] for policy in await bound(hub)]
    assert len(clusters) == len(set(clusters)), "two policies on one cluster"
    await apply_now(another(hub), next_score)
    assert await bound(hub) == POLICIES[next_score]
    # The newest record is not the one in force if its writer died before it was signed.
    records = read_records((await hub.list(PLACEMENT_PLAN, "default")).items)
    phases = [item.phase for item in records]
    assert phases.count("Applied") == 1
    assert set(phases) <= {"Applied", "Superseded", "Failed"}
    return True


async def apply_now(service: Optimizer, score_name: str) -> None:
    plan = await service.plan(request(score_name))
    assert isinstance(plan, Plan)
    outcome = await service.apply(plan)
    assert isinstance(outcome, Applied), outcome
    assert outcome.failed == ()
