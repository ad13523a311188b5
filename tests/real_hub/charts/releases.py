"""Releases of our charts: today's from the working copy, the earlier one from its packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from tests.earlier_release import charts as earlier_charts

from ..harness.helm import CHARTS, helm

if TYPE_CHECKING:
    from ..harness.cluster import ManagedCluster
    from ..harness.control_plane import ControlPlane

CORE, OPTIMIZER, WATCHER, SAMPLES = (
    "dynamic-scoring-framework",
    "dynamic-scoring-optimizer",
    "policy-watcher",
    "sample-scorers",
)
AGENT = ("apps/v1", "Deployment", "dynamic-scoring-agent", "dynamic-scoring")


def upgrade(
    plane: ControlPlane, chart: str, namespace: str, *words: str, earlier: bool = False
) -> str:
    """Install or upgrade a chart as the release of its name, and return helm's output.

    Raises HelmFailed.
    """
    source = earlier_charts.package(chart) if earlier else CHARTS / chart
    given = ("upgrade", "--install", chart, str(source), f"--namespace={namespace}", *words)
    return helm(plane, *given, "--create-namespace")


def core_values(hub: ControlPlane, *, earlier: bool = False) -> str:
    """The option with the values that the core has in these tests; 0.1.0 takes not all of them."""
    path = hub.directory / f"{CORE}-values.yaml"
    if earlier:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        for later in ("inventory", "readableResources"):
            del values["spokeSetting"]["agent"][later]
        path = path.with_name(f"{CORE}-earlier-values.yaml")
        path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return f"--values={path}"


def has_agents_of(clusters: list[ManagedCluster], *, earlier: bool) -> bool:
    """Whether OCM has deployed the agent of that release on every cluster.

    The agent has a startup probe since the release after 0.1.0.
    """
    agents = (cluster.api.find(*AGENT) for cluster in clusters)
    return all(
        agent is not None
        and ("startupProbe" in agent["spec"]["template"]["spec"]["containers"][0]) is not earlier
        for agent in agents
    )
