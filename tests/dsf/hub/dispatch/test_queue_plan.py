"""One plan for Workloads that wait: the best one, within what is free, and by priority."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.crd.inventory_times import InventoryTimes
from dsf.hub.dispatch.candidates import WorkerFleet
from dsf.hub.dispatch.highs import GAP, MOST_COLUMNS, solver
from dsf.hub.dispatch.nomination import Nomination, decide
from dsf.hub.dispatch.queue_pass import NominationSettings, Row, Solve
from dsf.hub.dispatch.queue_preferences import QueuePreference, ScoreEntries
from dsf.hub.dispatch.worker_clusters import Room
from dsf.hub.dispatch.workloads import WaitingWorkload, read_workload
from tests.dsf.hub.dispatch.kueue_hub import condition

NOW = datetime(2026, 11, 20, tzinfo=UTC)
solved = solver(math.inf)
TIMES = InventoryTimes(NOW, NOW + timedelta(hours=1))


class Job(NamedTuple):
    cpus: int
    priority: int = 0
    gpus: int = 0
    nominated: str = ""


class Place(NamedTuple):
    """A worker cluster: its score, None without one, and free processors, None if not reported."""

    score: int | None
    cpus: int | None
    gpus: int = 0


def places(scores: st.SearchStrategy[int | None]) -> st.SearchStrategy[list[Place]]:
    cpus = st.none() | st.integers(0, 7)
    return st.lists(st.builds(Place, scores, cpus, st.integers(0, 2)), min_size=1, max_size=3)


GPUS = st.integers(0, 1)
SCORES = st.integers(-100, 100)
PLACES = places(st.none() | SCORES)


def jobs(most_priority: int = 0) -> st.SearchStrategy[list[Job]]:
    one = st.builds(Job, st.integers(1, 4), st.integers(0, most_priority), GPUS, st.just(""))
    return st.lists(one, min_size=1, max_size=5)


def workload(number: int, job: Job) -> WaitingWorkload:
    requests = {"cpu": str(job.cpus), "nvidia.com/gpu": str(job.gpus)}
    container = {"name": "main", "resources": {"requests": requests}}
    obj: dict[str, Any] = {
        "metadata": {"name": f"job-{number}", "namespace": "team"},
        "spec": {
            "queueName": "queue",
            "priority": job.priority,
            "podSets": [{"count": 1, "template": {"spec": {"containers": [container]}}}],
        },
        "status": {
            "conditions": [condition("QuotaReserved")],
            "nominatedClusterNames": [job.nominated] if job.nominated else [],
            "admissionChecks": [{"name": "multi", "state": "Pending"}],
        },
    }
    found = read_workload(obj)
    assert isinstance(found, WaitingWorkload)
    return found


def fleet(places: Sequence[Place]) -> WorkerFleet:
    named = {f"c{number}": each for number, each in enumerate(places)}
    entries = {
        name: ScoreEntries({"value": each.score}, None)
        for name, each in named.items()
        if each.score is not None
    }
    return WorkerFleet(
        checks={"multi": "fleet"},
        configs={"fleet": list(named)},
        queues={("team", "queue"): (QueuePreference(score="carbon"),)},
        workers={name: {"metadata": {"name": name}} for name in named},
        managed={name: {"metadata": {"name": name}} for name in named},
        find_score=lambda cluster, _: entries.get(cluster),
        rooms={
            name: Room([(1, {"cpu": each.cpus, "nvidia.com/gpu": each.gpus, "pods": 110})], TIMES)
            for name, each in named.items()
            if each.cpus is not None
        },
    )


def decided(
    waiting: Iterable[Job], places: Sequence[Place], *, solve: Solve | None = solved
) -> dict[str, Nomination]:
    workloads = [workload(number, job) for number, job in enumerate(waiting)]
    found = decide(workloads, [], fleet(places), NominationSettings(), NOW, solve)
    return {each.workload.obj["metadata"]["name"]: each for each in found}


def placed(nominations: Mapping[str, Nomination]) -> dict[str, str]:
    """The first cluster of each Workload that has room there, as its message says."""
    return {
        name: each.clusters[0]
        for name, each in nominations.items()
        if re.search(r"Scores: [^;.]*, no room\)", each.message) is None
    }


def worth(clusters: Iterable[str], places: Sequence[Place], waiting: Sequence[Job]) -> float:
    """As docs/how-to/kueue.md defines it: best score - L for having room, and score - L on top."""
    scores = [
        each.score or 0
        for number, each in enumerate(places)
        if any(fits({job: f"c{number}"}, waiting, places) for job in range(len(waiting)))
    ]
    low = min(scores) - 1
    return sum(max(scores) - low + (places[int(name[1:])].score or 0) - low for name in clusters)


def fits(chosen: Mapping[int, str], waiting: Sequence[Job], places: Sequence[Place]) -> bool:
    used = {
        f"c{number}": [waiting[job] for job, name in chosen.items() if name == f"c{number}"]
        for number in range(len(places))
    }
    return all(
        each.cpus is None
        or (
            sum(job.cpus for job in used[f"c{number}"]) <= each.cpus
            and sum(job.gpus for job in used[f"c{number}"]) <= each.gpus
        )
        for number, each in enumerate(places)
    )


@pytest.mark.property
@given(jobs(), places(SCORES))
def test_a_plan_is_the_best_of_all_assignments(waiting: list[Job], places: list[Place]) -> None:
    names = ["", *(f"c{number}" for number in range(len(places)))]
    best = max(
        (
            worth(filter(None, chosen), places, waiting)
            for chosen in product(names, repeat=len(waiting))
            if any(chosen) and fits(dict(enumerate(chosen)), waiting, places)
        ),
        default=0.0,
    )
    if not best:
        return
    found = decided(waiting, places)
    reached = worth(placed(found).values(), places, waiting)
    in_order = worth(placed(decided(waiting, places, solve=None)).values(), places, waiting)
    assert reached >= max(in_order, best * (1 - GAP)) - 1e-6
    for gap in re.findall(r"gap ([0-9.]+)%", " ".join([each.message for each in found.values()])):
        assert reached * (1 + float(gap) / 100 + 0.0005) >= best - 1e-6


@pytest.mark.property
@given(jobs(most_priority=2), PLACES)
def test_those_who_have_room_fit_together(waiting: list[Job], places: list[Place]) -> None:
    chosen = {int(name[4:]): cluster for name, cluster in placed(decided(waiting, places)).items()}
    assert fits(chosen, waiting, places)


@pytest.mark.property
@given(jobs(most_priority=2), PLACES, st.integers(0, 2))
def test_less_important_workloads_change_nothing_for_the_others(
    waiting: list[Job], places: list[Place], priority: int
) -> None:
    important = [job for job in waiting if job.priority >= priority]
    by_priority = sorted(waiting, key=lambda job: -job.priority)
    alone = decided(sorted(important, key=lambda job: -job.priority), places)
    with_all = decided(by_priority, places)
    assert {name: with_all[name][1:] for name in alone} == {
        name: each[1:] for name, each in alone.items()
    }


@pytest.mark.property
@given(jobs(), PLACES)
def test_one_workload_is_decided_as_in_order(waiting: list[Job], places: list[Place]) -> None:
    [plan], [order] = (
        decided(waiting[:1], places, solve=solve).values() for solve in (solved, None)
    )
    assert plan[1:] == order[1:]


SMALL_FIRST = ([Job(1), Job(3)], [Place(90, 3), Place(10, 1)])
"""In order the small Job takes the room of the large one, which has it nowhere else."""


def test_a_plan_and_its_gap_are_told() -> None:
    found = decided(*SMALL_FIRST)
    assert placed(found) == {"job-0": "c1", "job-1": "c0"}
    assert (
        "One plan for 2 Workloads of priority 0: 2 have room, sum of scores 100; in order:"
        " 1 have room, sum of scores 90; gap 0.0%."
    ) in found["job-0"].message


def test_without_a_solver_the_order_decides_and_it_is_told() -> None:
    found = decided(*SMALL_FIRST, solve=None)
    assert placed(found) == {"job-0": "c0"}
    assert (
        "In order, because there is no plan for 2 Workloads of priority 0: HiGHS is not installed."
    ) in found["job-0"].message


@pytest.mark.parametrize(
    ("factor", "gap"),
    [(1.1, "10.0%"), (9.0, "32.8%")],
    ids=["by the solver", "by each one's best cluster"],
)
def test_the_gap_is_that_of_the_smaller_bound(factor: float, gap: str) -> None:
    """The plan is worth 2 x 81 + 81 + 1, and both on c0 would be 4 x 81."""

    def loose(
        objective: Sequence[float], upper: Sequence[int], rows: Sequence[Row]
    ) -> tuple[Sequence[float], float] | None:
        found = solved(objective, upper, rows)
        return found and (found[0], found[1] * factor)

    assert f"; gap {gap}." in decided(*SMALL_FIRST, solve=loose)["job-0"].message


def test_a_solver_without_a_plan_leaves_the_order_and_it_is_told() -> None:
    found = decided(*SMALL_FIRST, solve=lambda *_: None)
    assert placed(found) == {"job-0": "c0"}
    assert "HiGHS found no plan for 2 Workloads of priority 0." in found["job-0"].message


def test_once_the_time_of_all_plans_is_over_the_order_decides() -> None:
    found = decided(*SMALL_FIRST, solve=solver(-1))
    assert "HiGHS found no plan for 2 Workloads of priority 0." in found["job-0"].message


@pytest.mark.parametrize(
    ("columns", "is_solved"), [(MOST_COLUMNS, True), (MOST_COLUMNS + 1, False)]
)
def test_a_program_too_large_for_the_time_is_not_begun(columns: int, is_solved: bool) -> None:
    found = solved([1.0] * columns, [1] * columns, [dict.fromkeys(range(columns), 1.0)])
    assert (found is not None) == is_solved


@pytest.mark.parametrize(
    ("waiting", "places", "chosen"),
    [
        ([Job(4), Job(2), Job(2)], [Place(90, 4)], {1: "c0", 2: "c0"}),
        (
            [Job(1), Job(1), Job(3)],
            [Place(90, 3), Place(5, 1), Place(10, 1)],
            {0: "c2", 1: "c1", 2: "c0"},
        ),
        (
            [Job(1), Job(1), Job(2, gpus=1)],
            [Place(100, 2, gpus=1), Place(-100, 2)],
            {0: "c1", 1: "c1", 2: "c0"},
        ),
        (
            [Job(2, priority=9), Job(1), Job(3)],
            [Place(90, 5), Place(10, 1)],
            {0: "c0", 1: "c1", 2: "c0"},
        ),
    ],
    ids=[
        "more of them",
        "the better one of two to the first",
        "room before scores",
        "beside the more important one",
    ],
)
def test_a_plan_gives_room_to_as_many_as_it_can(
    waiting: list[Job], places: list[Place], chosen: dict[int, str]
) -> None:
    expected = {f"job-{number}": name for number, name in chosen.items()}
    assert placed(decided(waiting, places)) == expected


def test_who_keeps_a_nomination_is_in_no_plan_and_has_its_room() -> None:
    kept = [Job(1, nominated="c0"), Job(3, nominated="c0")]
    found = decided([*kept, Job(2)], [Place(90, 3), Place(10, 2)])
    assert [each.clusters for each in found.values()] == [("c0",), ("c0",), ("c1",)]
    assert not any("plan" in each.message for each in found.values())
