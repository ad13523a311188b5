"""The ClusterClaim that reports the compliance of a cluster's policies to the hub.

Source: https://open-cluster-management.io/docs/concepts/cluster-inventory/clusterclaim/
"""

from collections.abc import Mapping
from typing import Any

from dsf.kube.changes import Change, diff
from dsf.kube.kinds import CLUSTER_CLAIM
from policy_watcher.compliance import PolicyCompliance
from policy_watcher.stable_window import ClaimValue

POLICIES_ANNOTATION = "dynamic-scoring.open-cluster-management.io/observed-policies"
"""Digest of the policies that the claim's value is about."""


def changes(
    name: str, value: ClaimValue, compliance: PolicyCompliance, observed: Mapping[str, Any] | None
) -> list[Change]:
    """Return the changes that give the claim `value` and the digest of the observed policies."""
    desired: dict[str, Any] = {
        "apiVersion": CLUSTER_CLAIM.api_version,
        "kind": CLUSTER_CLAIM.kind,
        "metadata": {"name": name, "annotations": {POLICIES_ANNOTATION: compliance.digest}},
        "spec": {"value": value},
    }
    return diff(CLUSTER_CLAIM, [desired], [dict(observed)] if observed else [])


def published_claim(claim: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the value of a claim and the digest of its policies; empty without a claim."""
    if claim is None:
        return "", ""
    annotations = claim["metadata"].get("annotations") or {}
    value = (claim.get("spec") or {}).get("value") or ""
    return str(value), str(annotations.get(POLICIES_ANNOTATION) or "")
