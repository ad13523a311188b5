"""The setup of `dsf demo`: the development guide's scenario on a recording of a real machine."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path

from dsf.kube.port import Object
from dsf.sim.demo.demo_setup import DemoSetup
from dsf.sim.demo.hardware import HARDWARE, THROUGHPUT_QUERY
from dsf.sim.demo.scorers import scorers, throughput_scorer
from dsf.sim.prometheus_replay import Recording, replaying

CLUSTER_SHIFT = 60
"""Steps of the recording between two clusters, so that their scores differ."""


def scenario() -> Path:
    """Return the folder with the development guide's manifests and request."""
    return Path(str(resources.files("dsf.sim") / "scenario"))


@asynccontextmanager
async def _prometheus() -> AsyncIterator[Mapping[str, str]]:
    recording = Recording.load(Path(str(resources.files("dsf.sim") / "recording.json")))
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(
                replaying(
                    replace(
                        recording,
                        queries={**recording.queries, THROUGHPUT_QUERY: hardware.series()},
                    ),
                    labels={"node": f"{name}-control-plane"},
                    shift=index * CLUSTER_SHIFT,
                )
            )
            for index, (name, hardware) in enumerate(HARDWARE.items())
        }


def _registered(urls: Mapping[str, str]) -> list[Object]:
    return [*scorers(urls["sample"], urls["static"]), throughput_scorer(urls["sample"])]


GUIDE = DemoSetup(
    title="A hub and two managed clusters, in memory and over HTTP",
    cluster_labels={name: hardware.labels() for name, hardware in HARDWARE.items()},
    scorers={"sample": (), "static": ()},
    registered=_registered,
    prometheus=_prometheus,
)
