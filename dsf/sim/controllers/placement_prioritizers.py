"""Simulated prioritizers of OCM's placement controller: AddOn, Balance and Steady.

Source: pkg/placement/plugins of OCM v1.2.1.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from dsf.kube.port import Object

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
