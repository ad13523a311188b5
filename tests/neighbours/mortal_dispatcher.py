"""Runs a dispatcher that SIGKILL ends at its first write: ``KUBECONFIG before`` or ``after``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsf.hub.dispatch.dispatcher import Dispatcher, DispatcherOptions
from dsf.hub.dispatch.queue_pass import NominationSettings
from dsf.kube.client.connect import connect
from tests.kube_wrappers.wrapper import WRITES, Answer, Call, Wrapper

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from dsf.kube.kinds import Kind
    from dsf.kube.port import Object, StatusApplier


class Mortal(Wrapper):
    """Kills its process at the first write: before it is sent, or after its answer."""

    def __init__(self, inner: StatusApplier, moment: str) -> None:
        super().__init__(inner)
        self._applier, self._moment = inner, moment

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        """Return the answer to what is no write."""
        if call.verb not in WRITES:
            return await answering
        if self._moment == "after":
            await answering
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("killed")

    async def apply_status(self, kind: Kind, obj: Mapping[str, Any], *, manager: str) -> Object:
        """Apply a status, which is a write."""
        call = self._called("patch", kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
        applied = self._applier.apply_status(kind, obj, manager=manager)
        return await self._answered(call, applied)


async def run(kubeconfig: str, moment: str) -> None:
    """Nominate one cluster for each Workload, and no other one within an hour."""
    options = DispatcherOptions(NominationSettings(1, 3600.0), resync_seconds=1.0)
    async with connect(Path(kubeconfig)) as kube:
        await Dispatcher(Mortal(kube, moment), options).run()


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
