"""Scores of the last day that a Prometheus has recorded, and that Prometheus."""

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from dsf.kube.clock import utc_now


@dataclass(frozen=True)
class RecordedPast:
    """The values of a score by app and device, first those until an hour, then those after it."""

    name: str
    before: Mapping[tuple[str, str], int]
    after: Mapping[tuple[str, str], int]
    changes: int
    clusters: tuple[str, ...] = ("worker01", "worker02")
    hours: int = 24

    def score(self, _cluster: str, app: str, device: str, hour: int) -> float:
        """Return a score in an hour since the beginning."""
        return (self.before if hour < self.changes else self.after)[app, device]


GUIDE = {
    ("app01", "all"): 80,
    ("app02", "all"): 80,
    ("app01", "3g.48gb"): 60,
    ("app02", "3g.48gb"): 55,
    ("app01", "2g.24gb"): 10,
    ("app02", "2g.24gb"): 15,
}
"""Scores for performance of the development guide."""

SMALL = {**GUIDE, ("app01", "2g.24gb"): 90, ("app02", "2g.24gb"): 95}

PASTS = {"recorded": RecordedPast("example-performance-score", GUIDE, SMALL, changes=12)}
"""What was recorded of the fleets that have a Prometheus."""


@asynccontextmanager
async def prometheus(past: RecordedPast) -> AsyncIterator[str]:
    """Serve what was recorded until now, whatever else is asked; yields the URL."""
    begins = utc_now().timestamp() - past.hours * 3600

    async def answered(request: web.Request) -> web.Response:
        start, end, step = (float(request.query[name]) for name in ("start", "end", "step"))
        steps = range(math.floor((end - start) / step) + 1)
        times = [at for at in (start + number * step for number in steps) if at >= begins]
        result = [
            {
                "metric": {
                    "ds_cluster": cluster,
                    "ds_app": app,
                    "ds_device": device,
                    "ds_score_name": past.name,
                },
                "values": [
                    [at, f"{past.score(cluster, app, device, int((at - begins) // 3600))}"]
                    for at in times
                ],
            }
            for cluster in past.clusters
            for app, device in past.before
        ]
        data = {"resultType": "matrix", "result": result}
        return web.json_response({"status": "success", "data": data})

    app = web.Application()
    app.router.add_get("/api/v1/query_range", answered)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
