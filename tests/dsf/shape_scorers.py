"""Scorers whose results have different labels: of a cluster, a node, an app, a device.

A program: `python -m tests.dsf.shape_scorers PORT`, whose first cluster is east. Each scorer tells
the managed clusters apart by the header of the agent's call.
"""

import asyncio
import sys
from typing import Any

from aiohttp import web

from tests.dsf.scorer_kit.scorers import Respond, TestApi, served

Json = dict[str, Any]
Values = dict[tuple[str, ...], tuple[int, int]]

FORMATS: dict[str, tuple[str, Values]] = {
    "of-cluster": ("${cluster}", {(): (20, 70)}),
    "of-node": ("${node}", {("n1",): (90, 60), ("n2",): (5, 60)}),
    "of-app": ("${app}", {("app01",): (10, 30), ("app02",): (90, 0)}),
    "of-device": ("${device}", {("3g.48gb",): (40, 50), ("2g.24gb",): (80, 10)}),
}
"""By score: its dimension format, and by label the values on the first and on the other cluster."""

WANTED = {
    "of-cluster": (1, 70, "{cluster}"),
    "of-node": (0, 90, "n1 (the highest of 2)"),
    "of-app": (1, 30, "app01"),
    "of-device": (0, 80, "2g.24gb"),
}
"""By score: on which of the two clusters app01 has the most, its value there and the entry."""


def scorer_spec(score: str, url: str) -> Json:
    """The spec of the DynamicScorer of a score."""
    return {
        "description": score,
        "configURL": f"{url}/{score}/config",
        "scoreDimensionFormat": FORMATS[score][0],
    }


def _config(path: str) -> Json:
    score = path.strip("/")
    return {
        "name": score,
        "source": {"type": "None"},
        "scoring": {"path": f"{path}/scoring", "params": {"name": score, "interval": 1}},
    }


def _responding(score: str, first: str) -> Respond:
    async def respond(request: web.Request) -> web.StreamResponse:
        number = int(request.headers["Dynamic-Scoring-Cluster"] != first)
        form, values = FORMATS[score]
        label = form.strip("${}")
        results = [
            {"metric": dict(zip([label], names, strict=False)), "score": each[number]}
            for names, each in values.items()
        ]
        return web.json_response({"results": results})

    return respond


def shape_apis(first: str) -> dict[str, TestApi]:
    """The scoring APIs; `first`: the managed cluster that has the first of the values."""
    return {score: TestApi(_responding(score, first), _config) for score in FORMATS}


async def _serve(port: int) -> None:
    async with served(shape_apis("east"), port=port):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
