"""A hub controller and an agent of different releases, as processes, each with its own chart."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.earlier_release import code
from tests.eventually import until

from ..harness.api import condition_of
from ..product.conftest import AGENT_NAMESPACE, INVENTORY, wait_deployed
from ..product.parts import DSF, Part, run_program
from .releases import CORE, core_values, has_agents_of, upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.control_plane import ControlPlane
    from ..harness.hub import Hub

API = "dynamic-scoring.open-cluster-management.io/v1alpha1"
SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
SHIPPED = {
    "app01-all": 80,
    "app02-all": 80,
    "app01-3g.48gb": 60,
    "app02-3g.48gb": 55,
    "app01-2g.24gb": 10,
    "app02-2g.24gb": 15,
}
"""The table /performance of the static scorer, in the format that the scorer below asks for."""


@dataclass(frozen=True)
class Release:
    """A release of the framework; `entrypoint` stands for that of its image."""

    entrypoint: tuple[str, ...]
    earlier: bool = False


TODAY = Release(DSF)


@pytest.fixture(scope="module")
def earlier(hub: Hub) -> Release:
    """Release 0.1.0. The tests are skipped where the history lacks its code."""
    folder = hub.directory / "earlier"
    entrypoint = code.unpack(folder)
    python = entrypoint[:-2]
    words = [*python, "-c", "import dsf.agent, dsf.hub as hub; print(hub.__file__)"]
    assert subprocess.check_output(words, text=True).startswith(str(folder))
    return Release(entrypoint, earlier=True)


@pytest.fixture(scope="module")
def scoring_api(hub: Hub) -> Iterator[str]:
    """The URL of a static scorer."""
    words = ["-m", "sample_scorers.static", "--port"]
    yield run_program(hub, "static-of-skew", words, "/healthz")
    hub.processes.stop("static-of-skew")


@pytest.fixture
def fleet(hub: Hub, clusters: list[ManagedCluster], framework: str) -> Iterator[str]:
    """The hub's namespace of the framework, which has today's chart again in the end."""
    yield framework
    east = clusters[0].name
    hub.api.delete(*INVENTORY, east, east)  # expired, it would keep others' workloads away
    upgrade(hub, CORE, framework, core_values(hub))
    until("the agents of today", lambda: has_agents_of(clusters, earlier=False))


def test_a_hub_works_with_earlier_agents(
    hub: Hub, clusters: list[ManagedCluster], fleet: str, earlier: Release, scoring_api: str
) -> None:
    """Scorers without newer fields score as before; several sources need newer agents."""
    with running(hub, clusters, fleet, controller=TODAY, agent=earlier):
        with registered(hub, fleet, scorer("plain", scoring_api)):
            until("the scores of an earlier agent", lambda: scores(hub, "plain") == SHIPPED)
        with registered(hub, fleet, with_newer_fields(scorer("newer", scoring_api))):
            until("the scores without newer fields", lambda: scores(hub, "newer") == SHIPPED)
        with registered(hub, fleet, with_several_sources(scorer("several", scoring_api))):
            until("the earlier agent to say why", lambda: reason(hub, "several"))
            assert reason(hub, "several") == "UnsupportedSource"
            assert scores(hub, "several") == {}


def test_an_earlier_hub_works_with_agents(
    hub: Hub, clusters: list[ManagedCluster], fleet: str, earlier: Release, scoring_api: str
) -> None:
    """Its CRDs have no newer fields: the API server drops them, and the scorer scores without."""
    with (
        running(hub, clusters, fleet, controller=earlier, agent=TODAY),
        registered(hub, fleet, with_newer_fields(scorer("newer", scoring_api))) as stored,
    ):
        assert "scoreDimensionFormats" not in stored["spec"]
        until("the scores of a newer agent", lambda: scores(hub, "newer") == SHIPPED)


@contextmanager
def running(
    hub: Hub, clusters: list[ManagedCluster], namespace: str, *, controller: Release, agent: Release
) -> Iterator[None]:
    """An agent on east that was there first, and then a hub controller; each with its chart."""
    east = clusters[0]
    with (
        running_part(hub, clusters, namespace, agent, (east, AGENT_NAMESPACE, "agent")),
        running_part(hub, clusters, namespace, controller, (hub, namespace, "controller")),
    ):
        yield


@contextmanager
def running_part(
    hub: Hub,
    clusters: list[ManagedCluster],
    namespace: str,
    release: Release,
    part: tuple[ControlPlane, str, str],
) -> Iterator[None]:
    """A part of the framework, from its Deployment in the chart of a release."""
    values = core_values(hub, earlier=release.earlier)
    upgrade(hub, CORE, namespace, values, earlier=release.earlier)
    until("its agents", lambda: has_agents_of(clusters, earlier=release.earlier))
    wait_deployed(hub, clusters[0])
    plane, place, name = part
    port = plane.ports.free()
    arguments = (f"--metrics-bind-address=127.0.0.1:{port}",)
    deployment = f"dynamic-scoring-{name}"
    running = Part(plane, place, deployment, port, arguments, release.entrypoint)
    running.start()
    yield
    running.stop()


def scorer(name: str, scoring_api: str) -> Object:
    """A DynamicScorer with the fields of 0.1.0, scored every second."""
    spec = {
        "description": "the static scorer",
        "configURL": f"{scoring_api}/performance/config",
        "configSyncMode": "None",
        "source": {"type": "None"},
        "scoring": {
            "path": "/performance/scoring",
            "params": {"name": f"{name}_score", "interval": 1},
        },
        "scoreDimensionFormat": "${app}-${device}",
    }
    return {"apiVersion": API, "kind": "DynamicScorer", "metadata": {"name": name}, "spec": spec}


def with_newer_fields(obj: Object) -> Object:
    """A DynamicScorer with fields that 0.1.0 does not know, and that a score does not need."""
    scoring = obj["spec"]["scoring"]
    more = {
        **scoring,
        "params": {**scoring["params"], "model": "linear"},
        "defaultScore": {"value": 1, "entries": ["app01-all"]},
    }
    return {**obj, "spec": {**obj["spec"], "scoring": more, "scoreDimensionFormats": ["${app}"]}}


def with_several_sources(obj: Object) -> Object:
    """A DynamicScorer with two sources, which 0.1.0 does not know."""
    sources = [
        {"name": name, "type": "Prometheus", "host": "http://a.example", "params": {"query": "up"}}
        for name in ("cost", "power")
    ]
    spec = {name: value for name, value in obj["spec"].items() if name != "source"}
    return {**obj, "spec": {**spec, "sources": sources}}


@contextmanager
def registered(hub: Hub, namespace: str, obj: Object) -> Iterator[Object]:
    """A DynamicScorer, and the DynamicScoringConfig; in the end its scores are gone, too."""
    metadata = {**obj["metadata"], "namespace": namespace}
    config = {"name": "dynamic-scoring-config", "namespace": namespace}
    hub.apply({"apiVersion": API, "kind": "DynamicScoringConfig", "metadata": config, "spec": {}})
    stored = hub.api.create({**obj, "metadata": metadata})
    yield stored
    hub.api.delete(API, "DynamicScorer", metadata["name"], namespace)
    until("its scores to be deleted", lambda: score(hub, metadata["name"]) is None)


def score(hub: Hub, name: str) -> Object | None:
    """The AddOnPlacementScore of a scorer on east."""
    return hub.api.find(*SCORE, f"{name}-score", "east")


def scores(hub: Hub, name: str) -> dict[str, int]:
    """What the agent on east has published for a scorer."""
    status = (score(hub, name) or {}).get("status", {})
    return {entry["name"]: entry["value"] for entry in status.get("scores", [])}


def reason(hub: Hub, name: str) -> str:
    """Why the agent on east has no series for a scorer; empty if it has not said so."""
    return str(condition_of(score(hub, name) or {}, "SourceFetched").get("reason", ""))
