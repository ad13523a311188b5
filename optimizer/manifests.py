"""A decision as Placements and PlacementBindings; the same decision gives the same objects.

Sources: https://open-cluster-management.io/docs/concepts/content-placement/placement/ and the
PlacementBinding CRD of https://github.com/open-cluster-management-io/governance-policy-propagator
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from dsf.api.names import GENERATED_LABEL
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY, Kind
from dsf.kube.port import Object
from optimizer.fleet import Fleet, Selector
from optimizer.solution import Choice, Decision

GENERATED_SELECTOR = f"{GENERATED_LABEL}=true"
COMPLIANT = "compliant"

_NAME_LIMIT = 63  # OCM puts the name of a Placement into a label of its decisions


def manifests(fleet: Fleet, decision: Decision, *, claim_name: str) -> tuple[Object, ...]:
    """Return the objects of a decision: per policy choice two, per placed workload one."""
    select = {cluster.name: cluster.selector for cluster in fleet.clusters}
    placements = {workload.name: workload.placement for workload in fleet.workloads}
    return (
        *_of_policies(fleet.namespace, decision.choices, select),
        *(
            _placement(
                fleet.namespace,
                placements[place.workload],
                {**_selected(select[place.cluster]), "claimSelector": _compliant(claim_name)},
            )
            for place in decision.places
        ),
    )


def generated_name(prefix: str, namespace: str, choice: Choice) -> str:
    """Return `<prefix>-<cluster>-<8 hex>`, the digits taken from namespace, cluster and policy.

    A long cluster name is cut; the digits still tell it from others.
    """
    digits = hashlib.sha256("/".join((namespace, *choice)).encode()).hexdigest()[:8]
    room = _NAME_LIMIT - len(prefix) - len(digits) - 2
    return f"{prefix}-{choice.cluster[:room].rstrip('-.')}-{digits}"


def _of_policies(
    namespace: str, choices: Iterable[Choice], select: Mapping[str, Selector]
) -> Iterable[Object]:
    for choice in choices:
        name = generated_name("placement", namespace, choice)
        yield _placement(namespace, name, _selected(select[choice.cluster]))
        yield _binding(namespace, choice, name)


def _placement(namespace: str, name: str, selector: Mapping[str, Any]) -> Object:
    spec = {"numberOfClusters": 1, "predicates": [{"requiredClusterSelector": dict(selector)}]}
    return {**_header(PLACEMENT, namespace, name), "spec": spec}


def _binding(namespace: str, choice: Choice, placement: str) -> Object:
    return {
        **_header(PLACEMENT_BINDING, namespace, generated_name("binding", namespace, choice)),
        "placementRef": {"name": placement, "kind": PLACEMENT.kind, "apiGroup": PLACEMENT.group},
        "subjects": [{"name": choice.policy, "kind": POLICY.kind, "apiGroup": POLICY.group}],
    }


def _header(kind: Kind, namespace: str, name: str) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {GENERATED_LABEL: "true"}},
    }


def _selected(selector: Selector) -> dict[str, Any]:
    if selector.key:
        return {"labelSelector": {"matchLabels": {selector.key: selector.cluster}}}
    expression = f"managedCluster.metadata.name == {json.dumps(selector.cluster)}"
    return {"celSelector": {"celExpressions": [expression]}}


def _compliant(claim_name: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": claim_name, "operator": "In", "values": [COMPLIANT]}]}
