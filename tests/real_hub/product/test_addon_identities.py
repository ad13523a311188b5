"""The identities that OCM signs for both add-ons: what the hub refuses them, from its audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..harness.api import Api, ApiError
from .conftest import AGENT_NAMESPACE, WATCHER, wait_deployed
from .rights import FORBIDDEN, Right, resource_events, right_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

CORE = "dynamic-scoring-framework"
ADDON_API = "addon.open-cluster-management.io/v1alpha1"
DEPLOYMENTS = {CORE: "dynamic-scoring-agent", WATCHER: WATCHER}
SCORES = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
LISTED = (
    (("v1", "Secret"), "east"),
    (("v1", "ConfigMap"), "open-cluster-management"),
    (("work.open-cluster-management.io/v1", "ManifestWork"), "east"),
    ((ADDON_API, "ManagedClusterAddOn"), "east"),
    (("policy.open-cluster-management.io/v1", "Policy"), "east"),
    (("cluster.open-cluster-management.io/v1", "ManagedCluster"), ""),
    (SCORES, "west"),
    (SCORES, "east"),
)
ALLOWED = {CORE: {SCORES}, WATCHER: set()}
"""What each may list. The group of the agents of all clusters has the right in every cluster's
namespace where the add-on is installed."""


@pytest.fixture(params=[CORE, WATCHER])
def addon(request: pytest.FixtureRequest, framework: str, watchers: object) -> str:
    return str(request.param)


@pytest.fixture
def as_addon(hub: Hub, east: ManagedCluster, addon: str) -> Iterator[Api]:
    """The hub, as the add-on of east may use it."""
    wait_deployed(hub, east, addon, DEPLOYMENTS[addon])
    folder = east.mount_secret(AGENT_NAMESPACE, f"{addon}-hub-kubeconfig")
    api = Api.from_kubeconfig(folder / "kubeconfig")
    yield api
    api.close()


def test_the_hub_refuses_all_but_what_the_addon_needs(hub: Hub, addon: str, as_addon: Api) -> None:
    for kind, namespace in LISTED:
        if kind in ALLOWED[addon]:
            assert as_addon.list(*kind, namespace) is not None
        else:
            with pytest.raises(ApiError, match="403 Forbidden"):
                as_addon.list(*kind, namespace)
    user = f"system:open-cluster-management:cluster:east:addon:{addon}:agent:{addon}-agent"
    logged = {
        right_of(event["objectRef"], event["verb"])
        for event in resource_events(hub.audited(user))
        if event["responseStatus"]["code"] == FORBIDDEN
    }
    assert logged >= {
        Right("", "secrets", "list"),
        Right("", "configmaps", "list"),
        Right("work.open-cluster-management.io", "manifestworks", "list"),
        Right("policy.open-cluster-management.io", "policies", "list"),
        Right("cluster.open-cluster-management.io", "managedclusters", "list"),
    }
