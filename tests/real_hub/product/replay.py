"""A program: a Prometheus that replays a recording endlessly. ``python replay.py PORT``."""

from __future__ import annotations

import asyncio
import sys

from dsf.scorer_kit.prometheus_replay import RecordedSeries, Recording, Repeated, replaying
from sample_scorers.scoring_service.wire import CPU_CORES_BY_POD

CORES = 0.127
SERIES = RecordedSeries({"node": "n1", "namespace": "shop", "pod": "cart"}, (CORES,))


async def serve(port: int) -> None:
    """Serve until a signal ends the process."""
    recording = Recording(60, {CPU_CORES_BY_POD: (SERIES,)})
    async with replaying(Repeated(recording), port=port):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
