"""A hub that takes its time to list scores, so that planning takes longer than one report."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from dsf.kube.errors import Unreachable
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Kube
from tests.kube_wrappers.wrapper import Answer, Call, Wrapper

REPORT_SECONDS = 0.02
"""What tests set as the pause between two reports."""


class SlowScores(Wrapper):
    """Answers each list of scores after ten reports; a `broken` one can't be reached then."""

    def __init__(self, inner: Kube, *, broken: bool = False) -> None:
        super().__init__(inner)
        self._broken = broken

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        if call.kind == ADD_ON_PLACEMENT_SCORE:
            await asyncio.sleep(10 * REPORT_SECONDS)
            if self._broken:
                answering.close()
                raise Unreachable("connection refused")
        return await answering
