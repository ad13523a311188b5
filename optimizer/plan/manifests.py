"""The objects of a decision: Placements, PlacementBindings and generated Policies.

Equal decisions give equal objects, names included.

Sources: https://open-cluster-management.io/docs/concepts/content-placement/placement/ and the
PlacementBinding CRD of https://github.com/open-cluster-management-io/governance-policy-propagator
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dsf.api.names import SUPPLY_AMOUNT, SUPPLY_DEVICE, SUPPLY_KIND
from dsf.api.optimization import Optimization
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY, Kind
from dsf.kube.port import Object
from dsf.placement import Toleration
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import CandidatePolicy, Fleet, Selector, Workload, gpu_name
from optimizer.domain.mig.policy_spec import generated_policy, layout_text, policy_specs
from optimizer.domain.settings import GPU_OPERATOR, MigLabels
from optimizer.domain.solution import Decision, PolicyEnforcement
from optimizer.snapshot.annotations import PREFIX

COMPLIANT = "compliant"

_NAME_LIMIT = 63
"""Characters of a name: OCM puts the name of a Placement into a label of its decisions."""


def manifests(
    fleet: Fleet, decision: Decision, *, claim_name: str, mig: MigLabels = GPU_OPERATOR
) -> tuple[Object, ...]:
    """Return the objects of a decision, generated policies included.

    There is a Placement and a PlacementBinding for each enforced policy, and a Placement for each
    placed workload.
    """
    select = {cluster.name: cluster.selector for cluster in fleet.clusters}
    workloads = {workload.name: workload for workload in fleet.workloads}
    enforcing = frozenset(choice.cluster for choice in decision.policies)
    runs = members_by_key((item.workload, item.cluster) for item in decision.assignments)
    return (
        *generated_policies(fleet, decision, mig),
        *_of_policies(fleet, decision.policies, select),
        *(
            workload_placement(
                fleet,
                workloads[workload],
                [select[name] for name in clusters],
                enforcing,
                claim_name=claim_name,
            )
            for workload, clusters in runs.items()
        ),
    )


def workload_placement(
    fleet: Fleet,
    workload: Workload,
    selectors: Sequence[Selector],
    enforcing: Collection[str],
    *,
    claim_name: str,
) -> Object:
    """Return the Placement of a workload; clusters that are `enforcing` have to claim."""
    return _placement(
        fleet,
        workload.placement,
        _predicates(selectors, enforcing, claim_name),
        workload.tolerations,
        count=len(selectors),
    )


def stopped_placement(owner: Optimization, name: str) -> Object:
    """Return a Placement that selects nothing, so that OCM removes what runs by its name."""
    return {**_header(PLACEMENT, owner, name), "spec": {"numberOfClusters": 0, "predicates": []}}


def generated_name(prefix: str, owner: Optimization, choice: PolicyEnforcement) -> str:
    """Return `<prefix>-<cluster>-<8 hex>`; the digits are a hash of owner, cluster and policy.

    A long cluster name is cut. The digits keep the names different.
    """
    digits = hashlib.sha256("/".join((*owner.name_parts, *choice)).encode()).hexdigest()[:8]
    room = _NAME_LIMIT - len(prefix) - len(digits) - 2
    return f"{prefix}-{choice.cluster[:room].rstrip('-.')}-{digits}"


def _of_policies(
    fleet: Fleet, choices: Iterable[PolicyEnforcement], select: Mapping[str, Selector]
) -> Iterable[Object]:
    tolerations = {
        PolicyEnforcement(cluster.name, item.policy): item.tolerations
        for cluster in fleet.clusters
        for item in cluster.candidates
    }
    for choice in choices:
        name = generated_name("placement", fleet.owner, choice)
        selector = _selected([select[choice.cluster]])
        yield _placement(fleet, name, [selector], tolerations.get(choice, ()))
        yield _binding(fleet.owner, choice, name)


def _placement(
    fleet: Fleet,
    name: str,
    selectors: Iterable[Mapping[str, Any]],
    tolerations: Iterable[Toleration],
    *,
    count: int = 1,
) -> Object:
    """Return a Placement with the tolerations and cluster sets that the plan assumed."""
    predicates = [{"requiredClusterSelector": dict(selector)} for selector in selectors]
    spec: Object = {"numberOfClusters": count, "predicates": predicates}
    if fleet.cluster_sets:
        spec["clusterSets"] = sorted(fleet.cluster_sets)
    tolerated = dict.fromkeys((*tolerations, *fleet.tolerations))
    if tolerated:
        spec["tolerations"] = [dict(item.manifest) for item in tolerated]
    return {**_header(PLACEMENT, fleet.owner, name), "spec": spec}


def _predicates(
    selectors: Iterable[Selector], enforcing: Collection[str], claim_name: str
) -> Iterator[dict[str, Any]]:
    """Yield one predicate for each kind of selector; OCM selects clusters that meet any of them.

    A cluster that enforces no policy never claims to be compliant, so no claim is required of it.
    """
    alike = members_by_key(((item.key, item.cluster in enforcing), item) for item in selectors)
    compliant = {"key": claim_name, "operator": "In", "values": [COMPLIANT]}
    for (_, enforced), found in alike.items():
        claim = {"claimSelector": {"matchExpressions": [compliant]}} if enforced else {}
        yield {**_selected(found), **claim}


def _binding(owner: Optimization, choice: PolicyEnforcement, placement: str) -> Object:
    return {
        **_header(PLACEMENT_BINDING, owner, generated_name("binding", owner, choice)),
        "placementRef": {"name": placement, "kind": PLACEMENT.kind, "apiGroup": PLACEMENT.group},
        "subjects": [{"name": choice.policy, "kind": POLICY.kind, "apiGroup": POLICY.group}],
    }


def _header(kind: Kind, owner: Optimization, name: str) -> Object:
    metadata = {"name": name, "namespace": owner.namespace, "labels": owner.labels}
    return kind.object(metadata=metadata)


def _selected(selectors: Sequence[Selector]) -> dict[str, Any]:
    """Return one selector for clusters whose selectors have the same key."""
    key, names = selectors[0].key, sorted(selector.cluster for selector in selectors)
    if key and len(names) == 1:
        return {"labelSelector": {"matchLabels": {key: names[0]}}}
    if key:
        expression = {"key": key, "operator": "In", "values": names}
        return {"labelSelector": {"matchExpressions": [expression]}}
    wanted = f"== {json.dumps(names[0])}" if len(names) == 1 else f"in {json.dumps(names)}"
    return {"celSelector": {"celExpressions": [f"managedCluster.metadata.name {wanted}"]}}


def generated_policies(fleet: Fleet, decision: Decision, labels: MigLabels) -> Iterator[Object]:
    """Yield the Policies of the generated candidates that a decision chose.

    They state their supplies like hand-written policies, so a later request can list them.
    """
    chosen = set(decision.policies)
    for cluster in fleet.clusters:
        made = [
            item
            for item in cluster.candidates
            if item.layouts and (cluster.name, item.policy) in chosen
        ]
        for item, spec in zip(made, policy_specs(made, labels) if made else (), strict=True):
            metadata = _supply_metadata(cluster.name, item)
            yield generated_policy(fleet.owner, item.policy, metadata, spec)


def _supply_metadata(cluster: str, item: CandidatePolicy) -> Object:
    """Return the labels of the wire contract if there is one supply, else an annotation."""
    pool = {f"{PREFIX}pool": item.pool} if item.pool else {}
    alone = {f"{PREFIX}cluster": cluster, f"{PREFIX}layouts": _layouts(item)}
    if len(item.supplies) == 1:
        (supply,) = item.supplies
        return {
            "labels": {
                SUPPLY_KIND: supply.kind,
                SUPPLY_DEVICE: supply.device,
                SUPPLY_AMOUNT: str(int(supply.amount)),
                **pool,
            },
            "annotations": alone,
        }
    listed = ",".join(f"{item.kind}/{item.device}={int(item.amount)}" for item in item.supplies)
    return {"labels": pool, "annotations": {**alone, f"{PREFIX}supplies": listed}}


def _layouts(item: CandidatePolicy) -> str:
    """Return the layout of each GPU, in the form that PolicySpec.layouts reads."""
    return ",".join(
        f"{gpu_name(node.node, index)}={layout_text(gpu)}"
        for node in item.layouts
        for index, gpu in enumerate(node.gpus)
    )
