"""Conflicts that keep a workload out, and repairs that place it, checked by other solvers."""

import random
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice

import pytest

from benchmarks.optimizer.explanations import fleet as benchmark_fleet
from benchmarks.optimizer.instances import Kind, instance
from optimizer.domain.fleet import Fleet, FleetLimit, Supply, Workload
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, Solution
from optimizer.explain.case import BudgetExceeded, FindNearOptimal, ProblemSolver, find_none
from optimizer.explain.conflicts.correction_sets import (
    ConflictSearch,
    infeasible_subsystem,
    minimal_correction_sets,
    sized_repairs,
)
from optimizer.explain.conflicts.feasibility import WORTH, replica_counts
from optimizer.explain.conflicts.limits import RelaxableLimit, RequiredReplicas, relaxable_limits
from optimizer.explain.conflicts.repairs import RepairTrials
from optimizer.explain.conflicts.unplaced_conflicts import UnplacedReasons, short_of_replicas
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.wire.explanation import UnplacedReason
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE, checked, close, possible, spent
from tests.optimizer.random_problems import draw_fleet

CASES, PARTS = 200, 8
UNSELECTABLE = ", which OCM can't select for it"


def explained(
    given: Fleet, name: str, solve: ProblemSolver = RESOLVE, find_near: FindNearOptimal = find_none
) -> UnplacedReason:
    problem = formulate(given)
    return UnplacedReasons(given, problem, RESOLVE(problem), solve, find_near).of(name)


def two_on_one(amount: int = 2) -> Fleet:
    """One cluster with room for one of two workloads."""
    scores = {("c", "first", "3g"): 50.0, ("c", "second", "3g"): 20.0}
    return fleet({"c": [("3g", amount)]}, {"first": 2, "second": 2}, scores)


def messages(found: UnplacedReason) -> list[str]:
    return [item.message for item in found.limits]


def changes(found: UnplacedReason) -> list[str]:
    assert found.remedy is not None
    assert found.remedy.verified
    return [item.message for item in found.remedy.changes]


def test_a_full_cluster_and_who_fills_it_are_in_the_way() -> None:
    found = explained(two_on_one(), "second")
    assert messages(found) == [
        "cluster c supplies at most 2 gpu 3g",
        "workload first keeps running",
    ]
    assert found.irreducible
    assert changes(found) == ["add 2 gpu 3g to cluster c, available whichever policy it enforces"]


def test_only_what_is_lacking_is_added() -> None:
    assert changes(explained(two_on_one(3), "second")) == [
        "add 1 gpu 3g to cluster c, available whichever policy it enforces"
    ]


def test_constraints_of_its_own_are_named() -> None:
    given = two_on_one(4)
    first, second = given.workloads
    picky = replace(given, workloads=(first, replace(second, minimum_score=30.0)))
    found = explained(picky, "second")
    assert messages(found) == ["workload second accepts no score below 30"]
    assert changes(found) == ["lower the minimum of workload second from 30 to 20"]


@pytest.mark.parametrize(
    ("constraint", "change"),
    [
        ({"clusters": ("x",)}, "let workload second run on c too"),
        ({"excluded_clusters": ("c", "d")}, "let workload second run on c, which it excludes"),
        (
            {"unselectable": ("c", "d")},
            f"let workload second run on c{UNSELECTABLE}: see the issues of the plan",
        ),
    ],
    ids=["pinned", "excluded", "unselectable"],
)
def test_a_workload_is_let_onto_the_cluster_that_has_room(
    constraint: dict[str, tuple[str, ...]], change: str
) -> None:
    scores = {(at, "second", "3g"): 20.0 for at in "cd"} | {("d", "first", "3g"): 50.0}
    supplies = {"c": [("3g", 2)], "d": [("3g", 2)]}
    given = fleet(supplies, {"first": 2, "second": 2}, scores)
    first, second = given.workloads
    barred = Workload(
        **{item.name: getattr(second, item.name) for item in fields(second)} | constraint
    )
    found = explained(replace(given, workloads=(first, barred)), "second")
    assert changes(found) == [change]


def test_each_of_two_equals_is_told_its_own_repair() -> None:
    scores = {("c", name, "3g"): 20.0 for name in ("one", "two")}
    given = fleet({"c": [("3g", 4)]}, {"one": 2, "two": 2}, scores)
    given = replace(
        given,
        workloads=tuple(replace(item, app="same", minimum_score=30.0) for item in given.workloads),
        scores={"score": ScoreMatrix.of({("c", "same", "3g"): 20.0})},
    )
    problem = formulate(given)
    conflicts = UnplacedReasons(given, problem, RESOLVE(problem), RESOLVE)
    for name in ("one", "two"):
        found = conflicts.of(name)
        assert messages(found) == [f"workload {name} accepts no score below 30"]
        assert changes(found) == [f"lower the minimum of workload {name} from 30 to 20"]


def test_a_repair_for_one_more_replica_keeps_those_that_run() -> None:
    """More of c, where it is worth most, would not help: it runs there already."""
    scores = {("c", "a", "3g"): 50.0, ("d", "a", "3g"): 20.0, ("e", "a", "3g"): 20.0}
    given = fleet({"c": [("3g", 3)], "d": [("3g", 2)], "e": [("3g", 1)]}, {"a": 2}, scores)
    (a,) = given.workloads
    found = explained(replace(given, workloads=(replace(a, replicas=3),)), "a")
    assert messages(found) == ["cluster e supplies at most 1 gpu 3g"]
    assert changes(found) == ["add 1 gpu 3g to cluster e, available whichever policy it enforces"]
    assert found.remedy is not None
    assert [item.cluster for item in found.remedy.places] == ["c", "d", "e"]
    assert found.remedy.losing == ()


def test_a_fleet_wide_limit_is_raised_as_far_as_needed() -> None:
    given = two_on_one(4)
    watts = tuple(replace(item, uses=(("watts", 5.0),)) for item in given.workloads)
    found = explained(
        replace(given, workloads=watts, limits=(FleetLimit("power", 7.0, uses="watts"),)), "second"
    )
    assert messages(found) == ["power is at most 7", "workload first keeps running"]
    assert changes(found) == ["raise power from 7 to 10"]


def test_what_fits_but_does_not_pay_says_what_it_would_cost() -> None:
    scores = {("c", "first", "3g"): 50.0, ("c", "first", "2g"): 5.0, ("c", "second", "2g"): 20.0}
    given = fleet({"c": [("3g", 2), ("2g", 4)]}, {"first": 2, "second": 2}, scores)
    found = explained(given, "second")
    assert found.limits == ()
    assert found.lost is not None
    assert found.lost.total == 25
    assert changes(found) == ["raise second's score by more than 25 on every cluster"]


def test_what_costs_only_its_own_priority_needs_a_higher_score() -> None:
    scores = {("c", "first", "3g"): 50.0, ("c", "first", "2g"): 5.0, ("c", "second", "2g"): 20.0}
    scores[("d", "third", "3g")] = 10.0
    supplies = {"c": [("3g", 2), ("2g", 4)], "d": [("3g", 1)]}
    given = fleet(supplies, {"first": 2, "second": 2, "third": 1}, scores)
    first, second, third = given.workloads
    found = explained(
        replace(given, workloads=(first, second, replace(third, priority=1))), "second"
    )
    assert changes(found) == ["raise second's score by more than 25 on every cluster"]


def test_what_fits_and_costs_nothing_is_worth_as_much() -> None:
    scores = {("c", "first", "3g"): 50.0, ("c", "first", "2g"): 30.0, ("c", "second", "2g"): 20.0}
    given = fleet({"c": [("3g", 2), ("2g", 4)]}, {"first": 2, "second": 2}, scores)
    problem = formulate(given)
    alone = Decision((PolicyEnforcement("c", "3g"),), (Assignment("first", "c", "3g"),))
    solution = replace(RESOLVE(problem), decision=alone)
    found = UnplacedReasons(given, problem, solution, RESOLVE).of("second")
    assert found.message == "there is room for it, and a solution with it is worth as much"


def test_without_time_no_repair_is_sized() -> None:
    given, wanted = two_on_one(), RequiredReplicas("second", {"first": 1, "second": 1})
    limits = relaxable_limits(given, wanted)
    search = ConflictSearch(given, wanted, limits, RESOLVE, lambda: False)
    with pytest.raises(BudgetExceeded):
        sized_repairs(search, [limits[:1]])


def test_a_place_worth_less_than_nothing_can_cost_least() -> None:
    scores = {("c", "first", "3g"): 100.0, ("c", "second", "3g"): 99.98}
    scores |= {("d", "second", "3g"): -0.01, ("d", "third", "3g"): 40.0}
    sizes = {"first": 1, "second": 1, "third": 1}
    found = explained(
        fleet({"c": [("3g", 1)], "d": [("3g", 2)]}, sizes, scores), "second", find_near=close
    )
    assert found.lost is not None
    assert found.lost.total == pytest.approx(0.01)


def test_a_change_that_makes_it_pay_is_solved_again() -> None:
    scores = {(cluster, "only", "3g"): -1.0 for cluster in ("c", "d")}
    given = fleet({cluster: [("3g", 2)] for cluster in ("c", "d")}, {"only": 2}, scores)
    found = explained(replace(given, workloads=(replace(given.workloads[0], replicas=2),)), "only")
    assert changes(found) == ["raise only's score by more than 1 on every cluster"]
    assert found.remedy is not None
    assert [item.cluster for item in found.remedy.places] == ["c", "d"]


def test_a_limit_is_raised_for_company_too() -> None:
    scores = {("c", "first", "3g"): 50.0, ("c", "second", "3g"): -1.0}
    given = fleet({"c": [("3g", 4)]}, {"first": 2, "second": 2}, scores)
    first, second = (replace(item, uses=(("watts", 5.0),)) for item in given.workloads)
    shy = replace(first, workload_affinity="app=second")
    social = (shy, replace(second, labels={"app": "second"}))
    limit = FleetLimit("power", 4.0, uses="watts")
    found = explained(replace(given, workloads=social, limits=(limit,)), "first")
    assert changes(found) == ["raise power from 4 to 10"]


def test_a_score_that_is_missing_is_asked_for() -> None:
    given = fleet({"c": [("3g", 2)]}, {"only": 2}, {})
    found = explained(given, "only")
    assert messages(found) == ["app only runs only on devices for which it has a usable score"]
    assert changes(found)[0] == "deliver a score: score for only on 3g of cluster c"


def test_a_kind_that_nobody_supplies_can_be_added() -> None:
    given = two_on_one(4)
    first, second = given.workloads
    hungry = replace(given, workloads=(first, replace(second, requests=(("cpu", 3.0),))))
    found = explained(hungry, "second")
    assert messages(found) == ["cluster c supplies at most 0 cpu"]
    assert changes(found) == ["add 3 cpu to cluster c"]
    enough = replace(hungry.clusters[0], base=(Supply("cpu", "", 3.0),))
    assert short_of_replicas(hungry, RESOLVE(formulate(replace(hungry, clusters=(enough,))))) == ()


@pytest.mark.parametrize("others", [0, 2])
def test_what_asks_for_nothing_needs_a_device_all_the_same(others: int) -> None:
    scores = {("c", "first", "2g"): 50.0, ("c", "second", "2g"): 20.0}
    given = fleet({"c": []}, {"first": others, "second": 0}, scores)
    listed = replace(given.clusters[0], base=(Supply("gpu", "2g", 0.0),))
    found = explained(replace(given, clusters=(listed,)), "second")
    assert messages(found) == ["cluster c supplies at most 0 gpu 2g"]
    assert changes(found) == [f"add {max(1, others)} gpu 2g to cluster c"]


def test_where_it_runs_already_is_no_room_for_one_more() -> None:
    scores = {(cluster, "first", "3g"): 50.0 for cluster in ("c", "d")}
    given = fleet({"c": [("3g", 3)], "d": [("3g", 1)]}, {"first": 2}, scores)
    (first,) = given.workloads
    found = explained(replace(given, workloads=(replace(first, replicas=2),)), "first")
    assert messages(found) == ["cluster d supplies at most 1 gpu 3g"]
    assert changes(found) == ["add 1 gpu 3g to cluster d, available whichever policy it enforces"]


def test_more_replicas_than_clusters_is_no_matter_of_limits() -> None:
    given = two_on_one(8)
    first, second = given.workloads
    found = explained(replace(given, workloads=(first, replace(second, replicas=2))), "second")
    assert found.message == "it already runs on every cluster that the request names"


def test_without_time_nothing_is_claimed() -> None:
    given = two_on_one(4)
    first, second = given.workloads
    alone = replace(second, workload_anti_affinity="app=first")
    found = explained(
        replace(given, workloads=(replace(first, labels={"app": "first"}), alone)), "second", spent
    )
    assert (found.limits, found.irreducible, found.remedy) == ((), False, None)
    assert found.message == "not computed in time"


def test_limits_are_told_though_the_time_is_over_before_a_remedy_is_found() -> None:
    given = two_on_one()
    problem = formulate(given)

    def impatient(changed: Problem) -> Solution:
        if any(option.value for option in changed.policies) or changed.values.max() < WORTH:
            raise BudgetExceeded
        return RESOLVE(changed)

    conflicts = UnplacedReasons(given, problem, RESOLVE(problem), impatient)
    found = conflicts.of("second")
    assert len(found.limits) == 2
    assert found.irreducible
    assert found.remedy is None
    assert found.message.endswith("what would change that was not computed in time")
    assert conflicts.late == ["second"]


def test_what_a_plan_that_is_not_proven_loses_is_not_called_late() -> None:
    given = two_on_one(2)
    problem = formulate(replace(given, workloads=given.workloads[1:]))
    hasty = replace(RESOLVE(problem), status="Feasible", decision=Decision())
    conflicts = UnplacedReasons(given, formulate(given), hasty, RESOLVE)
    assert "not proven" in conflicts.of("second").message
    assert conflicts.late == []


def infeasible_cases(first: int) -> Iterator[tuple[Fleet, RequiredReplicas]]:
    """Draw fleets, and yield each workload that lacks a place for which there is no room."""
    seed = first
    while True:
        rng = random.Random(seed)  # noqa: S311 - to repeat, not to guard
        drawn = draw_fleet(rng, clusters=rng.randint(1, 3), workloads=rng.randint(2, 5))
        solution = RESOLVE(formulate(drawn))
        found = replica_counts(solution.decision)
        for name in short_of_replicas(drawn, solution):
            wanted = RequiredReplicas(name, {**found, name: found.get(name, 0) + 1})
            if wanted.counts[name] <= len(drawn.clusters) and not possible(
                drawn, wanted, (), RESOLVE
            ):
                yield drawn, wanted
        seed += 1


def check(given: Fleet, wanted: RequiredReplicas) -> None:
    search = ConflictSearch(given, wanted, relaxable_limits(given, wanted), RESOLVE)
    found = infeasible_subsystem(search.limits, search.feasible_with)
    assert found.irreducible
    check_conflict(given, wanted, search.limits, found.members)
    check_remedy(search, found.members)


def check_conflict(
    given: Fleet,
    wanted: RequiredReplicas,
    named: tuple[RelaxableLimit, ...],
    members: tuple[RelaxableLimit, ...],
) -> None:
    """Without the others there is no room; without any one of them there is."""
    spare = [item for item in named if item not in members]
    assert possible(given, wanted, spare, checked) is False
    for member in members:
        assert possible(given, wanted, [*spare, member], checked) is True


def check_remedy(search: ConflictSearch, members: tuple[RelaxableLimit, ...]) -> None:
    """The changed problem has an optimum with the workload, and fewer limits would not do."""
    changes = sized_repairs(search, minimal_correction_sets(search, members))
    found = RepairTrials(search.fleet, RESOLVE, close).cheapest(search.required, changes)
    assert found is not None
    assert found.verified
    solution = checked(found.problem)
    assert solution.status == "Optimal"
    assert found.solution.objective_value == pytest.approx(solution.objective_value)
    assert violations(found.problem, found.solution.decision) == ()
    name = search.required.workload
    assert replica_counts(found.solution.decision)[name] >= search.required.counts[name]
    relaxed = [item for item in found.changes if "by more than" not in item.message]
    if len([item for item in relaxed if "raise the priority" not in item.message]) > 1:
        for barrier in search.limits:
            if barrier.changeable:
                assert not possible(search.fleet, search.required, [barrier], checked)


@pytest.mark.parametrize("cases", [3, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_random_conflicts_are_irreducible_and_changes_solve_again(cases: int) -> None:
    for given, wanted in islice(infeasible_cases(0), cases):
        check(given, wanted)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
def test_two_hundred_random_conflicts(part: int) -> None:
    for given, wanted in islice(infeasible_cases(10_000 * (1 + part)), CASES // PARTS):
        check(given, wanted)


@pytest.mark.parametrize("kind", ["prof", "dist"])
def test_what_is_alike_and_what_is_close_say_what_solving_each_says(kind: Kind) -> None:
    given = crowded(kind)
    problem = formulate(given)
    solution = RESOLVE(problem)
    together = UnplacedReasons(given, problem, solution, RESOLVE, close)
    names = short_of_replicas(given, solution)
    assert len(names) > 2
    for name in names[:3]:
        quick = together.of(name)
        slow = UnplacedReasons(given, problem, solution, RESOLVE).of(name)
        assert (quick.message, quick.limits, quick.irreducible) == (
            slow.message,
            slow.limits,
            slow.irreducible,
        )
        assert sizes(quick) == sizes(slow)


def sizes(found: UnplacedReason) -> list[float]:
    assert found.remedy is not None
    assert found.remedy.verified
    return [item.size for item in found.remedy.changes]


def crowded(kind: Kind) -> Fleet:
    whole = instance(6, 8, kind)
    return benchmark_fleet(replace(whole, gpus=whole.gpus[:2], scores=whole.scores[:, :2]))


def check_shared(given: Fleet, wanted: RequiredReplicas) -> int:
    """Check that an equal workload gets the same explanation, with its own name."""
    target = next(item for item in given.workloads if item.name == wanted.workload)
    both = replace(given, workloads=(*given.workloads, replace(target, name="twin")))
    problem = formulate(both)
    solution = RESOLVE(problem)
    if not {target.name, "twin"} <= set(short_of_replicas(both, solution)):
        return 0
    conflicts = UnplacedReasons(both, problem, solution, RESOLVE, close)
    first, second = conflicts.of(target.name), conflicts.of("twin")
    now = replica_counts(solution.decision)
    assert len(first.limits) == len(second.limits) or now.get("twin", 0) != now.get(target.name, 0)
    if not second.limits:
        return 0
    asked = RequiredReplicas("twin", {**now, "twin": now.get("twin", 0) + 1})
    named = relaxable_limits(both, asked)
    members = tuple(item for item in named if item.message in messages(second))
    assert len(members) == len(second.limits)
    check_conflict(both, asked, named, members)
    return 1


@pytest.mark.exhaustive
def test_equals_are_kept_out_by_the_same() -> None:
    assert sum(check_shared(*case) for case in islice(infeasible_cases(3_000), 3))


@pytest.mark.exhaustive
def test_many_equals_are_kept_out_by_the_same() -> None:
    assert sum(check_shared(*case) for case in islice(infeasible_cases(4_000), 60)) > 20
