"""Scores from objects of a managed cluster, with the rights that the chart gives the agent.

A CustomResourceDefinition stands for the aggregated API of metrics-server, which needs kubelets:
the same path, and objects of the same form.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.dsf.agent.fetch.test_kubernetes_source import METRICS, definition
from tests.eventually import until

from ..harness.api import Api, ApiError
from .conftest import SCORE

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

SCORER = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer")
NODES = {"apiVersion": METRICS.api_version, "resource": METRICS.plural}


def usage(name: str, cpu: str) -> Object:
    """What metrics-server says of a node."""
    head = {"apiVersion": METRICS.api_version, "kind": METRICS.kind, "metadata": {"name": name}}
    return {**head, "usage": {"cpu": cpu, "memory": "512Mi"}}


def scorer(hub: Hub, framework: str, resource: str) -> Object:
    """A scorer of objects, at the API of the sample: each score is the mean of its samples."""
    sample = hub.api.get(*SCORER, "sample-scorer", framework)["spec"]
    values = {"cpu": ".usage.cpu"}
    objects = {
        **NODES,
        "resource": resource,
        "values": values,
        "labels": {"node": ".metadata.name"},
    }
    return {
        "apiVersion": SCORER[0],
        "kind": SCORER[1],
        "metadata": {"name": f"of-{resource}", "namespace": framework},
        "spec": {
            "description": "CPU cores in use",
            "configURL": sample["configURL"],
            "configSyncMode": "None",
            "source": {"type": "Kubernetes", "kubernetes": objects},
            "scoring": {"params": {"name": f"used_{resource}", "interval": 1}},
            "scoreDimensionFormat": "${node}",
        },
    }


def test_nodes_are_scored_where_neither_prometheus_nor_otlp_is(
    hub: Hub, east: ManagedCluster, framework: str, scored: dict[object, Object]
) -> None:
    east.apply(definition(METRICS))
    until("the stand-in to be served", lambda: applied(east, usage("n1", "2500m")))
    east.apply(usage("n2", "7900000000n"))
    hub.apply(scorer(hub, framework, "nodes"))
    until("the scores of the nodes", lambda: entries(hub, "nodes") == {"n1": 2, "n2": 7})
    east.apply(usage("n1", "9"))
    until("the new score", lambda: entries(hub, "nodes").get("n1") == 9)
    hub.api.delete(*SCORER, "of-nodes", framework)


def test_the_agent_is_told_which_right_it_lacks(
    hub: Hub, framework: str, scored: dict[object, Object]
) -> None:
    hub.apply(scorer(hub, framework, "pods"))
    condition = until("the condition", lambda: refusal(hub, "pods"))
    assert condition["reason"] == "Forbidden"
    assert '{apiGroup: "metrics.k8s.io", resource: pods}' in condition["message"]
    assert "spokeSetting.agent.readableResources" in condition["message"]
    hub.api.delete(*SCORER, "of-pods", framework)


@pytest.mark.usefixtures("agents")
def test_the_agent_may_list_what_is_named_and_do_nothing_else_with_it(east: ManagedCluster) -> None:
    account = east.kubeconfig(service_account="dynamic-scoring/dynamic-scoring-agent-sa")
    with closing(Api.from_kubeconfig(account)) as agent:
        until("the right", lambda: asked(agent, "GET", METRICS.path()) in (200, 404))
        refused = {
            f"{verb} {path}": asked(agent, verb, path)
            for verb, path in (
                ("GET", METRICS.path(None, "n1")),
                ("GET", f"{METRICS.path()}?watch=true"),
                ("DELETE", METRICS.path()),
                ("GET", "/apis/metrics.k8s.io/v1beta1/pods"),
                ("GET", "/api/v1/nodes"),
            )
        }
    assert set(refused.values()) == {403}, refused


def asked(agent: Api, method: str, path: str) -> int:
    """The status of an answer."""
    try:
        agent.request(method, path)
    except ApiError as error:
        return error.status
    return 200


def applied(cluster: ManagedCluster, obj: Object) -> bool:
    """Whether an object could be applied."""
    try:
        cluster.apply(obj)
    except ApiError:
        return False
    return True


def status(hub: Hub, resource: str) -> Object:
    """The status of the score of objects on east."""
    found: Object = (hub.api.find(*SCORE, f"used-{resource}", "east") or {}).get("status") or {}
    return found


def entries(hub: Hub, resource: str) -> dict[str, int]:
    """The values of the score by node."""
    return {each["name"]: each["value"] for each in status(hub, resource).get("scores") or []}


def refusal(hub: Hub, resource: str) -> Object | None:
    """Why the source of the score could not be read, once that is so."""
    conditions = status(hub, resource).get("conditions") or []
    named = (one for one in conditions if one["type"] == "SourceFetched")
    return next((one for one in named if one["status"] == "False"), None)
