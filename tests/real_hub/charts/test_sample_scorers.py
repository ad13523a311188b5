"""The chart of the sample scorers: installed, its Pods run as processes, tested, and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from ..guides.cluster_network import ClusterNetwork
from ..guides.kubelet import Kubelet
from ..harness.helm import CHARTS, HelmFailed, helm, helm_test, install_chart, installed

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.hub import Hub

CHART = "sample-scorers"
NETWORK = 201
"""Number of a network on loopback that no other test of this hub uses."""
MODEL: Object = {
    "args": ["--fallback"],
    "extraEnv": [
        {"name": "VLLM_ENDPOINT", "value": "http://127.0.0.1:1/v1"},
        {"name": "MODEL_NAME", "value": "none"},
    ],
}
"""A model whose server does not answer: its scorer falls back to a statistic."""


def test_all_scorers_are_installed_tested_and_removed(hub: Hub, namespace: str) -> None:
    scorers = yaml.safe_load((CHARTS / CHART / "values.yaml").read_text())["scorers"]
    enabled = {name: {"enabled": True} for name in scorers}
    enabled["llm-forecast-scorer"] |= MODEL
    install_chart(hub, CHARTS / CHART, namespace, values={"scorers": enabled})
    kubelet = Kubelet(hub, ClusterNetwork(hub, NETWORK), namespace)
    kubelet.sync()
    helm_test(hub, CHART, namespace, kubelet.run_pods)

    with pytest.raises(HelmFailed, match=f"belongs to the release {CHART} in the namespace"):
        helm(hub, "install", "second", str(CHARTS / CHART), f"--namespace={namespace}")

    codes = {name: kubelet.stop(namespace, name) for name in scorers}
    assert codes == dict.fromkeys(scorers, 0)
    with pytest.raises(HelmFailed, match="ai-workload-scorer-test failed"):
        helm_test(hub, CHART, namespace, kubelet.run_pods)

    objects = installed(hub, CHART, namespace)
    helm(hub, "uninstall", CHART, f"--namespace={namespace}")
    for obj in objects:
        hub.api.wait_gone(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], namespace)
