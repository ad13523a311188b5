"""The way to a decision as it is shown."""

from dataclasses import replace

from optimizer.explanation.steps import way
from optimizer.formulate import formulate
from optimizer.transition.board import unhurried
from optimizer.transition.start import start
from tests.optimizer.build import fleet
from tests.optimizer.explanation.solvers import RESOLVE


def test_a_policy_that_nothing_asked_for_can_use_is_released_all_the_same() -> None:
    given = fleet({"c": [("all", 1), ("3g", 2)]}, {"a": 2}, {("c", "a", "3g"): 10.0})
    (cluster,) = given.clusters
    old, new = cluster.candidates
    current = replace(cluster, candidates=(replace(old, current=True), new))
    now = replace(given, clusters=(current,))
    problem = formulate(now)
    goal = RESOLVE(problem).decision
    found = way(now, problem, start(problem, goal), goal, unhurried)
    assert found is not None
    changed = [
        ([item.policy for item in step.release], [item.policy for item in step.enforce])
        for step in found.steps
        if step.enforce
    ]
    assert changed == [(["all"], ["3g"])]
    assert found.message.endswith("is not known here: all on c")
    assert way(given, problem, start(problem, goal), goal, unhurried) is None
