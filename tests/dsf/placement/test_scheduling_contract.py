"""What Placements select, decided by the simulated controller and, where given, by OCM's own."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dsf.kube.client.connect import connect
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import Kube
from dsf.sim.simulation import Simulation
from tests.dsf.placement.scheduling_contract import (
    CASES,
    FOLLOWED,
    Settle,
    decide_every_case,
    expected,
    follow_a_cluster,
)
from tests.dsf.sim.builders import NOW
from tests.eventually import eventually

REAL = os.environ.get("DSF_CONTRACT_KUBECONFIG")


@pytest.fixture(params=["simulated", *(["ocm"] if REAL else [])])
async def decided(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Kube, Settle]]:
    """A hub with a placement controller, and how its decisions are waited for."""
    async with AsyncExitStack() as stack:
        if request.param == "ocm":
            yield await stack.enter_async_context(connect(Path(str(REAL)))), _wait
            return
        hub = EmbeddedHub(now=lambda: NOW)
        simulation = Simulation(hub, {}, now=lambda: NOW)

        async def settle(_: Callable[[], Awaitable[bool]]) -> None:
            await simulation.settle()

        yield hub, settle


async def _wait(condition: Callable[[], Awaitable[bool]]) -> None:
    await eventually(condition, every=0.2)


async def test_placements_select_what_ocm_selects(decided: tuple[Kube, Settle]) -> None:
    kube, settle = decided
    assert await decide_every_case(kube, settle) == {case.name: expected(case) for case in CASES}
    assert await follow_a_cluster(kube, settle) == FOLLOWED
