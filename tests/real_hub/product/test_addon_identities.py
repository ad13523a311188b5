"""The identities that OCM signs for both add-ons: what the hub refuses them, from its audit log."""

from __future__ import annotations

import base64
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.charts.rendering import render

from ..harness.api import Api, ApiError
from .conftest import AGENT_NAMESPACE, WATCHER, wait_deployed
from .rights import FORBIDDEN, Right, resource_events, right_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

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


def test_helm_test_asks_ocm_whether_the_watcher_is_available(
    hub: Hub, watchers: dict[str, Part], tmp_path: Path
) -> None:
    """The Pod of `helm test` as a process, with the account that helm would create for it."""
    objects = {obj["kind"]: obj for obj in render(WATCHER, {}, namespace=WATCHER) if is_hook(obj)}
    pod = objects.pop("Pod")
    for obj in objects.values():
        hub.apply(obj)
    (tmp_path / "token").write_text(hub.token(f"{WATCHER}/policy-watcher-test"))
    config = yaml.safe_load(hub.admin_kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = base64.b64decode(config["certificate-authority-data"])
    (tmp_path / "ca.crt").write_bytes(authority)
    for cluster in watchers:
        hub.api.wait_condition(ADDON_API, "ManagedClusterAddOn", WATCHER, "Available", cluster)
    script = pod["spec"]["containers"][0]["args"][0]
    command = [sys.executable, "-c", script, config["server"], str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "2 managed clusters have the add-on; not available on: []\n"
    for obj in objects.values():
        metadata = obj["metadata"]
        kind = (obj["apiVersion"], obj["kind"])
        hub.api.delete(*kind, metadata["name"], metadata.get("namespace", ""))


def is_hook(obj: Object) -> bool:
    return "helm.sh/hook" in obj["metadata"].get("annotations", {})


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
