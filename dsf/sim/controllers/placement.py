"""Simulated placement controller: decides which managed clusters a Placement selects.

It implements cluster set bindings, label, claim and CEL selectors, the AddOn and Steady
prioritizers, and numberOfClusters. It leaves out taints, spread policies, decision groups and the
other built-in prioritizers.

Source: https://open-cluster-management.io/docs/concepts/content-placement/placement/
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsf.api.conditions import Condition, merged
from dsf.kube.changes import Change, Create
from dsf.kube.kinds import PLACEMENT, PLACEMENT_DECISION
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, label_selector_of
from dsf.sim.controllers.cel import holds
from dsf.sim.controllers.musthave import set_status
from dsf.sim.controllers.registration import SET_LABEL

PLACEMENT_LABEL = "cluster.open-cluster-management.io/placement"
MAX_SCORE = 100

LiveScores = Mapping[tuple[str, str, str], int]
"""Unexpired values by cluster, AddOnPlacementScore name and entry name."""

DecidedClusters = Mapping[tuple[str, str], Iterable[str]]
"""Names of the selected clusters by namespace and name of the Placement."""


def decide(
    placement: Object,
    *,
    clusters: Iterable[Object],
    bindings: Iterable[Object],
    scores: LiveScores,
    decision: Object | None,
    now: str,
) -> list[Change]:
    """Return the changes to a Placement's PlacementDecision and status."""
    if placement["metadata"].get("deletionTimestamp"):
        return []
    before = _decided(decision)
    bound = [cluster for cluster in clusters if _bound(cluster, bindings)]
    matching = [cluster for cluster in bound if _matches(placement["spec"], cluster)]
    chosen = _ranked(placement["spec"], matching, scores, before)
    number = placement["spec"].get("numberOfClusters")
    chosen = chosen if number is None else chosen[:number]
    reason = _reason(list(bindings), matching, chosen, number)
    return [
        *_decision(placement, sorted(chosen), decision),
        *_status(placement, len(chosen), reason, now=now),
    ]


def _bound(cluster: Object, bindings: Iterable[Object]) -> bool:
    cluster_set = (cluster["metadata"].get("labels") or {}).get(SET_LABEL, "default")
    names = {binding["metadata"]["name"] for binding in bindings}
    return bool(names & {cluster_set, "global"})


def _matches(spec: Mapping[str, Any], cluster: Object) -> bool:
    predicates = spec.get("predicates") or [{}]
    return any(_fits(item.get("requiredClusterSelector") or {}, cluster) for item in predicates)


def _fits(selector: Mapping[str, Any], cluster: Object) -> bool:
    labels = cluster["metadata"].get("labels") or {}
    listed = cluster.get("status", {}).get("clusterClaims") or []
    claims = {claim["name"]: claim.get("value", "") for claim in listed}
    expressions = (selector.get("celSelector") or {}).get("celExpressions") or []
    return (
        _selected(selector.get("labelSelector") or {}, labels)
        and _selected(selector.get("claimSelector") or {}, claims)
        and all(holds(expression, {"managedCluster": cluster}) for expression in expressions)
    )


def _selected(selector: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    parsed = label_selector_of(selector)
    return isinstance(parsed, LabelSelector) and parsed.matches(values)


def _ranked(
    spec: Mapping[str, Any], clusters: Iterable[Object], scores: LiveScores, before: Sequence[str]
) -> list[str]:
    policy = spec.get("prioritizerPolicy") or {}
    exact = policy.get("mode") == "Exact"
    weights = policy.get("configurations") or []

    def total(name: str) -> int:
        steady = 0 if exact or name not in before else MAX_SCORE
        return steady + sum(_weighted(item, name, scores, before) for item in weights)

    names = [cluster["metadata"]["name"] for cluster in clusters]
    return sorted(names, key=lambda name: (-total(name), name))


def _weighted(
    item: Mapping[str, Any], cluster: str, scores: LiveScores, before: Sequence[str]
) -> int:
    coordinate, weight = item.get("scoreCoordinate") or {}, int(item.get("weight", 1))
    add_on = coordinate.get("addOn") or {}
    if coordinate.get("type") == "AddOn":
        # OCM's add-on score plugin also counts a missing or expired score as 0.
        key = (cluster, add_on.get("resourceName", ""), add_on.get("scoreName", ""))
        return weight * scores.get(key, 0)
    return weight * MAX_SCORE if coordinate.get("builtIn") == "Steady" and cluster in before else 0


def _reason(
    bindings: Sequence[Object],
    matching: Sequence[Object],
    chosen: Sequence[str],
    number: int | None,
) -> Condition:
    def satisfied(status: bool, reason: str, message: str) -> Condition:
        return Condition("PlacementSatisfied", "True" if status else "False", reason, message)

    if not bindings:
        return satisfied(
            False, "NoManagedClusterSetBindings", "No valid ManagedClusterSetBindings found"
        )
    if not matching:
        return satisfied(
            False,
            "NoManagedClusterMatched",
            "No ManagedCluster matches any of the cluster predicate",
        )
    if number is not None and len(chosen) < number:
        return satisfied(
            False,
            "NotAllDecisionsScheduled",
            f"{number - len(chosen)} cluster decisions unscheduled",
        )
    return satisfied(True, "AllDecisionsScheduled", "All cluster decisions scheduled")


def _decided(decision: Object | None) -> list[str]:
    listed = (decision or {}).get("status", {}).get("decisions") or []
    return [item["clusterName"] for item in listed]


def _decision(placement: Object, chosen: Sequence[str], decision: Object | None) -> list[Change]:
    if decision is None:
        return [Create(PLACEMENT_DECISION, _decision_object(placement))]
    decisions = [{"clusterName": cluster, "reason": ""} for cluster in chosen]
    return set_status(PLACEMENT_DECISION, decision, {"decisions": decisions})


def _decision_object(placement: Object) -> Object:
    metadata = placement["metadata"]
    return {
        "apiVersion": PLACEMENT_DECISION.api_version,
        "kind": PLACEMENT_DECISION.kind,
        "metadata": {
            "name": f"{metadata['name']}-decision-1",
            "namespace": metadata["namespace"],
            "labels": {PLACEMENT_LABEL: metadata["name"]},
            "ownerReferences": [
                {
                    "apiVersion": PLACEMENT.api_version,
                    "kind": PLACEMENT.kind,
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
    }


def _status(placement: Object, selected: int, reason: Condition, *, now: str) -> list[Change]:
    before = (placement.get("status") or {}).get("conditions") or []
    conditions = merged(before, [reason], now=now)
    status = {"numberOfSelectedClusters": selected, "conditions": conditions}
    return set_status(PLACEMENT, placement, status)
