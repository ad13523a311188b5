"""Scores from objects of a managed cluster, with the rights that the chart gives the agent."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.dsf.agent.fetch.test_kubernetes_source import METRICS
from tests.eventually import until

from ..harness.api import Api, ApiError
from .node_metrics import SCORER, refusal, scorer

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub


def test_nodes_are_scored_where_neither_prometheus_nor_otlp_is(
    nodes_scored: list[dict[str, int]],
) -> None:
    assert nodes_scored == [{"n1": 2, "n2": 7}, {"n1": 9, "n2": 7}]


def test_the_agent_is_told_which_right_it_lacks(
    hub: Hub, framework: str, scored: dict[object, Object]
) -> None:
    hub.apply(scorer(hub, framework, "pods"))
    condition = until("the condition", lambda: refusal(hub, "pods", "east"))
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
                ("GET", "/api/v1/services"),
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
