"""The identity that OCM signs for the agent: what the hub refuses it, from its audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..harness.api import Api, ApiError
from .conftest import AGENT_NAMESPACE, wait_deployed
from .rights import FORBIDDEN, Right, resource_events, right_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

CORE, HUB = "dynamic-scoring-framework", "open-cluster-management"
ADDON_API = "addon.open-cluster-management.io/v1alpha1"
SCORES = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
SCORERS = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer")
SECRETS = ("v1", "Secret")
WORKS = ("work.open-cluster-management.io/v1", "ManifestWork")
ADDONS = (ADDON_API, "ManagedClusterAddOn")
POLICIES = ("policy.open-cluster-management.io/v1", "Policy")
CLUSTERS = ("cluster.open-cluster-management.io/v1", "ManagedCluster")
ATTEMPTS = (
    ("list", SCORES, "east", True),
    ("list", SCORES, "west", True),
    ("create", SCORES, "east", True),
    ("list", SCORERS, HUB, False),
    ("create", SCORERS, HUB, False),
    ("list", SECRETS, HUB, False),
    ("list", SECRETS, "east", False),
    ("create", SECRETS, "east", False),
    ("list", ("v1", "ConfigMap"), HUB, False),
    ("list", WORKS, "east", False),
    ("create", WORKS, "east", False),
    ("list", ADDONS, "east", False),
    ("create", ADDONS, "east", False),
    ("list", POLICIES, "east", False),
    ("create", POLICIES, "east", False),
    ("list", CLUSTERS, "", False),
    ("create", CLUSTERS, "", False),
    ("create", ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), "", False),
)
"""Verb, kind, namespace, and whether the agent may.

The agents of all clusters are in one group, which has its role in every cluster's namespace where
the add-on is installed. An admission policy refuses writes to other clusters: see test_install.py.
"""


@pytest.fixture
def as_agent(hub: Hub, east: ManagedCluster, framework: str) -> Iterator[Api]:
    """The hub, as the agent of east may use it."""
    wait_deployed(hub, east)
    folder = east.mount_secret(AGENT_NAMESPACE, f"{CORE}-hub-kubeconfig")
    api = Api.from_kubeconfig(folder / "kubeconfig")
    yield api
    api.close()


def test_the_hub_refuses_all_but_what_the_agent_needs(hub: Hub, as_agent: Api) -> None:
    expected: dict[bool, set[tuple[Right, str]]] = {True: set(), False: set()}
    for verb, kind, namespace, allowed in ATTEMPTS:
        assert attempted(as_agent, verb, kind, namespace) == allowed, (verb, kind)
        group, _, _ = kind[0].rpartition("/")
        plural = as_agent.path(*kind, namespace).rpartition("/")[2]
        expected[allowed].add((Right(group, plural, verb), namespace))
    user = f"system:open-cluster-management:cluster:east:addon:{CORE}:agent:{CORE}-agent"
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
