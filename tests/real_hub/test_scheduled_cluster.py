"""A managed cluster whose Pods run: what its scheduler, its nodes and its GPU operator do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from tests.eventually import until

from .harness.api import condition_of
from .harness.gpu_nodes import (
    GPU,
    claim_template,
    deployment,
    gpu_node,
    mig_claim_template,
    mig_resource,
    pod,
    pod_template,
    resource_slices,
)
from .harness.gpu_operator import LAYOUTS, STATE, WANTED, gpu_operator

if TYPE_CHECKING:
    from .harness.api import Object
    from .harness.hub import Hub
    from .harness.scheduled import ScheduledCluster

NAMESPACE = "default"
WORK = "work.open-cluster-management.io/v1"


def found(cluster: ScheduledCluster, name: str) -> Object:
    return cluster.api.get("v1", "Pod", name, NAMESPACE)


def wait_running(cluster: ScheduledCluster, *names: str) -> None:
    for name in names:
        cluster.api.wait_condition("v1", "Pod", name, "Ready", NAMESPACE)
        assert found(cluster, name)["status"]["phase"] == "Running"


def wait_unschedulable(cluster: ScheduledCluster, name: str) -> str:
    """Wait until the scheduler has refused a Pod, and return its message."""
    waiting = cluster.api.wait_condition(
        "v1", "Pod", name, "PodScheduled", NAMESPACE, status="False"
    )
    condition = condition_of(waiting, "PodScheduled")
    assert condition["reason"] == "Unschedulable"
    assert waiting["status"]["phase"] == "Pending"
    return str(condition["message"])


def test_pods_of_a_work_run_and_the_hub_sees_how_many(hub: Hub, gpus: ScheduledCluster) -> None:
    gpus.add([gpu_node("small", 1), gpu_node("large", 3)])
    gpus.wait_schedulable("small", "large")
    work = {
        "apiVersion": WORK,
        "kind": "ManifestWork",
        "metadata": {"name": "trainer", "namespace": gpus.name},
        "spec": {
            "workload": {
                "manifests": [deployment("trainer", NAMESPACE, 3, pod_template({GPU: "2"}))]
            },
            "manifestConfigs": [
                {
                    "resourceIdentifier": {
                        "group": "apps",
                        "resource": "deployments",
                        "name": "trainer",
                        "namespace": NAMESPACE,
                    },
                    "feedbackRules": [{"type": "WellKnownStatus"}],
                }
            ],
        },
    }
    hub.apply(work)

    def ready() -> int:
        status = hub.api.get(WORK, "ManifestWork", "trainer", gpus.name).get("status", {})
        for manifest in status.get("resourceStatus", {}).get("manifests", []):
            for value in manifest.get("statusFeedback", {}).get("values", []):
                if value["name"] == "ReadyReplicas":
                    return int(value["fieldValue"]["integer"])
        return 0

    until("one Pod to be ready, as the hub sees it", lambda: ready() == 1)
    pods = gpus.api.list("v1", "Pod", NAMESPACE)
    running = [item for item in pods if item["status"]["phase"] == "Running"]
    assert [item["spec"]["nodeName"] for item in running] == ["large"]
    waiting = [item["metadata"]["name"] for item in pods if item not in running]
    for name in waiting:
        assert "Insufficient nvidia.com/gpu" in wait_unschedulable(gpus, name)

    gpus.add([gpu_node("larger", 4)])
    until("all Pods to be ready, as the hub sees it", lambda: ready() == 3)
    hub.api.delete(WORK, "ManifestWork", "trainer", gpus.name)
    hub.api.wait_gone(WORK, "ManifestWork", "trainer", gpus.name)


def test_cordoned_and_unready_nodes_get_no_pods_of_the_scheduler(gpus: ScheduledCluster) -> None:
    gpus.add([gpu_node("cordoned", 1, cordoned=True), gpu_node("down", 1, ready=False)])
    gpus.add([pod("trainer", NAMESPACE, {GPU: "1"})])
    assert wait_unschedulable(gpus, "trainer").startswith("0/2 nodes are available")
    gpus.add([pod("stranger", NAMESPACE, {GPU: "1"}, node="cordoned")])
    wait_running(gpus, "stranger")
    gpus.api.patch("v1", "Node", "cordoned", {"spec": {"unschedulable": False}})
    gpus.api.delete("v1", "Pod", "stranger", NAMESPACE)
    wait_running(gpus, "trainer")


def test_a_claim_gets_a_device_that_its_selector_admits(gpus: ScheduledCluster) -> None:
    gpus.add([gpu_node("dra", 2, device_plugin=False), *resource_slices("dra", 2)])
    few = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('90Gi')) > 0"
    gpus.add([claim_template("one", NAMESPACE), claim_template("huge", NAMESPACE, selector=few)])
    gpus.add([pod(name, NAMESPACE, claim="one") for name in ("first", "second")])
    wait_running(gpus, "first", "second")
    gpus.add([pod("third", NAMESPACE, claim="one"), pod("fourth", NAMESPACE, claim="huge")])
    for name in ("third", "fourth"):
        assert "cannot allocate all claims" in wait_unschedulable(gpus, name)
    assert sorted(gpus.allocated(NAMESPACE)) == [("dra", "gpu-0"), ("dra", "gpu-1")]

    gpus.api.delete("v1", "Pod", "first", NAMESPACE)
    wait_running(gpus, "third")


def test_a_part_of_a_gpu_excludes_the_parts_that_overlap(gpus: ScheduledCluster) -> None:
    gpus.add([gpu_node("dra", 1, device_plugin=False)])
    gpus.add(resource_slices("dra", 1, partitionable=True))
    gpus.add(mig_claim_template(profile, NAMESPACE, profile) for profile in ("4g.40gb", "3g.40gb"))
    gpus.add([claim_template("whole", NAMESPACE)])
    gpus.add([pod("large", NAMESPACE, claim="4g.40gb")])
    wait_running(gpus, "large")
    gpus.add([pod("small", NAMESPACE, claim="3g.40gb")])
    wait_running(gpus, "small")
    devices = {device for _, device in gpus.allocated(NAMESPACE)}
    assert devices == {"gpu-0-mig-3g-40gb-4", "gpu-0-mig-4g-40gb-0"}

    gpus.add([pod("late", NAMESPACE, claim="3g.40gb"), pod("whole", NAMESPACE, claim="whole")])
    wait_unschedulable(gpus, "late")
    wait_unschedulable(gpus, "whole")
    gpus.api.delete("v1", "Pod", "large", NAMESPACE)
    wait_running(gpus, "late")


def test_pods_leave_a_node_that_is_lost(gpus: ScheduledCluster) -> None:
    gpus.add([gpu_node("first", 1), gpu_node("second", 1), gpu_node("third", 0)])
    gpus.wait_schedulable("first", "second", "third")
    gpus.add([deployment("trainer", NAMESPACE, 1, pod_template({GPU: "1"}))])

    def running() -> list[str]:
        return [
            item["spec"]["nodeName"]
            for item in gpus.api.list("v1", "Pod", NAMESPACE)
            if "deletionTimestamp" not in item["metadata"]
            and condition_of(item, "Ready").get("status") == "True"
        ]

    (lost,) = until("the Pod to run", running)
    gpus.lose(lost)
    gpus.api.wait_condition("v1", "Node", lost, "Ready", status="Unknown")
    other = {"first": "second", "second": "first"}[lost]
    until("the Pod to run elsewhere", lambda: running() == [other])


def test_the_gpu_operator_changes_what_a_node_advertises(gpus: ScheduledCluster) -> None:
    layout = [{"devices": "all", "mig-enabled": True, "mig-devices": {"3g.40gb": 2}}]
    gpus.namespace("gpu-operator")
    api_version, kind, name, namespace = LAYOUTS
    config = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "data": {
            "config.yaml": yaml.safe_dump({"version": "v1", "mig-configs": {"halves": layout}})
        },
    }
    gpus.apply(config)
    gpus.add([gpu_node("mig", 2)])
    gpus.wait_schedulable("mig")
    half = mig_resource("3g.40gb")
    gpus.add([pod("whole", NAMESPACE, {GPU: "1"}), pod("half", NAMESPACE, {half: "4"})])
    wait_running(gpus, "whole")
    wait_unschedulable(gpus, "half")

    def state(config: str) -> str:
        """Ask for a configuration, and return how that ended."""
        wanted = {"metadata": {"labels": {WANTED: config, STATE: "asked"}}}
        gpus.api.patch("v1", "Node", "mig", wanted)
        return until(
            "the MIG manager",
            lambda: {"success": "success", "failed": "failed"}.get(
                gpus.api.get("v1", "Node", "mig")["metadata"]["labels"][STATE], ""
            ),
        )

    with gpu_operator(gpus.api):
        assert state("halves") == "failed"
        gpus.api.delete("v1", "Pod", "whole", NAMESPACE)
        gpus.api.wait_gone("v1", "Pod", "whole", NAMESPACE)
        assert state("unknown") == "failed"
        assert state("halves") == "success"
        wait_running(gpus, "half")
        node = gpus.api.get("v1", "Node", "mig")
        assert node["metadata"]["labels"][f"{half}.count"] == "4"
        assert node["status"]["allocatable"][GPU] == "0"
        gpus.api.delete("v1", "Pod", "half", NAMESPACE)
        gpus.api.wait_gone("v1", "Pod", "half", NAMESPACE)
        assert state("all-disabled") == "success"
    node = gpus.api.get("v1", "Node", "mig")
    assert node["status"]["allocatable"][GPU] == "2"
    assert half not in node["status"]["allocatable"]
    assert f"{half}.count" not in node["metadata"]["labels"]
    gpus.api.delete(*LAYOUTS)
