"""Each plan starts from what its optimization was solved with last."""

from datetime import UTC, datetime
from typing import Any

from benchmarks.optimizer.instances import instance
from benchmarks.optimizer.score_hub import SCORE, lists, request
from dsf.kube.kinds import Kind
from dsf.kube.port import ObjectList
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import Solution
from optimizer.follow.overview.what_if import PretendedObjects, ScoreChange
from optimizer.plan.plan import Plan
from optimizer.service.planner import (
    MAX_SOLVED,
    HypotheticalHub,
    Planner,
    SolvedProblems,
    no_solved_problems,
)
from optimizer.solve.solver_process import solve
from optimizer.solve.warm_start import SolvedProblem
from optimizer.wire.request import OptimizeRequest

CLUSTERS, WORKLOADS, GAP = 12, 24, 0.05


class ListedHub:
    """Lists a fleet of 12 clusters and 24 workloads, all pairs scored."""

    def __init__(self) -> None:
        made = lists(instance(CLUSTERS, WORKLOADS, "dist"), 0.0)
        self._objects = {
            kind: [make(number) for number in range(count)] for kind, (count, make) in made.items()
        }

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,  # noqa: ARG002 - all objects are in one
        *,
        labels: str = "",  # noqa: ARG002 - as are labels
        fields: str = "",
        limit: int = 0,  # noqa: ARG002 - and pages
        continue_token: str = "",  # noqa: ARG002
    ) -> ObjectList:
        name = fields.removeprefix("metadata.name=")
        items = self._objects.get(kind, [])
        wanted = (item for item in items if not name or item["metadata"]["name"] == name)
        return ObjectList(tuple(wanted), "1", "", 0)


class Solves:
    """Solves as the product does, and notes what each solve started from."""

    def __init__(self) -> None:
        self.starts = list[SolvedProblem | None]()

    async def __call__(self, *args: Any, **options: Any) -> Solution:
        self.starts.append(options["previous"])
        return await solve(*args, **options)


async def planned(solves: Solves, solved: SolvedProblems, name: str = "", kube: Any = None) -> Plan:
    body = {**request(CLUSTERS, WORKLOADS, None), "gap": GAP}
    planner = Planner(
        kube or ListedHub(),
        OptimizerSettings(),
        now=lambda: datetime.now(UTC),
        solve=solves,
        solved=solved,
    )
    asked = OptimizeRequest.model_validate({**body, **({"optimization": name} if name else {})})
    made = await planner.plan(asked, name_others=False)
    assert isinstance(made, Plan)
    return made


async def test_the_next_plan_starts_from_the_last_and_keeps_what_is_as_good() -> None:
    solves, solved = Solves(), no_solved_problems()
    first, second = await planned(solves, solved), await planned(solves, solved)
    assert solves.starts[0] is None
    start = solves.starts[1]
    assert start is not None
    assert start.solution.decision == first.solution.decision == second.solution.decision
    assert second.solution.gap is not None
    assert second.solution.gap <= GAP


async def test_optimizations_do_not_start_from_each_other() -> None:
    solves, solved = Solves(), no_solved_problems()
    await planned(solves, solved)
    await planned(solves, solved, "another")
    assert solves.starts == [None, None]


async def test_a_question_starts_from_the_last_plan_and_leaves_nothing() -> None:
    solves, solved = Solves(), no_solved_problems()
    await planned(solves, solved)
    (kept,) = solved.values()
    change = ScoreChange(score=SCORE, cluster="c1", entry="w1;all", value=0)
    pretended = PretendedObjects(added=(), scores=(change,), now=datetime.now(UTC))
    await planned(solves, solved, kube=HypotheticalHub(ListedHub(), pretended))
    assert solves.starts[1] is kept
    assert solved.values() == [kept]


async def test_no_more_optimizations_are_kept_than_it_says() -> None:
    solves, solved = Solves(), no_solved_problems()
    for number in range(MAX_SOLVED + 2):
        await planned(solves, solved, f"optimization-{number}")
    assert len(solved.values()) == MAX_SOLVED
