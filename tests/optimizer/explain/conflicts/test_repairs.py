"""What a change of a limit means, tested by solving the fleet changed in each way."""

from dataclasses import replace

import pytest

from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    Fleet,
    FleetLimit,
    NodeLayout,
    ProfileCounts,
    Supply,
)
from optimizer.explain.conflicts.feasibility import replica_counts
from optimizer.explain.conflicts.fleet_changes import with_cluster, with_supplies
from optimizer.explain.conflicts.limits import FleetWideLimit, RequiredReplicas, Sizing
from optimizer.explain.conflicts.unplaced_conflicts import UnplacedReasons
from optimizer.model.formulate import formulate
from tests.optimizer.build import fleet
from tests.optimizer.explain.solvers import RESOLVE

THREES: ProfileCounts = (("3g.48gb", 2),)
TWOS: ProfileCounts = (("2g.24gb", 3),)


def either() -> Fleet:
    """One cluster that supplies two 3g or three 2g, and workloads that need one policy each.

    The 2g policy is worth more, and `large` runs only on 3g.
    """
    scores = {("c", "small", "2g.24gb"): 90.0, ("c", "large", "3g.48gb"): 20.0}
    given = fleet({"c": []}, {"small": 3, "large": 2}, scores)
    threes = CandidatePolicy("threes", (Supply("gpu", "3g.48gb", 2),))
    twos = CandidatePolicy("twos", (Supply("gpu", "2g.24gb", 3),))
    return replace(given, clusters=(replace(given.clusters[0], candidates=(threes, twos)),))


def repair(given: Fleet) -> list[str]:
    problem = formulate(given)
    found = UnplacedReasons(given, problem, RESOLVE(problem), RESOLVE).of("large")
    assert found.remedy is not None
    assert found.remedy.verified
    assert [item.workload for item in found.remedy.places] == ["large"]
    return [item.message for item in found.remedy.changes]


def placed(given: Fleet) -> set[str]:
    return set(replica_counts(RESOLVE(formulate(given)).decision))


def more_of_the_policy(cluster: Cluster) -> Cluster:
    def more(item: CandidatePolicy) -> CandidatePolicy:
        supplies = (supply._replace(amount=2 + supply.amount) for supply in item.supplies)
        return replace(item, supplies=tuple(supplies)) if item.policy == "threes" else item

    return replace(cluster, candidates=tuple(map(more, cluster.candidates)))


def test_a_repair_names_the_reading_that_places_the_workload() -> None:
    given = either()
    assert placed(given) == {"small"}
    assert repair(given) == [
        "add 2 gpu 3g.48gb to cluster c, available whichever policy it enforces"
    ]
    beside = with_supplies(given, "c", (Supply("gpu", "3g.48gb", 2.0),))
    assert placed(beside) == {"small", "large"}
    assert placed(with_cluster(given, "c", more_of_the_policy)) == {"small"}


def test_where_no_policy_supplies_the_kind_there_is_one_reading() -> None:
    given = either()
    small, large = given.workloads
    hungry = replace(given, workloads=(small, replace(large, kind="npu", amount=1.0)))
    scores = {("c", "small", "2g.24gb"): 90.0, ("c", "large", ""): 20.0}
    scored = fleet({"c": []}, {"small": 3, "large": 2}, scores).scores
    assert repair(replace(hungry, scores=scored)) == ["add 1 npu to cluster c"]


def test_where_gpus_are_described_a_repair_is_a_gpu_more() -> None:
    given = either()
    layouts = {"threes": THREES, "twos": TWOS}

    def described(cluster: Cluster) -> Cluster:
        return replace(
            cluster,
            candidates=tuple(
                replace(item, layouts=(NodeLayout("", (layouts[item.policy],)),))
                for item in cluster.candidates
            ),
        )

    assert repair(with_cluster(given, "c", described)) == [
        "add a GPU to cluster c, divided into 2 x 3g.48gb"
    ]
    two_gpus = replace(given.workloads[1], amount=3)
    larger = replace(given, workloads=(given.workloads[0], two_gpus))
    assert repair(with_cluster(larger, "c", described)) == [
        "add 2 GPUs to cluster c, divided into 2 x 3g.48gb"
    ]


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
    found = FleetWideLimit("fleet_limits", "power", "power").change(sizing)
    assert (found and found.message) == change
