"""OCM's governance policies: propagated, enforced, and reported back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

if TYPE_CHECKING:
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

POLICY = "policy.open-cluster-management.io/v1"
MANIFESTS = """
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata: {{name: flag, namespace: {namespace}}}
spec:
  disabled: false
  remediationAction: enforce
  policy-templates:
  - objectDefinition:
      apiVersion: policy.open-cluster-management.io/v1
      kind: ConfigurationPolicy
      metadata: {{name: flag}}
      spec:
        remediationAction: enforce
        severity: low
        object-templates:
        - complianceType: musthave
          objectDefinition:
            apiVersion: v1
            kind: ConfigMap
            metadata: {{name: flag, namespace: default}}
            data: {{colour: green}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {{name: flag, namespace: {namespace}}}
spec:
  clusterSets: [global]
  predicates:
  - requiredClusterSelector:
      claimSelector: {{}}
      labelSelector: {{matchLabels: {{flag: wanted}}}}
---
apiVersion: policy.open-cluster-management.io/v1
kind: PlacementBinding
metadata: {{name: flag, namespace: {namespace}}}
placementRef: {{apiGroup: cluster.open-cluster-management.io, kind: Placement, name: flag}}
subjects: [{{apiGroup: policy.open-cluster-management.io, kind: Policy, name: flag}}]
"""


@pytest.mark.usefixtures("policies")
def test_a_policy_is_enforced_where_its_placement_points(
    hub: Hub, east: ManagedCluster, west: ManagedCluster, bound_namespace: str
) -> None:
    wanted = {"metadata": {"labels": {"flag": "wanted"}}}
    hub.api.patch("cluster.open-cluster-management.io/v1", "ManagedCluster", west.name, wanted)
    hub.apply(MANIFESTS.format(namespace=bound_namespace))

    until("the flag on west", lambda: west.api.find("v1", "ConfigMap", "flag", "default"))
    until("compliance on the hub", lambda: compliance(hub, bound_namespace) == "Compliant")
    replicated = west.api.get(POLICY, "Policy", f"{bound_namespace}.flag", west.name)
    assert replicated["status"]["compliant"] == "Compliant"
    assert east.api.find("v1", "ConfigMap", "flag", "default") is None


def compliance(hub: Hub, namespace: str) -> str:
    status = hub.api.get(POLICY, "Policy", "flag", namespace).get("status", {})
    return str(status.get("compliant", ""))
