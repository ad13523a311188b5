"""Simulated placement controller: decides which managed clusters a Placement selects.

It implements cluster sets and their bindings, label, claim and CEL selectors, taints and
tolerations, numberOfClusters, and the prioritizers AddOn, Balance and Steady. It leaves out spread
policies, decision groups and the prioritizers of allocatable resources.

Source: pkg/placement of OCM v1.2.1, and
https://open-cluster-management.io/docs/concepts/content-placement/placement/
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import cel

from dsf.api.conditions import Condition, merged
from dsf.api.names import PLACEMENT_LABEL, SCHEDULING_DISABLED
from dsf.api.times import rfc3339
from dsf.kube.changes import Change, Create
from dsf.kube.kinds import PLACEMENT, PLACEMENT_DECISION
from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, label_selector_of
from dsf.placement import (
    bound_sets,
    misconfigured,
    read_taints,
    read_tolerations,
    sets_of,
    untolerated,
)
from dsf.sim.controllers.musthave import set_status

MAX_SCORE = 100

LiveScores = Mapping[tuple[str, str, str], int]
"""Unexpired values by cluster, AddOnPlacementScore name and entry name."""

DecidedClusters = Mapping[tuple[str, str], Collection[str]]
"""Names of the selected clusters by namespace and name of the Placement."""

_DEFAULT_WEIGHTS = {("BuiltIn", "Balance", ""): 1, ("BuiltIn", "Steady", ""): 1}


def ranked(
    placement: Object, names: Iterable[str], scores: LiveScores, decided: DecidedClusters
) -> list[str]:
    """Return clusters by their weighted sum of scores, the highest first; equal ones by name."""
    key = placement["metadata"]["namespace"], placement["metadata"]["name"]
    steady = frozenset(decided.get(key, ()))
    others = Counter(
        name for other, selected in decided.items() if other != key for name in selected
    )
    builtin: dict[str, Callable[[str], int]] = {
        "Balance": lambda name: _balance(others, name),
        "Steady": lambda name: MAX_SCORE if name in steady else 0,
    }

    def score(coordinate: tuple[str, str, str], name: str) -> int:
        kind, first, second = coordinate
        if kind == "AddOn":
            # OCM's add-on score plugin also counts a missing or expired score as 0.
            return scores.get((name, first, second), 0)
        return builtin[first](name) if first in builtin else 0

    weights = _weights(placement["spec"].get("prioritizerPolicy") or {})

    def total(name: str) -> int:
        return sum(weight * score(coordinate, name) for coordinate, weight in weights.items())

    return sorted(names, key=lambda name: (-total(name), name))


def ranks_by_score(placement: Object) -> bool:
    """Tell whether the scores matter to a Placement: it has a prioritizer AddOn."""
    policy = placement["spec"].get("prioritizerPolicy") or {}
    return any(kind == "AddOn" for kind, _, _ in _weights(policy))


def _weights(policy: Mapping[str, Any]) -> dict[tuple[str, str, str], int]:
    weights = {} if policy.get("mode") == "Exact" else dict(_DEFAULT_WEIGHTS)
    for item in policy.get("configurations") or ():
        coordinate = item.get("scoreCoordinate") or {}
        add_on = coordinate.get("addOn") or {}
        key = (
            ("AddOn", add_on.get("resourceName", ""), add_on.get("scoreName", ""))
            if coordinate.get("type") == "AddOn"
            else ("BuiltIn", coordinate.get("builtIn", ""), "")
        )
        weights[key] = int(item.get("weight", 1))
    return weights


def _balance(others: Counter[str], name: str) -> int:
    """Return 100 for an unused cluster, -100 for the one that most other Placements select."""
    if not others[name]:
        return MAX_SCORE
    return 2 * int(MAX_SCORE * (0.5 - others[name] / max(others.values())))


def holds(expression: str, variables: Mapping[str, Any]) -> bool:
    """Return whether an expression is true; one that can't be evaluated is not."""
    try:
        return cel.evaluate(expression, dict(variables)) is True
    except (KeyError, RuntimeError, TypeError, ValueError):
        return False


@dataclass(frozen=True, slots=True)
class HubView:
    """What the placement controller watches, besides Placements.

    `bindings`: the ManagedClusterSetBindings of the Placement's namespace. `decided`: what every
    Placement of the hub selects now.
    """

    clusters: Sequence[Object]
    cluster_sets: Sequence[Object]
    bindings: Sequence[Object]
    scores: LiveScores
    decided: DecidedClusters
    now: datetime


@dataclass(frozen=True, slots=True)
class _Filtered:
    """The clusters that a Placement may select, and how many each step before left."""

    bindings: int
    eligible_sets: Collection[str]
    members: Sequence[Object]
    clusters: Sequence[Object]
    misconfigured: str = ""


def decide(placement: Object, view: HubView, decision: Object | None) -> list[Change]:
    """Return the changes to a Placement's PlacementDecision and status."""
    metadata = placement["metadata"]
    if metadata.get("deletionTimestamp"):
        return []
    if (metadata.get("annotations") or {}).get(SCHEDULING_DISABLED) == "true":
        return []
    filtered = _filter(placement, view)
    names = [cluster["metadata"]["name"] for cluster in filtered.clusters]
    chosen = ranked(placement, names, view.scores, view.decided)
    number = placement["spec"].get("numberOfClusters")
    chosen = chosen if number is None else chosen[:number]
    conditions = [
        _misconfigured(filtered.misconfigured),
        _satisfied(placement["spec"], filtered, len(chosen)),
    ]
    return [
        *_decision(placement, sorted(chosen), decision),
        *_status(placement, len(chosen), conditions, now=rfc3339(view.now)),
    ]


def _filter(placement: Object, view: HubView) -> _Filtered:
    spec, metadata = placement["spec"], placement["metadata"]
    bound = bound_sets(view.bindings, view.cluster_sets)
    eligible = bound & set(spec.get("clusterSets") or bound)
    sets = [item for item in view.cluster_sets if item["metadata"]["name"] in eligible]
    members = [
        cluster
        for cluster in view.clusters
        if sets_of(cluster, sets) and not cluster["metadata"].get("deletionTimestamp")
    ]
    tolerations, predicates = read_tolerations(spec), _predicates(spec)
    wrong = misconfigured(tolerations) if members else ""
    before = view.decided.get((metadata["namespace"], metadata["name"]), ())
    clusters = [
        cluster
        for cluster in members
        if not wrong
        and any(fits(cluster) for fits in predicates)
        and not untolerated(
            read_taints(cluster),
            tolerations,
            selected=cluster["metadata"]["name"] in before,
            now=view.now,
        )
    ]
    return _Filtered(len(bound), eligible, members, clusters, wrong)


Predicate = Callable[[Object], bool]


def _predicates(spec: Mapping[str, Any]) -> list[Predicate]:
    """Return the predicates of a Placement, of which a cluster has to match one."""
    listed = spec.get("predicates") or [{}]
    return [_predicate(item.get("requiredClusterSelector") or {}) for item in listed]


def _predicate(selector: Mapping[str, Any]) -> Predicate:
    of_labels = label_selector_of(selector.get("labelSelector") or {})
    of_claims = label_selector_of(selector.get("claimSelector") or {})
    expressions = (selector.get("celSelector") or {}).get("celExpressions") or []

    def fits(cluster: Object) -> bool:
        listed = cluster.get("status", {}).get("clusterClaims") or []
        return (
            isinstance(of_labels, LabelSelector)
            and of_labels.matches(cluster["metadata"].get("labels") or {})
            and isinstance(of_claims, LabelSelector)
            and of_claims.matches({claim["name"]: claim.get("value", "") for claim in listed})
            and all(holds(expression, {"managedCluster": cluster}) for expression in expressions)
        )

    return fits


def _misconfigured(wrong: str) -> Condition:
    if wrong:
        message = f"TaintToleration:{wrong}"
        return Condition("PlacementMisconfigured", "True", "Misconfigured", message)
    message = "Placement configurations check pass"
    return Condition("PlacementMisconfigured", "False", "Succeedconfigured", message)


def _satisfied(spec: Mapping[str, Any], filtered: _Filtered, chosen: int) -> Condition:
    number = spec.get("numberOfClusters")
    unscheduled = 0 if number is None else number - chosen
    sets = ",".join(sorted(filtered.eligible_sets))
    asked = ",".join(spec.get("clusterSets") or ())
    failures = (
        (
            not filtered.bindings,
            "NoManagedClusterSetBindings",
            "No valid ManagedClusterSetBindings found in placement namespace",
        ),
        (
            not filtered.eligible_sets,
            "NoIntersection",
            f"None of ManagedClusterSets [{asked}] is bound to placement namespace",
        ),
        (
            not filtered.members,
            "AllManagedClusterSetsEmpty",
            f"All ManagedClusterSets [{sets}] have no member ManagedCluster",
        ),
        (
            not chosen,
            "NoManagedClusterMatched",
            "No ManagedCluster matches any of the cluster predicate",
        ),
        (
            unscheduled > 0,
            "NotAllDecisionsScheduled",
            f"{unscheduled} cluster decisions unscheduled",
        ),
    )
    for failed, reason, message in failures:
        if failed:
            return Condition("PlacementSatisfied", "False", reason, message)
    return Condition(
        "PlacementSatisfied", "True", "AllDecisionsScheduled", "All cluster decisions scheduled"
    )


def _decision(placement: Object, chosen: Sequence[str], decision: Object | None) -> list[Change]:
    if decision is None:
        return [Create(PLACEMENT_DECISION, _decision_object(placement))]
    decisions = [{"clusterName": cluster, "reason": ""} for cluster in chosen]
    return set_status(PLACEMENT_DECISION, decision, {"decisions": decisions})


def clusters_of(decision: Object) -> list[str]:
    """Return the clusters that a PlacementDecision names."""
    return [item["clusterName"] for item in decision.get("status", {}).get("decisions") or ()]


def _decision_object(placement: Object) -> Object:
    metadata = placement["metadata"]
    return PLACEMENT_DECISION.object(
        metadata={
            "name": f"{metadata['name']}-decision-1",
            "namespace": metadata["namespace"],
            "labels": {PLACEMENT_LABEL: metadata["name"]},
            "ownerReferences": [
                PLACEMENT.object(
                    name=metadata["name"],
                    uid=metadata["uid"],
                    controller=True,
                    blockOwnerDeletion=True,
                )
            ],
        }
    )


def _status(
    placement: Object, selected: int, found: Iterable[Condition], *, now: str
) -> list[Change]:
    before = (placement.get("status") or {}).get("conditions") or []
    conditions = merged(before, list(found), now=now)
    status = {"numberOfSelectedClusters": selected, "conditions": conditions}
    return set_status(PLACEMENT, placement, status)
