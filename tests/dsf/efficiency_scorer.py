"""A scorer that joins two sources: the utilization of each node's GPUs for the money of its power.

It refuses unknown fields and parameters, as a strict scorer may.
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from aiohttp import web

Json = dict[str, Any]
SCORE = "efficiency"
PARAMS = {"price": 0.025, "model": "linear"}


def config(path: str, sources: Sequence[Json]) -> Json:
    return {
        "name": "efficiency-scorer",
        "description": "Utilization for a unit of money",
        "sources": list(sources),
        "scoring": {
            "path": f"{path}/scoring",
            "params": {"name": SCORE, "interval": 1, **PARAMS},
            "defaultScore": {"value": -100},
        },
    }


def source(name: str, host: str) -> Json:
    return {"name": name, "host": host, "params": {"query": f"avg by (node) ({name})", "range": 60}}


def latest(data: list[Json]) -> dict[tuple[str, str], float]:
    """Return the latest finite sample by node and source; raises KeyError, ValueError."""
    found = {}
    for series in data:
        metric = series["metric"]
        finite = [value for _, text in series["values"] if math.isfinite(value := float(text))]
        if finite:
            found[metric["node"], metric["__source__"]] = finite[-1]
    return found


def results(body: Json) -> Iterator[Json]:
    """Yield a score for each node; raises KeyError, ValueError for another body."""
    if body.keys() != {"data", "params"} or body["params"] != PARAMS:
        raise ValueError("unknown fields")
    values = latest(body["data"])
    for node in sorted({node for node, _ in values}):
        used, watts = values.get((node, "gpu")), values.get((node, "power"))
        if used is not None and watts:
            yield {"metric": {"node": node}, "score": used / (watts * body["params"]["price"])}


async def respond(request: web.Request) -> web.StreamResponse:
    """Answer a scoring call with the score of each node, and the best of them for the cluster."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    try:
        of_nodes = list(results(json.loads(await request.read())))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise web.HTTPUnprocessableEntity(text=f"not a scoring request: {error}") from error
    best = max((one["score"] for one in of_nodes), default=None)
    of_cluster = [] if best is None else [{"metric": {}, "score": best}]
    return web.json_response({"results": [*of_cluster, *of_nodes]})
