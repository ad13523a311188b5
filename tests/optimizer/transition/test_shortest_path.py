"""The search for a shortest path, within its limit of states."""

import pytest

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.formulate import formulate
from optimizer.transition.transition import shortest_path
from optimizer.transition.transition_state import TransitionProblem
from tests.optimizer.build import fleet


@pytest.mark.parametrize(("most_states", "found"), [(1, False), (2, True)])
def test_no_more_states_are_left_than_the_limit_says(most_states: int, *, found: bool) -> None:
    """The goal is one move from the start: the second state of the search."""
    problem = formulate(fleet({"c": [("3g", 1)]}, {"a": 1}, {("c", "a", "3g"): 10.0}))
    policies = (PolicyEnforcement("c", "3g"),)
    moves = TransitionProblem(
        problem, Decision(policies), Decision(policies, (Assignment("a", "c", "3g"),))
    )
    path = shortest_path(moves, (), most_states=most_states)
    assert (path is not None) == found
