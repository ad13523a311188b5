"""Simulated policy framework: replicates policies to their clusters, enforces and reports them.

Source: https://open-cluster-management.io/docs/getting-started/integration/policy-controllers/
"""

from collections.abc import Iterable, Sequence
from typing import Any

from dsf.kube.changes import Change
from dsf.kube.kinds import NODE, POLICY
from dsf.kube.port import Object
from dsf.sim.controllers.musthave import Observed, Reference, contains, ensure, reference_of
from dsf.sim.controllers.placement import DecidedClusters

ROOT_LABEL = "policy.open-cluster-management.io/root-policy"
CLUSTER_LABEL = "policy.open-cluster-management.io/cluster-name"


def replicated(
    policies: Iterable[Object], bindings: Iterable[Object], decisions: DecidedClusters
) -> list[Object]:
    """Return one replicated policy for each bound policy and each selected cluster."""
    roots = {
        (policy["metadata"]["namespace"], policy["metadata"]["name"]): policy for policy in policies
    }
    bound = {
        (namespace, subject["name"], cluster)
        for binding in bindings
        for namespace in [binding["metadata"]["namespace"]]
        for cluster in decisions.get((namespace, binding["placementRef"]["name"]), ())
        for subject in binding.get("subjects") or []
        if (namespace, subject["name"]) in roots
    }
    return [
        _replica(roots[namespace, name], cluster)
        for namespace, name, cluster in sorted(bound)
        if not (roots[namespace, name].get("spec") or {}).get("disabled")
    ]


def with_selected_nodes(policy: Object, nodes: Sequence[Object]) -> Object:
    """Return a policy that names the nodes which its templates select by an objectSelector."""
    spec = policy.get("spec") or {}
    templates = [_selecting(item, nodes) for item in spec.get("policy-templates") or []]
    return {**policy, "spec": {**spec, "policy-templates": templates}}


def objects_of(policy: Object) -> list[Reference]:
    """Return the objects that the templates of a policy describe, without unknown kinds."""
    return [
        reference
        for template in _templates(policy)
        for item in _objects(template)
        if (reference := reference_of(item["objectDefinition"])) is not None
    ]


def enforce(policy: Object, observed: Observed) -> list[Change]:
    """Return the changes that the enforced templates of a policy make on their cluster."""
    changes: list[Change] = []
    for template in _templates(policy):
        if _action(policy, template) != "enforce":
            continue
        for item in _objects(template):
            changes += _ensure(item, observed)
    return changes


def status(policy: Object, observed: Observed) -> dict[str, Any]:
    """Return the status of a replicated policy: the compliance of each template and of all."""
    details = [
        {
            "templateMeta": {"name": template["metadata"]["name"]},
            "compliant": "Compliant"
            if all(_holds(item, observed) for item in _objects(template))
            else "NonCompliant",
        }
        for template in _templates(policy)
    ]
    whole = all(detail["compliant"] == "Compliant" for detail in details)
    return {"compliant": "Compliant" if whole else "NonCompliant", "details": details}


def root_status(replicas: Sequence[Object]) -> dict[str, Any]:
    """Return the status of a root policy from its replicas."""
    listed = [
        {
            "clustername": replica["metadata"]["namespace"],
            "clusternamespace": replica["metadata"]["namespace"],
            "compliant": (replica.get("status") or {}).get("compliant", "Pending"),
        }
        for replica in replicas
    ]
    states = {item["compliant"] for item in listed}
    order = ("NonCompliant", "Pending", "Compliant")
    whole = next((state for state in order if state in states), None)
    return {"compliant": whole, "status": listed or None}


def _replica(policy: Object, cluster: str) -> Object:
    metadata = policy["metadata"]
    full_name = f"{metadata['namespace']}.{metadata['name']}"
    return POLICY.object(
        metadata={
            "name": full_name,
            "namespace": cluster,
            "labels": {ROOT_LABEL: full_name, CLUSTER_LABEL: cluster},
        },
        spec=policy["spec"],
    )


def _selecting(item: Object, nodes: Sequence[Object]) -> Object:
    template = item["objectDefinition"]
    spec = template.get("spec") or {}
    objects = [named for one in spec.get("object-templates") or [] for named in _named(one, nodes)]
    selecting = {**template, "spec": {**spec, "object-templates": objects}}
    return {**item, "objectDefinition": selecting}


def _named(item: Object, nodes: Sequence[Object]) -> list[Object]:
    """Return an object template for each node that it selects; itself if it selects none."""
    definition, asked = item["objectDefinition"], item.get("objectSelector")
    if asked is None or definition.get("kind") != NODE.kind:
        return [item]
    labels = (asked.get("matchLabels") or {}).items()
    names = [
        node["metadata"]["name"]
        for node in nodes
        if labels <= (node["metadata"].get("labels") or {}).items()
    ]
    metadata = definition.get("metadata") or {}
    return [
        {**item, "objectDefinition": {**definition, "metadata": {**metadata, "name": name}}}
        for name in names
    ] or [item]


def _templates(policy: Object) -> list[Object]:
    listed = (policy.get("spec") or {}).get("policy-templates") or []
    templates = [item["objectDefinition"] for item in listed]
    return [template for template in templates if template.get("kind") == "ConfigurationPolicy"]


def _action(policy: Object, template: Object) -> str:
    whole = (policy.get("spec") or {}).get("remediationAction")
    return str(whole or template["spec"].get("remediationAction", "inform")).lower()


def _ensure(item: Object, observed: Observed) -> list[Change]:
    definition = item["objectDefinition"]
    reference = reference_of(definition)
    if reference is None or item.get("complianceType", "musthave").lower() != "musthave":
        return []
    return ensure(reference, definition, observed)


def _objects(template: Object) -> list[Object]:
    return template["spec"].get("object-templates") or []


def _holds(item: Object, observed: Observed) -> bool:
    definition = item["objectDefinition"]
    reference = reference_of(definition)
    present = reference is not None and contains(observed.get(reference), definition)
    expected = str(item.get("complianceType", "musthave")).lower() != "mustnothave"
    return present == expected
