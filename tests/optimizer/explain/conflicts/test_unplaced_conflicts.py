"""Conflicts that keep a workload out, and repairs that place it, checked by other solvers."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from types import MappingProxyType
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from benchmarks.optimizer.explanations import fleet as benchmark_fleet
from benchmarks.optimizer.instances import Kind, instance
from optimizer.domain.fleet import Fleet, FleetLimit, Objective, Supply, Workload
from optimizer.domain.issue import TakenIssue
from optimizer.domain.nodes import NodeGroup, PodGroup
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, Solution
from optimizer.explain.case import BudgetExceeded, ProblemSolver
from optimizer.explain.conflicts.correction_sets import (
    infeasible_subsystem,
    minimal_correction_sets,
    sized_repairs,
)
from optimizer.explain.conflicts.feasibility import WORTH, FeasibilityOracle, replica_counts
from optimizer.explain.conflicts.limits import FleetWideLimit, RelaxableLimit, RequiredReplicas
from optimizer.explain.conflicts.relaxable_limits import own_constraints, relaxable_limits
from optimizer.explain.conflicts.repairs import RepairTrials
from optimizer.explain.conflicts.unplaced_conflicts import UnplacedReasons, short_of_replicas
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.wire.explanation import UnplacedReason
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE, checked, possible, spent
from tests.optimizer.random_problems import draw_fleet


def explained(given: Fleet, name: str, solve: ProblemSolver = RESOLVE) -> UnplacedReason:
    problem = formulate(given)
    return UnplacedReasons(given, problem, RESOLVE(problem), solve).of(name)


FIRST, SECOND = ("c", "first", "3g"), ("c", "second", "3g")
WORTH_MORE = {FIRST: 50.0, SECOND: 20.0}
ON_D_TOO = {("d", "first", "3g"): 50.0, SECOND: 20.0, ("d", "second", "3g"): 20.0}
EITHER_LAYOUT = {FIRST: 50.0, ("c", "first", "2g"): 5.0, ("c", "second", "2g"): 20.0}
WHICHEVER = "to cluster c, available whichever policy it enforces"


def pair(
    supplies: Mapping[str, Sequence[tuple[str, int]]],
    scores: Mapping[tuple[str, str, str], float] = WORTH_MORE,
    *,
    first: Mapping[str, Any] = MappingProxyType({}),
    second: Mapping[str, Any] = MappingProxyType({}),
    **changed: Any,
) -> Fleet:
    """Two workloads that ask for two devices, unless their fields say otherwise."""
    given = fleet(supplies, {"first": 2, "second": 2}, scores)
    one, other = given.workloads
    return replace(given, workloads=(replace(one, **first), replace(other, **second)), **changed)


def two_on_one(amount: int = 2, **changed: Any) -> Fleet:
    """One cluster with room for one of two workloads."""
    return pair({"c": [("3g", amount)]}, **changed)


def listed_without_supply(others: int) -> Fleet:
    """A cluster that lists a device without any supply of it."""
    scores = {("c", name, "2g"): 20.0 for name in ("first", "second")}
    given = pair({"c": []}, scores, first={"amount": others}, second={"amount": 0})
    empty = replace(given.clusters[0], base=(Supply("gpu", "2g", 0.0),))
    return replace(given, clusters=(empty,))


def used_up() -> Fleet:
    """A cluster whose devices a workload of others uses."""
    given = pair({"c": []}, first={"amount": 0})
    taken = TakenIssue("UsedByOthers", "", "c", taken=frozenset({("gpu", "")}), users=("vision",))
    empty = replace(given.clusters[0], used_by_others=(Supply("gpu", "3g", 2.0),))
    return replace(given, clusters=(empty,), workloads=given.workloads[1:], issues=(taken,))


WATTS = {"uses": (("watts", 5.0),)}
ON_BOTH = {(cluster, name, "3g"): 20.0 for cluster in "cd" for name in ("first", "second")}
KEPT_OUT: dict[str, tuple[Fleet, list[str], str]] = {
    "a full cluster and who fills it": (
        two_on_one(),
        ["cluster c supplies at most 2 gpu 3g", "workload first is placed"],
        f"add 2 gpu 3g {WHICHEVER}",
    ),
    "only what is lacking is added": (
        two_on_one(3),
        ["cluster c supplies at most 3 gpu 3g", "workload first is placed"],
        f"add 1 gpu 3g {WHICHEVER}",
    ),
    "its minimum": (
        two_on_one(4, second={"minimum_score": 30.0}),
        ["workload second accepts no score below 30"],
        "lower the minimum of workload second from 30 to 20",
    ),
    "where it is pinned": (
        pair({"c": [("3g", 2)], "d": [("3g", 2)]}, ON_D_TOO, second={"clusters": ("x",)}),
        ["workload second runs only on x"],
        "let workload second run on c too",
    ),
    "what it excludes": (
        pair(
            {"c": [("3g", 2)], "d": [("3g", 2)]}, ON_D_TOO, second={"excluded_clusters": ("c", "d")}
        ),
        ["workload second never runs on c, d"],
        "let workload second run on c, which it excludes",
    ),
    "what OCM can't select": (
        pair({"c": [("3g", 2)], "d": [("3g", 2)]}, ON_D_TOO, second={"unselectable": ("c", "d")}),
        ["workload second has a Placement for which OCM can't select c, d"],
        "let workload second run on c, which OCM can't select for it: see the issues of the plan",
    ),
    "a fleet-wide limit": (
        two_on_one(4, first=WATTS, second=WATTS, limits=(FleetLimit("power", 7.0, uses="watts"),)),
        ["power is at most 7", "workload first is placed"],
        "raise power from 7 to 10",
    ),
    "a limit that it breaks only with company": (
        pair(
            {"c": [("3g", 4)]},
            {FIRST: -1.0, SECOND: 50.0},
            first={**WATTS, "labels": {"app": "first"}},
            second={**WATTS, "workload_affinity": "app=first"},
            limits=(FleetLimit("power", 4.0, uses="watts"),),
        ),
        ["power is at most 4"],
        "raise power from 4 to 10",
    ),
    "a kind that nobody supplies": (
        two_on_one(4, second={"requests": (("cpu", 3.0),)}),
        ["cluster c supplies at most 0 cpu"],
        "add 3 cpu to cluster c",
    ),
    "nothing asked for needs a device": (
        listed_without_supply(0),
        ["cluster c supplies at most 0 gpu 2g"],
        "add 1 gpu 2g to cluster c",
    ),
    "nothing asked for, where others ask for two": (
        listed_without_supply(2),
        ["cluster c supplies at most 0 gpu 2g"],
        "add 2 gpu 2g to cluster c",
    ),
    "who fills its only cluster has no other": (
        pair(
            {"c": [("3g", 2)], "d": [("3g", 2)]},
            ON_BOTH | {FIRST: 50.0},
            first={"clusters": ("c",)},
            second={"clusters": ("c",)},
        ),
        [
            "workload second runs only on c",
            "cluster c supplies at most 2 gpu 3g",
            "workload first runs only on c",
            "workload first is placed",
        ],
        f"add 2 gpu 3g {WHICHEVER}",
    ),
    "whom it needs runs elsewhere": (
        pair(
            {"c": [("3g", 4)], "d": [("3g", 4)]},
            ON_BOTH,
            first={"clusters": ("c",)},
            second={"clusters": ("d",), "together_with": ("first",)},
        ),
        [
            "workload second runs only on d",
            "workload second runs together with first",
            "workload first runs only on c",
        ],
        "let workload second run on c too",
    ),
    "what a cluster may run, whoever it is": (
        two_on_one(4, limits=(FleetLimit("workloads on c", 1.0, cluster="c"),)),
        ["cluster c runs at most 1 workload", "workload first is placed"],
        "let cluster c run 2 workloads instead of 1",
    ),
    "what others use up, and who they are": (
        used_up(),
        ["cluster c has 0 of 2 gpu 3g free (used by vision)"],
        "add 2 gpu 3g to cluster c",
    ),
    "a device that no cluster has": (
        two_on_one(4, second={"devices": ("h100",)}),
        ["workload second runs only on h100, and clusters and policies supply only 3g"],
        "let workload second run on device 3g too",
    ),
    "where it runs already is no room for one more": (
        pair(
            {"d": [("3g", 3)], "c": [("3g", 1)]},
            {SECOND: 50.0, ("d", "second", "3g"): 50.0},
            second={"replicas": 2},
        ),
        ["cluster c supplies at most 1 gpu 3g"],
        f"add 1 gpu 3g {WHICHEVER}",
    ),
}


@pytest.mark.parametrize(("given", "limits", "change"), KEPT_OUT.values(), ids=KEPT_OUT)
def test_what_keeps_a_workload_out_is_named_and_changed_by_the_least(
    given: Fleet, limits: list[str], change: str
) -> None:
    found = explained(given, "second")
    assert messages(found) == limits
    assert found.irreducible
    assert changes(found) == [change]


def test_a_score_that_is_missing_is_asked_for() -> None:
    found = explained(fleet({"c": [("3g", 2)]}, {"only": 2}, {}), "only")
    assert messages(found) == ["app only runs only on devices for which it has a usable score"]
    assert changes(found)[0] == "deliver a score: score for only on 3g of cluster c"


def test_a_repair_that_is_made_places_the_workload() -> None:
    hungry = KEPT_OUT["a kind that nobody supplies"][0]
    assert short_of_replicas(hungry, RESOLVE(formulate(hungry))) == ("second",)
    enough = replace(hungry.clusters[0], base=(Supply("cpu", "", 3.0),))
    made = replace(hungry, clusters=(enough,))
    assert short_of_replicas(made, RESOLVE(formulate(made))) == ()


@pytest.mark.parametrize("priorities", [False, True])
def test_what_fits_but_does_not_pay_says_what_it_would_cost(priorities: bool) -> None:
    """What costs only its own priority needs a higher score, not a higher priority."""
    given = pair({"c": [("3g", 2), ("2g", 4)]}, EITHER_LAYOUT)
    if priorities:
        third = Workload("third", "third", "gpu", 1, "third-placement", priority=1)
        here = replace(given.clusters[0], base=(Supply("gpu", "all", 1),))
        scores = ScoreMatrix.of({**EITHER_LAYOUT, ("c", "third", "all"): 10.0})
        given = replace(
            given, workloads=(*given.workloads, third), clusters=(here,), scores={"score": scores}
        )
    found = explained(given, "second")
    assert found.limits == ()
    assert found.lost is not None
    assert found.lost.total == 25
    assert changes(found) == ["raise second's score by more than 25 on every cluster"]


def messages(found: UnplacedReason) -> list[str]:
    return [item.message for item in found.limits]


def changes(found: UnplacedReason) -> list[str]:
    assert found.remedy is not None
    assert found.remedy.verified
    return [item.message for item in found.remedy.changes]


@pytest.mark.parametrize("in_time", [True, False])
def test_a_pod_that_no_node_of_many_clusters_holds_is_told_the_supply_that_lacks_least(
    in_time: bool,
) -> None:
    """One cluster has more than the others; both its supply and its nodes have to grow.

    Without the time for a solve, that is known but not verified.
    """

    def late(_: Problem) -> Solution:
        raise BudgetExceeded

    gpu = "nvidia.com/gpu"
    names = [f"c{number}" for number in range(24)]
    given = fleet(dict.fromkeys(names, ()), {"w": 8}, {(name, "w", "all"): 10.0 for name in names})
    clusters = tuple(
        replace(
            item,
            base=(Supply("gpu", "all", held),),
            nodes=(NodeGroup(1, {gpu: held, "pods": 110.0}),),
        )
        for number, item in enumerate(given.clusters)
        for held in (6.0 if number == 17 else 4.0,)
    )
    pods = (PodGroup(1, {gpu: 8.0, "pods": 1.0}),)
    workloads = tuple(replace(item, pods=pods, devices=("all",)) for item in given.workloads)
    given = replace(given, clusters=clusters, workloads=workloads)
    asked = iter(range(120))
    problem = formulate(given)
    found = UnplacedReasons(
        given,
        problem,
        RESOLVE(problem),
        RESOLVE if in_time else late,
        lambda: next(asked, None) is not None,
    ).of("w")
    assert found.remedy
    assert found.remedy.verified is in_time
    assert ("a cheaper change was not computed in time" in found.message) is not in_time
    assert {item.message for item in found.remedy.changes} == {
        "add 2 gpu all to cluster c17",
        "give cluster c17 a node for each Pod of workload w: add nodes, or end what holds them",
    }


def test_the_node_on_which_least_has_to_be_freed_is_named() -> None:
    """On c 2 of 8 are free on either node, on d 3 of 4 on its only one; the Pod asks for 4."""
    gpu = "nvidia.com/gpu"
    given = fleet({"c": (), "d": ()}, {"w": 4}, {(name, "w", "all"): 10.0 for name in "cd"})
    clusters = tuple(
        replace(
            item,
            base=(Supply("gpu", "all", count * (held - taken)),),
            nodes=(NodeGroup(count, {gpu: held, "pods": 110.0}, {gpu: taken}, names=names),),
        )
        for item, count, held, taken, names in (
            (given.clusters[0], 2, 8.0, 6.0, ("c-1", "c-2")),
            (given.clusters[1], 1, 4.0, 1.0, ("d-1",)),
        )
    )
    workload = replace(given.workloads[0], pods=(PodGroup(1, {gpu: 4.0}),), devices=("all",))
    both = replace(given, clusters=clusters, workloads=(workload,))
    needs = "each Pod of workload w needs a node with 4 nvidia.com/gpu free (the most on one is"
    found = explained(both, "w")
    assert messages(found) == [
        f"on cluster c {needs} 2 nvidia.com/gpu)",
        f"on cluster d {needs} 3 nvidia.com/gpu)",
    ]
    assert changes(found) == ["free 1 nvidia.com/gpu on node d-1 of cluster d"]
    alone = explained(replace(both, clusters=clusters[:1]), "w")
    assert changes(alone) == ["free 2 nvidia.com/gpu on node c-1 of cluster c"]


@pytest.mark.parametrize(
    ("current", "says", "change"),
    [
        ((), "workload first is placed", "leave out workload first"),
        (("c",), "workload first keeps running", "stop workload first"),
    ],
)
def test_only_what_runs_is_told_to_stop(current: tuple[str, ...], says: str, change: str) -> None:
    given = two_on_one(first={"current": current})
    wanted = RequiredReplicas("second", {"first": 1, "second": 1})
    limits = relaxable_limits(given, wanted)
    (runs,) = (item for item in limits if item.rule == "runs")
    assert runs.message == says
    oracle = FeasibilityOracle(given, wanted, limits, RESOLVE)
    assert [i.message for (i,) in sized_repairs(oracle, [(runs,)])] == [change]


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


def test_what_fits_and_costs_nothing_is_worth_as_much() -> None:
    given = pair({"c": [("3g", 2), ("2g", 4)]}, {**EITHER_LAYOUT, ("c", "first", "2g"): 30.0})
    problem = formulate(given)
    alone = Decision((PolicyEnforcement("c", "3g"),), (Assignment("first", "c", "3g"),))
    solution = replace(RESOLVE(problem), decision=alone)
    found = UnplacedReasons(given, problem, solution, RESOLVE).of("second")
    assert found.message == "there is room for it, and a solution with it is worth as much"


def test_without_time_no_repair_is_sized() -> None:
    given, wanted = two_on_one(), RequiredReplicas("second", {"first": 1, "second": 1})
    limits = relaxable_limits(given, wanted)
    oracle = FeasibilityOracle(given, wanted, limits, RESOLVE, lambda: False)
    with pytest.raises(BudgetExceeded):
        sized_repairs(oracle, [limits[:1]])


def test_another_workload_may_be_let_run_elsewhere() -> None:
    given = KEPT_OUT["who fills its only cluster has no other"][0]
    wanted, first = RequiredReplicas("second", {"first": 1, "second": 1}), given.workloads[0]
    pin = tuple(own_constraints(given, first))
    limits = (*relaxable_limits(given, wanted), *pin)
    ((change,),) = sized_repairs(FeasibilityOracle(given, wanted, limits, RESOLVE), [pin])
    assert change.message == "let workload first run on d too"


def test_a_place_worth_less_than_nothing_can_cost_least() -> None:
    scores = {("c", "first", "3g"): 100.0, ("c", "second", "3g"): 99.98}
    scores |= {("d", "second", "3g"): -0.01, ("d", "third", "3g"): 40.0}
    sizes = {"first": 1, "second": 1, "third": 1}
    found = explained(fleet({"c": [("3g", 1)], "d": [("3g", 2)]}, sizes, scores), "second")
    assert found.lost is not None
    assert found.lost.total == pytest.approx(0.01)


def test_a_change_that_makes_it_pay_is_solved_again() -> None:
    scores = {(cluster, "only", "3g"): -1.0 for cluster in ("c", "d")}
    given = fleet({cluster: [("3g", 2)] for cluster in ("c", "d")}, {"only": 2}, scores)
    found = explained(replace(given, workloads=(replace(given.workloads[0], replicas=2),)), "only")
    assert changes(found) == ["raise only's score by more than 1 on every cluster"]
    assert found.remedy is not None
    assert [item.cluster for item in found.remedy.places] == ["c", "d"]


@pytest.mark.parametrize(
    ("objectives", "change"),
    [
        ((Objective("score", invert=True),), "lower second's score by more than 20"),
        ((Objective("score", 0.5),), "raise second's score by more than 25"),
        (
            (Objective("score", 0.0), Objective("watts", 2.0, 0, 50, invert=True)),
            "lower second's score watts by more than 12.5",
        ),
    ],
)
def test_what_makes_it_pay_is_told_as_its_score_counts(
    objectives: tuple[Objective, ...], change: str
) -> None:
    watts = {place: 50 - worth / 2 for place, worth in EITHER_LAYOUT.items()}
    tables = {"score": EITHER_LAYOUT, "watts": watts}
    scores = {name: ScoreMatrix.of(table) for name, table in tables.items()}
    given = replace(pair({"c": [("3g", 2), ("2g", 4)]}), scores=scores, objectives=objectives)
    assert changes(explained(given, "second")) == [f"{change} on every cluster"]


def test_more_replicas_than_clusters_is_no_matter_of_limits() -> None:
    given = two_on_one(8)
    first, second = given.workloads
    found = explained(replace(given, workloads=(first, replace(second, replicas=2))), "second")
    assert found.message == (
        "it already runs on every cluster that the request names: name another cluster, or ask for"
        " 1 replica"
    )


def test_three_that_keep_apart_on_two_clusters_are_told_how_many_there_are() -> None:
    names = ("first", "second", "third")
    scores = {(cluster, name, "3g"): 20.0 for cluster in "cd" for name in names}
    given = fleet({"c": [("3g", 9)], "d": [("3g", 9)]}, dict.fromkeys(names, 2), scores)
    apart = tuple(
        replace(item, apart_from=tuple(name for name in names if name != item.name))
        for item in given.workloads
    )
    given = replace(given, workloads=apart)
    (left,) = short_of_replicas(given, RESOLVE(formulate(given)))
    found = explained(given, left)
    assert "leave no room on 2 clusters (c, d) while" in found.message
    assert found.irreducible
    assert [item.rule for item in found.limits] == ["apart", "apart", "runs", "runs"]


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
    assert found.remedy
    assert not found.remedy.verified
    assert [item.message for item in found.remedy.changes] == [f"add 2 gpu 3g {WHICHEVER}"]
    assert found.message.endswith("a cheaper change was not computed in time")
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
    oracle = FeasibilityOracle(given, wanted, relaxable_limits(given, wanted), RESOLVE)
    found = infeasible_subsystem(oracle.limits, oracle.feasible_with)
    assert found.irreducible
    check_conflict(given, wanted, oracle.limits, found.members)
    check_remedy(oracle, found.members)


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


def check_remedy(oracle: FeasibilityOracle, members: tuple[RelaxableLimit, ...]) -> None:
    """The changed problem has an optimum with the workload, and fewer limits would not do."""
    changes = sized_repairs(oracle, minimal_correction_sets(oracle, members))
    found = RepairTrials(oracle.fleet, RESOLVE).cheapest(oracle.required, changes)
    if found is None:
        # A place that lacks the score which a limit sums has room without it, however high it is.
        names = {item.name for item in members if isinstance(item, FleetWideLimit)}
        sums = tuple(
            replace(item, most=1e9) if item.score and item.name in names else item
            for item in oracle.fleet.limits
        )
        assert sums != oracle.fleet.limits
        raised = replace(oracle.fleet, limits=sums)
        assert possible(raised, oracle.required, [], checked) is False
        return
    assert found.places(oracle.required)
    solution = checked(found.problem)
    assert solution.status == "Optimal"
    assert found.solution.objective_value == pytest.approx(solution.objective_value)
    assert violations(found.problem, found.solution.decision) == ()
    name = oracle.required.workload
    assert replica_counts(found.solution.decision)[name] >= oracle.required.counts[name]
    if any("of its nodes whole" in item.message for item in found.changes):
        return  # a policy is preferred to what needs fewer changes, but more GPUs
    relaxed = [item for item in found.changes if "by more than" not in item.message]
    if len([item for item in relaxed if "raise the priority" not in item.message]) > 1:
        for barrier in oracle.limits:
            if barrier.changeable:
                assert not possible(oracle.fleet, oracle.required, [barrier], checked)


@pytest.mark.parametrize(
    ("first", "cases"),
    [(0, 3), *(pytest.param(10_000 * part, 25, marks=pytest.mark.long) for part in range(1, 9))],
)
def test_random_conflicts_are_irreducible_and_changes_solve_again(first: int, cases: int) -> None:
    for given, wanted in islice(infeasible_cases(first), cases):
        check(given, wanted)


@pytest.mark.parametrize("kind", ["prof", "dist"])
def test_what_is_alike_says_what_solving_each_says(kind: Kind) -> None:
    given = crowded(kind)
    problem = formulate(given)
    solution = RESOLVE(problem)
    together = UnplacedReasons(given, problem, solution, RESOLVE)
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
    if target.name in target.together_with:  # the other one needs it, and what it states, too
        return 0
    limits = (
        replace(item, moving=item.moving | {"twin"}) if target.name in item.moving else item
        for item in given.limits
    )
    others = (
        replace(item, apart_from=(*item.apart_from, "twin"))
        if target.name in item.apart_from
        else item
        for item in given.workloads
    )
    workloads = (*others, replace(target, name="twin"))
    both = replace(given, workloads=workloads, limits=tuple(limits))
    problem = formulate(both)
    solution = RESOLVE(problem)
    if not {target.name, "twin"} <= set(short_of_replicas(both, solution)):
        return 0
    conflicts = UnplacedReasons(both, problem, solution, RESOLVE)
    first, second = conflicts.of(target.name), conflicts.of("twin")
    now = replica_counts(solution.decision)
    assert len(first.limits) == len(second.limits) or now.get("twin", 0) != now.get(target.name, 0)
    if not second.limits:
        return 0
    asked = RequiredReplicas("twin", {**now, "twin": now.get("twin", 0) + 1})
    of_others = (own_constraints(both, item) for item in both.workloads if item.name != "twin")
    every = (*relaxable_limits(both, asked), *chain.from_iterable(of_others))
    named = tuple({item.message: item for item in reversed(every)}.values())
    members = tuple(item for item in named if item.message in messages(second))
    assert len(members) == len(second.limits)
    check_conflict(both, asked, named, members)
    return 1


@pytest.mark.long
def test_equals_are_kept_out_by_the_same() -> None:
    assert sum(check_shared(*case) for case in islice(infeasible_cases(4_000), 60)) > 20


NUMBERED = tuple(range(8))
sets = st.frozensets(st.sampled_from(NUMBERED), min_size=1, max_size=4)


@hypothesis.given(st.lists(sets, min_size=1, max_size=4))
def test_of_several_conflicts_one_is_found_whole_and_without_spare_members(
    conflicts: list[frozenset[int]],
) -> None:
    def room(held: Sequence[int]) -> bool:
        return not any(item <= set(held) for item in conflicts)

    found = infeasible_subsystem(NUMBERED, room)
    assert found.irreducible
    assert not room(found.members)
    for member in found.members:
        assert room([item for item in found.members if item != member])


def test_few_questions_are_asked_of_many_limits() -> None:
    asked = []

    def room(held: Sequence[int]) -> bool:
        asked.append(len(held))
        return not {3, 900} <= set(held)

    assert infeasible_subsystem(range(1000), room).members == (3, 900)
    assert len(asked) < 60


def test_what_is_not_known_is_not_called_irreducible() -> None:
    found = infeasible_subsystem(
        NUMBERED, lambda held: False if len(held) == len(NUMBERED) else None
    )
    assert found.members == NUMBERED
    assert not found.irreducible
