"""The change of a limit that a decision needs."""

from dataclasses import replace

import pytest

from optimizer.domain.fleet import FleetLimit
from optimizer.explain.conflicts.feasibility_problem import RequiredReplicas
from optimizer.explain.conflicts.limit_kinds import FleetWideLimit
from optimizer.explain.repairs.limit_changes import Sizing, limit_change
from optimizer.model.formulate import formulate
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE


@pytest.mark.parametrize(
    ("most", "change"), [(4.0, "raise power from 4 to 5"), (5.0, None), (6.0, None)]
)
def test_a_limit_that_a_decision_keeps_is_not_raised(most: float, change: str | None) -> None:
    given = fleet({"c": [("3g", 1)]}, {"a": 1}, {("c", "a", "3g"): 10.0})
    (a,) = given.workloads
    given = replace(given, workloads=(replace(a, uses=(("watts", 5.0),)),))
    wide, limited = (
        replace(given, limits=(FleetLimit("power", value, uses="watts"),)) for value in (9.0, most)
    )
    problem = formulate(wide)
    sizing = Sizing(limited, RequiredReplicas("a", {"a": 1}), problem, RESOLVE(problem).decision)
    found = limit_change(FleetWideLimit("fleet_limits", "power", "power"), sizing)
    assert (found and found.message) == change
