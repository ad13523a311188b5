from optimizer.formulate import formulate
from optimizer.problem import objective, upper_bound
from optimizer.solution import Choice, Decision, Place
from tests.optimizer.build import fleet


def test_only_what_could_be_used_becomes_a_variable() -> None:
    problem = formulate(
        fleet(
            {"c": [("small", 1), ("large", 2), ("unscored", 9)]},
            {"w": 2, "huge": 99},
            {("c", "w", "small"): 5, ("c", "w", "large"): 6, ("c", "huge", "large"): 7},
        )
    )
    assert problem.variables == (Choice("c", "large"), Place("w", "c", "large"))
    assert [task.name for task in problem.tasks] == ["w"]


def test_the_value_of_a_decision_is_the_sum_of_its_scores() -> None:
    problem = formulate(
        fleet({"c": [("d", 2)]}, {"v": 1, "w": 1}, {("c", "v", "d"): 3, ("c", "w", "d"): -1})
    )
    both = Decision((Choice("c", "d"),), (Place("v", "c", "d"), Place("w", "c", "d")))
    assert objective(problem, both) == 2
    assert upper_bound(problem) == 3
