"""Reads the decision in force from the generated Placements and PlacementBindings.

PlacementDecisions are no source: they lag until the clusters' claims are compliant.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dsf.kube.port import Object
from optimizer.domain.fleet import Selector
from optimizer.domain.solution import PolicyEnforcement
from optimizer.snapshot.object_readers import generated_by, name_of
from optimizer.snapshot.observation import Observation

CEL_CLUSTER_NAME = re.compile(r'"([a-z0-9.-]+)"')
"""A cluster's name in the CEL expression of a generated Placement."""


@dataclass(frozen=True, slots=True)
class CurrentDecisions:
    """The clusters that each generated Placement selects, and the policies bound to clusters."""

    placements: Mapping[str, tuple[str, ...]]
    policies: frozenset[PolicyEnforcement]


def read_current_decisions(
    observation: Observation, selectors: Mapping[str, Selector], optimization: str | None
) -> CurrentDecisions:
    """Return the decision in force of one optimization, or of all of a namespace.

    What was not generated is ignored.
    """
    by_label = {(item.key, item.cluster): name for name, item in selectors.items()}
    placements = {
        name_of(obj): tuple(
            dict.fromkeys(cluster for cluster in _clusters(obj, by_label) if cluster in selectors)
        )
        for obj in generated_by(observation.placements, optimization)
    }
    policies = (
        PolicyEnforcement(cluster, str(subject.get("name")))
        for binding in generated_by(observation.bindings, optimization)
        for cluster in placements.get(str((binding.get("placementRef") or {}).get("name")), ())
        for subject in binding.get("subjects") or ()
    )
    return CurrentDecisions(placements, frozenset(policies))


def _clusters(placement: Object, by_label: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield the clusters that a generated Placement selects."""
    for predicate in (placement.get("spec") or {}).get("predicates") or ():
        wanted = predicate.get("requiredClusterSelector") or {}
        labels = wanted.get("labelSelector") or {}
        pairs = list((labels.get("matchLabels") or {}).items())
        for expression in labels.get("matchExpressions") or ():
            if expression.get("operator") == "In":
                pairs += [
                    (expression.get("key"), value) for value in expression.get("values") or ()
                ]
        yield from (by_label[pair] for pair in pairs if pair in by_label)
        for expression in (wanted.get("celSelector") or {}).get("celExpressions") or ():
            yield from CEL_CLUSTER_NAME.findall(str(expression))
