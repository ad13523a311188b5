"""What the steps of every demo do: ask the optimizer, wait for the hub, say what to try next."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from dsf.sim.demo.processes import DemoError
from dsf.sim.demo.running_demo import RunningDemo

POLL_SECONDS = 0.1
"""Seconds between two looks at the hub."""

STAY_SECONDS = 1.0
"""Seconds between two looks at a demo that stays up."""

STEP_SECONDS = 120.0
"""Seconds that one step may take: far above what a busy machine needs."""


async def until(demo: RunningDemo, reached: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until something is reached; raise DemoError after STEP_SECONDS, saying `what`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + STEP_SECONDS
    while not await reached():
        demo.processes.check()
        if loop.time() > deadline:
            raise DemoError(f"waited {STEP_SECONDS:g} s for {what}; see the log files named above")
        await asyncio.sleep(POLL_SECONDS)


async def get(demo: RunningDemo, path: str) -> dict[str, Any]:
    """Return the optimizer's answer; raise DemoError unless it is a success."""
    return await _call(demo, "GET", path)


async def post(demo: RunningDemo, path: str, body: Any) -> dict[str, Any]:
    """Return the optimizer's answer; raise DemoError unless it is a success."""
    return await _call(demo, "POST", path, json=body)


async def _call(demo: RunningDemo, method: str, path: str, **body: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=STEP_SECONDS) as client:
        try:
            response = await client.request(method, demo.optimizer_url + path, **body)
        except httpx.HTTPError as error:
            raise DemoError(f"{method} {path}: {type(error).__name__}: {error}") from error
    if not response.is_success:
        raise DemoError(f"{method} {path} answered {response.status_code}: {response.text}")
    answer: dict[str, Any] = response.json()
    return answer


def what_next(demo: RunningDemo, keeping: str) -> None:
    """Tell how to look around; `keeping` is the command that keeps it all up, empty if it stays."""
    output, hub = demo.output, demo.clusters.hub
    output.step("What to try next")
    if keeping:
        output.note(f"with {keeping} all of it stays up; then:")
    output.note(f"the API docs: {demo.optimizer_url}/docs")
    output.note(
        f"the hub: kubectl --kubeconfig {hub.kubeconfig} get dynamicscorers,addonplacementscores -A"
    )
    for cluster in demo.clusters.managed:
        output.note(
            f"{cluster.name}: kubectl --kubeconfig {cluster.kubeconfig} get nodes,configmaps -A"
        )


async def stay(
    demo: RunningDemo, work: Callable[[RunningDemo], Awaitable[None]] | None = None
) -> None:
    """Keep everything up until cancelled, and do `work` again and again."""
    demo.output.note("everything stays up; Ctrl-C ends it")
    while True:
        demo.processes.check()
        if work is not None:
            await work(demo)
        await asyncio.sleep(STAY_SECONDS)
