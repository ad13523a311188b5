"""OCM's add-on manager deploys a template add-on and gets its agent an identity on the hub."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from .harness.api import Api, ApiError
from .harness.pods import mark_ready, run_deployment

if TYPE_CHECKING:
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

ADDON = "addon.open-cluster-management.io/v1alpha1"
MANIFESTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: greeter-on-hub}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: greeter-1}
spec:
  addonName: greeter
  registration:
  - type: KubeClient
    kubeClient:
      hubPermissions:
      - type: CurrentCluster
        currentCluster: {clusterRoleName: greeter-on-hub}
  agentSpec:
    workload:
      manifests:
      - {apiVersion: v1, kind: ServiceAccount, metadata: {name: greeter, namespace: greetings}}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: greeter, namespace: greetings}
        spec:
          replicas: 1
          selector: {matchLabels: {app: greeter}}
          template:
            metadata: {labels: {app: greeter}}
            spec:
              serviceAccountName: greeter
              containers:
              - name: greeter
                image: greeter
                args: ["--hub-kubeconfig={{HUB_KUBECONFIG}}", "--cluster={{CLUSTER_NAME}}"]
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: greeter}
spec:
  installStrategy: {type: Manual}
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig: {name: greeter-1}
"""
# Stands in for the image: it reads the kubeconfig of its arguments, and keeps running.
GREETER = """
import pathlib, sys, time
kubeconfig = pathlib.Path(sys.argv[1].split("=")[1]).read_text()
assert "kind: Config" in kubeconfig
print("I am of", sys.argv[2].split("=")[1], flush=True)
time.sleep(3600)
"""


def test_a_template_addon_is_deployed_and_registered(
    hub: Hub, east: ManagedCluster, west: ManagedCluster
) -> None:
    hub.apply(MANIFESTS)
    east.namespace("greetings")
    addon = {
        "apiVersion": ADDON,
        "kind": "ManagedClusterAddOn",
        "metadata": {"name": "greeter", "namespace": east.name},
        "spec": {"installNamespace": "greetings"},
    }
    hub.apply(addon)
    deployment = until(
        "the add-on's Deployment",
        lambda: east.api.find("apps/v1", "Deployment", "greeter", "greetings"),
    )
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][1] == "--cluster=east"

    until(
        "the add-on's kubeconfig",
        lambda: east.api.find("v1", "Secret", "greeter-hub-kubeconfig", "greetings"),
    )
    api = Api.from_kubeconfig(
        east.mount_secret("greetings", "greeter-hub-kubeconfig") / "kubeconfig"
    )
    until("the add-on's rights", lambda: may_list(api, east.name))
    with pytest.raises(ApiError, match="403 Forbidden"):
        api.list("v1", "ConfigMap", west.name)
    api.close()

    process = run_deployment(
        east, "greetings", "greeter", entrypoint=[sys.executable, "-c", GREETER]
    )
    until("the greeter to greet", lambda: "I am of east" in east.processes.tail(process))
    east.processes.stop(process)
    mark_ready(east, "greetings", "greeter")
    hub.api.delete(ADDON, "ManagedClusterAddOn", "greeter", east.name)
    hub.api.wait_gone(ADDON, "ManagedClusterAddOn", "greeter", east.name)
    east.api.wait_gone("apps/v1", "Deployment", "greeter", "greetings")


def may_list(api: Api, namespace: str) -> bool:
    try:
        return bool(api.list("v1", "ConfigMap", namespace))
    except ApiError:
        return False
