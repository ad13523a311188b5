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

CORE, HUB = "dynamic-scoring-framework", "open-cluster-management"
ADDON_API = "addon.open-cluster-management.io/v1alpha1"
DEPLOYMENTS = {CORE: "dynamic-scoring-agent", WATCHER: WATCHER}
SCORES = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
SCORERS = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer")
SECRETS = ("v1", "Secret")
WORKS = ("work.open-cluster-management.io/v1", "ManifestWork")
ADDONS = (ADDON_API, "ManagedClusterAddOn")
POLICIES = ("policy.open-cluster-management.io/v1", "Policy")
CLUSTERS = ("cluster.open-cluster-management.io/v1", "ManagedCluster")
NOBODY: set[str] = set()
ATTEMPTS = (
    ("list", SCORES, "east", {CORE}),
    ("list", SCORES, "west", {CORE}),
    ("create", SCORES, "east", {CORE}),
    ("list", SCORERS, HUB, NOBODY),
    ("create", SCORERS, HUB, NOBODY),
    ("list", SECRETS, HUB, NOBODY),
    ("list", SECRETS, "east", NOBODY),
    ("create", SECRETS, "east", NOBODY),
    ("list", ("v1", "ConfigMap"), HUB, NOBODY),
    ("list", WORKS, "east", NOBODY),
    ("create", WORKS, "east", NOBODY),
    ("list", ADDONS, "east", NOBODY),
    ("create", ADDONS, "east", NOBODY),
    ("list", POLICIES, "east", NOBODY),
    ("create", POLICIES, "east", NOBODY),
    ("list", CLUSTERS, "", NOBODY),
    ("create", CLUSTERS, "", NOBODY),
    ("create", ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), "", NOBODY),
)
"""Verb, kind, namespace, and the add-ons that may.

The agents of all clusters are in one group, which has its role in every cluster's namespace where
the add-on is installed. An admission policy refuses writes to other clusters: see test_install.py.
"""


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
    expected: dict[bool, set[tuple[Right, str]]] = {True: set(), False: set()}
    for verb, kind, namespace, allowed in ATTEMPTS:
        assert attempted(as_addon, verb, kind, namespace) == (addon in allowed), (verb, kind)
        group, _, _ = kind[0].rpartition("/")
        plural = as_addon.path(*kind, namespace).rpartition("/")[2]
        expected[addon in allowed].add((Right(group, plural, verb), namespace))
    user = f"system:open-cluster-management:cluster:east:addon:{addon}:agent:{addon}-agent"
    logged = {
        (right_of(event["objectRef"], event["verb"]), event["objectRef"].get("namespace", ""))
        for event in resource_events(hub.audited(user))
        if event["responseStatus"]["code"] == FORBIDDEN
    }
    assert logged >= expected[False]
    assert logged & expected[True] == set()


def attempted(api: Api, verb: str, kind: tuple[str, str], namespace: str) -> bool:
    """Try to list, or to create without effect; whether the hub has not refused it."""
    intruder = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "intruder"}}
    path = api.path(*kind, namespace)
    try:
        if verb == "list":
            api.request("GET", path)
        else:
            api.request("POST", path, intruder, params={"dryRun": "All"})
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        return False
    return True
