"""Which policies of a pool another one replaces at no loss."""

from typing import Any

import numpy as np
import pytest

from optimizer.model.parameters import ClusterResource, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.solve.blocks.sites import undominated_policies

SMALL: dict[str, Any] = {"supplies": ((0, 1.0),)}
LARGE: dict[str, Any] = {"supplies": ((0, 2.0),)}
OTHER: dict[str, Any] = {"supplies": ((1, 2.0),)}


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (SMALL, LARGE, {1}),
        (LARGE, SMALL, {0}),
        (SMALL, SMALL, {0}),
        (SMALL, SMALL | {"current": True}, {1}),
        (SMALL, OTHER, {0, 1}),
        (SMALL, LARGE | {"value": -1.0}, {0, 1}),
        (SMALL | {"current": True}, LARGE, {0, 1}),
        (SMALL | {"current": True}, LARGE | {"current": True}, {1}),
        (SMALL | {"current": True}, LARGE | {"value": 1.0}, {1}),
        (SMALL, LARGE | {"pool": "second"}, {0, 1}),
    ],
)
def test_a_policy_stays_unless_another_supplies_as_much_costs_no_more_and_wins_ties(
    first: dict[str, Any], second: dict[str, Any], kept: set[int]
) -> None:
    policies = tuple(
        ProblemPolicy(**{"cluster": 0, "pool": "", "name": name, **own})
        for name, own in (("p", first), ("q", second))
    )
    given = Problem(
        ("c",),
        (ClusterResource(0, "gpu", "d"), ClusterResource(0, "gpu", "e")),
        policies,
        (ProblemWorkload("w", "w", "gpu", 1.0),),
        np.full((1, 2), 5.0),
        np.zeros(2),
    )
    assert undominated_policies(given, frozenset()) == kept
    assert undominated_policies(given, frozenset({0, 1})) == {0, 1}
