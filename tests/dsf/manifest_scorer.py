"""A scorer without a source and without a table: it scores each app on each device that it is told.

It refuses unknown fields of the body, as a strict scorer may.
"""

import json
from typing import Any

from aiohttp import web

Json = dict[str, Any]
CONTEXT = {
    "cluster": True,
    "labels": ["price"],
    "workloads": {"fields": ["replicas"]},
    "devices": True,
}
SLICES = {"all": 7}
"""Compute slices of devices whose names do not begin with the number."""


def config(path: str, **context: Any) -> Json:
    return {
        "name": "manifest-scorer",
        "description": "Compute slices for each app, less the price of the managed cluster",
        "source": {"type": "None"},
        "scoring": {"path": f"{path}/scoring", "params": {"name": "slices", "interval": 1}},
        "context": {**CONTEXT, **context},
    }


def results(body: Json) -> list[Json]:
    """Return a score for each app and device; raises KeyError and ValueError for another body."""
    if body.keys() != {"data", "context"} or body["data"]:
        raise ValueError("unknown fields")
    context = body["context"]
    price = float(context["labels"].get("price", 0))
    return [
        {
            "metric": {"app": workload["app"], "device": device},
            "score": 10 * (SLICES.get(device) or int(device[0])) - price - workload["priority"],
        }
        for workload in context["workloads"]
        for device in sorted({each["device"] for each in context["devices"]})
    ]


async def respond(request: web.Request) -> web.StreamResponse:
    """Answer a scoring call, if its headers say who asks and its body what is to be scored."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    try:
        body = json.loads(await request.read())
        if body["context"]["cluster"] != request.headers["Dynamic-Scoring-Cluster"]:
            raise web.HTTPUnprocessableEntity(text="another managed cluster asks")
        return web.json_response({"results": results(body)})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise web.HTTPUnprocessableEntity(text="not a scoring request") from error
