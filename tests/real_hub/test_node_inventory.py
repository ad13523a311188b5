"""The inventory of a managed cluster with a real scheduler, as `dsf agent --once` prints it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import yaml

from tests.eventually import until

from .harness.gpu_nodes import GPU, deployment, gpu_node, pod, pod_template
from .product.parts import DSF

if TYPE_CHECKING:
    from .harness.api import Object
    from .harness.hub import Hub
    from .harness.scheduled import ScheduledCluster

NAMESPACE = "default"
WORK = ("work.open-cluster-management.io/v1", "ManifestWork", "trainer")


def test_pods_are_those_of_the_manifest_work_that_ocm_applied(
    hub: Hub, gpus: ScheduledCluster
) -> None:
    gpus.add([gpu_node("small", 1), gpu_node("large", 4)])
    gpus.wait_schedulable("small", "large")
    gpus.add([pod("stranger", NAMESPACE, {GPU: "1"}, node="large")])
    manifest = deployment("trainer", NAMESPACE, 2, pod_template({GPU: "2", "cpu": "500m"}))
    hub.apply(
        {
            "apiVersion": WORK[0],
            "kind": WORK[1],
            "metadata": {"name": WORK[2], "namespace": gpus.name},
            "spec": {"workload": {"manifests": [manifest]}},
        }
    )
    found = until("one Pod to run and one to wait", lambda: settled(gpus))
    (work,) = [one for one in found["works"] if one["name"] == WORK[2]]
    assert work["requested"] == {"cpu": "1", GPU: "4", "pods": "2"}
    assert work["pendingReason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in work["pendingMessage"]
    nodes = {group["names"][0]: group for group in found["nodes"]}
    assert nodes["large"]["requested"] == {"cpu": "500m", GPU: "3", "pods": "2"}
    held = {"cpu": "500m", GPU: "2", "pods": "1"}
    assert nodes["large"]["works"] == [{"name": WORK[2], "requested": held}]
    assert found["largestFree"][GPU] == "1"
    assert found["conditions"][0]["reason"] == "Inventoried"
    hub.api.delete(*WORK, gpus.name)
    hub.api.wait_gone(*WORK, gpus.name)


def settled(cluster: ScheduledCluster) -> Object | None:
    """The inventory as `dsf agent --once` prints it, once a Pod is ready and one is refused."""
    words = ("agent", f"--cluster-name={cluster.name}", "--once", "--inventory")
    config = cluster.directory / "no-scorers.json"
    config.write_text("[]", encoding="utf-8")
    where = (f"--kubeconfig={cluster.admin_kubeconfig}", f"--summaries-file={config}")
    done = subprocess.run([*DSF, *words, *where], capture_output=True, text=True, check=True)
    status: Object = yaml.safe_load(done.stdout)["status"]
    counts = [(one["ready"], one["pending"], "pendingMessage" in one) for one in status["works"]]
    return status if (1, 1, True) in counts else None
