"""Releases of the charts 0.1.0, those of tests/earlier_release: upgraded, rolled back, upgraded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from ..harness.helm import CHARTS, HelmFailed, helm, install_chart
from .releases import CORE, OPTIMIZER, WATCHER, core_values, has_agents_of, upgrade

if TYPE_CHECKING:
    from ..harness.cluster import ManagedCluster
    from ..harness.control_plane import ControlPlane
    from ..harness.hub import Hub


def upgrade_keeping_values(plane: ControlPlane, chart: str, namespace: str) -> None:
    """Upgrade with the values of 0.1.0; the way that loses new defaults names the other."""
    with pytest.raises(HelmFailed, match="run helm upgrade with --reset-then-reuse-values"):
        upgrade(plane, chart, namespace, "--reuse-values")
    upgrade(plane, chart, namespace, "--reset-then-reuse-values")


def test_the_core_and_its_agents(hub: Hub, clusters: list[ManagedCluster], framework: str) -> None:
    values = core_values(hub)
    upgrade(hub, CORE, framework, values, earlier=True)
    until("the agents of 0.1.0", lambda: has_agents_of(clusters, earlier=True))
    upgrade_keeping_values(hub, CORE, framework)
    until("the agents of today", lambda: has_agents_of(clusters, earlier=False))
    helm(hub, "rollback", CORE, f"--namespace={framework}")
    until("the agents of 0.1.0 again", lambda: has_agents_of(clusters, earlier=True))
    upgrade(hub, CORE, framework, values)
    until("the agents of today again", lambda: has_agents_of(clusters, earlier=False))


def test_the_optimizer(hub: Hub, placement_plans: None, framework: str) -> None:
    upgrade(hub, OPTIMIZER, framework, "--set=mcp.allowWrites=true", earlier=True)
    upgrade_keeping_values(hub, OPTIMIZER, framework)
    deployment = hub.api.get("apps/v1", "Deployment", OPTIMIZER, framework)
    assert "--allow-writes" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    helm(hub, "rollback", OPTIMIZER, f"--namespace={framework}")
    install_chart(hub, CHARTS / OPTIMIZER, framework, values={"namespaces": []})


def test_the_watcher_of_one_cluster(east: ManagedCluster, policies: None) -> None:
    upgrade(east, WATCHER, "watching", "--set=clusterName=east,claimName=old", earlier=True)
    upgrade_keeping_values(east, WATCHER, "watching")
    assert east.api.find("rbac.authorization.k8s.io/v1", "Role", WATCHER, "east")
    helm(east, "rollback", WATCHER, "--namespace=watching")
    helm(east, "uninstall", WATCHER, "--namespace=watching")
