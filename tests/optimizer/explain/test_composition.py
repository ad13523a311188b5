"""Explanations as users ask for them: by POST /optimize, by `dsf plan`, and within a budget."""

import json
from collections.abc import Sequence
from importlib import resources
from math import inf
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from pydantic import ValidationError

from optimizer.cli.planning import plan
from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution
from optimizer.explain import composition
from optimizer.explain.case import BudgetExceeded, Case
from optimizer.explain.composition import compose
from optimizer.explain.explanation_process import ExplanationJob, explain_here
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.rules import Row
from optimizer.plan.plan import Plan, result
from optimizer.service.optimizer import Optimizer
from optimizer.solve.solver_adapters import SolverResult
from optimizer.transition.transition_steps import MAX_TRANSITION_ASSIGNMENTS
from optimizer.wire.explanation import Explanation, WhyNotQuestion
from optimizer.wire.request import OptimizeRequest
from tests.optimizer.build import NOW, body, fleet, guide
from tests.optimizer.explain.solvers import LINEAR, RESOLVE, spent
from tests.optimizer.hubs import hub_of
from tests.repository import ROOT

SCENARIO = Path(str(resources.files("dsf.sim") / "scenario"))
FOLDERS = [f"-f{SCENARIO / part}" for part in ("manifests", "clusters", "scores")]


async def planned(**changed: Any) -> Plan:
    hub = await hub_of(guide())
    request = OptimizeRequest.model_validate({**body(), **changed})
    made = await Optimizer(hub, now=lambda: NOW).plan(request)
    assert isinstance(made, Plan)
    return made


async def test_without_being_asked_the_answer_is_as_before() -> None:
    answer = result(await planned(), None).model_dump(mode="json")
    assert "explanation" not in answer
    assert "explanation" not in json.loads(result(await planned(), None).model_dump_json())


async def test_everything_is_explained_where_asked() -> None:
    found = (await planned(explain=True)).explanation
    assert found is not None
    assert [item.workload for item in found.places] == ["mwrs-app01", "mwrs-app02"]
    assert [item.margin is not None for item in found.places] == [True, True]
    assert {item.cluster for item in found.binding} == {"worker01", "worker02"}
    assert (found.unplaced, found.transition, found.not_computed) == ((), None, ())


async def test_some_workloads_are_explained_alone_as_among_all() -> None:
    whole, two = (await planned(explain=True)).explanation, ["mwrs-app02", "mwrs-app01"]
    assert whole is not None
    for place in whole.places:
        found = (await planned(explainWorkloads=[place.workload])).explanation
        assert found is not None
        assert (found.places, found.unplaced, found.binding) == ((place,), (), ())
        assert (found.not_computed, found.solves <= whole.solves) == ((), True)
    found = (await planned(explainWorkloads=two, whyNot=[])).explanation
    assert found is not None
    assert found.places == whole.places


async def test_questions_and_pareto_sets_are_answered_by_themselves() -> None:
    questions = [
        {"workload": "mwrs-app01", "cluster": "worker02"},
        {"policy": "2g.24gb-worker01", "cluster": "worker01"},
    ]
    found = (
        await planned(
            whyNot=questions,
            objectives=[{"addonPlacementScore": "power", "weight": 0}],
            pareto=["performance", "power"],
        )
    ).explanation
    assert found is not None
    assert [item.lost.total for item in found.why_not if item.lost] == [0, 115 - (15 + 60)]
    assert found.pareto is not None
    assert found.pareto.complete
    assert [point.values for point in found.pareto.points][-1] == {"performance": 25, "power": 170}
    assert found.places == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"pareto": ["performance"]}, "name two or three scores"),
        ({"pareto": ["performance", "power"]}, '"power" is none of the scores performance'),
        ({"explainWorkloads": ["w9"]}, '"w9" is none of the targetWorkloads'),
        ({"explainWorkloads": ["mwrs-app01"] * 2}, "named twice"),
        ({"whyNot": [{"cluster": "worker01"}]}, "one of workload and policy"),
        (
            {"whyNot": [{"cluster": "worker01", "policy": "p", "device": "all"}]},
            "only a workload has one",
        ),
    ],
)
def test_wrong_questions_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        OptimizeRequest.model_validate({**body(), **changed})


def test_the_command_prints_the_explanation() -> None:
    arguments = [*FOLDERS, f"--request={SCENARIO / 'params.json'}"]
    plain = CliRunner().invoke(plan, arguments).stdout
    assert "WHY HERE" not in plain
    told = CliRunner().invoke(plan, [*arguments, "--explain"]).stdout
    assert told.startswith(plain.rstrip("\n"))
    assert "mwrs-app01   3g.48gb of worker01 (60)" in told
    assert "(linear relaxation)" in told


def test_the_command_explains_what_has_no_place(tmp_path: Path) -> None:
    request = json.loads((SCENARIO / "params.json").read_text())
    request["clusters"] = request["clusters"][:1]
    path = tmp_path / "one.yaml"
    path.write_text(yaml.safe_dump(request))
    told = CliRunner().invoke(plan, [*FOLDERS, f"--request={path}", "--explain"]).stdout
    assert "workload mwrs-app01 is placed" in told
    assert "(solved again)" in told


def crowded() -> Fleet:
    scores = {("c", name, "3g"): value for name, value in (("a", 50.0), ("b", 20.0), ("d", 8.0))}
    return fleet({"c": [("3g", 1)]}, {"a": 1, "b": 1, "d": 1}, scores)


def within(solves: int) -> Explanation:
    """Explain with a budget of so many solves, linear programs included."""
    given = crowded()
    problem = formulate(given)
    left = iter(range(solves))

    def pay() -> None:
        if next(left, None) is None:
            raise BudgetExceeded

    def solve(problem: Problem) -> Solution:
        pay()
        return RESOLVE(problem)

    def linear(weights: Floats, rows: Sequence[Row], relaxed: bool) -> SolverResult:
        raise BudgetExceeded

    case = Case(
        given, problem, RESOLVE(problem), why_not=(WhyNotQuestion(cluster="c", workload="b"),)
    )
    return compose(case, solve, linear)


def test_what_a_budget_does_not_allow_is_named() -> None:
    found = within(0)
    assert found.why_not == ()
    remedies = [item.remedy for item in found.unplaced]
    assert [len(item.limits) for item in found.unplaced] == [2, 2]
    assert [item.verified for item in remedies if item] == [False, False]
    assert [item.margin for item in found.places] == [None]
    assert found.not_computed == (
        "1 of 1 questions: the time limit was reached",
        "binding limits and prices: the time limit was reached",
        "a part of 2 conflicts: the time limit was reached",
        "1 of 1 margins: the time limit was reached; 1 of them have an upper bound",
    )


def test_more_budget_gives_more_of_the_same_explanation() -> None:
    little, more, most = within(1), within(6), within(1_000)
    assert len(little.why_not) == 1
    few, some, every = (
        [item for item in found.unplaced if item.remedy and item.remedy.verified]
        for found in (little, more, most)
    )
    assert len(few) < len(some) < len(every) == 2
    assert every[: len(some)] == some
    assert most.not_computed == ("binding limits and prices: the time limit was reached",)


@pytest.mark.parametrize(("seconds", "until"), [(0.0, inf), (60.0, 0.0)])
def test_without_time_or_after_a_late_start_there_is_an_answer(
    seconds: float, until: float
) -> None:
    given = crowded()
    problem = formulate(given)
    case = Case(given, problem, RESOLVE(problem))
    found, _ = explain_here(ExplanationJob(case, "highs", seconds, until))
    assert found.unplaced == ()
    assert len(found.not_computed) == 3


def test_conflicts_without_any_plan_are_named() -> None:
    given = crowded()
    problem = formulate(given)
    found = compose(Case(given, problem, spent(problem)), RESOLVE, LINEAR)
    assert found.unplaced == ()
    assert found.not_computed == ("3 conflicts: no plan with an assignment was found",)


def test_parts_of_conflicts_that_are_missing_are_named() -> None:
    given = crowded()
    problem = formulate(given)
    found = compose(Case(given, problem, RESOLVE(problem)), spent, LINEAR)
    assert "not computed in time" in found.unplaced[0].message
    assert "a part of 2 conflicts: the time limit was reached" in found.not_computed


async def test_what_runs_moves_in_steps() -> None:
    hub = await hub_of(guide())
    optimizer = Optimizer(hub, now=lambda: NOW)
    first = await optimizer.plan(OptimizeRequest.model_validate(body("power")))
    assert isinstance(first, Plan)
    await optimizer.apply(first)
    second = await optimizer.plan(OptimizeRequest.model_validate({**body(), "explain": True}))
    assert isinstance(second, Plan)
    assert second.explanation is not None
    found = second.explanation.transition
    assert found is not None
    assert {item.policy for step in found.steps for item in step.release} == {
        "2g.24gb-worker01",
        "2g.24gb-worker02",
    }
    assert found.uncovered
    assert found.least


def test_what_is_known_is_told_while_more_is_sought() -> None:
    given = crowded()
    problem = formulate(given)
    told: list[Explanation] = []
    case = Case(
        given, problem, RESOLVE(problem), why_not=(WhyNotQuestion(cluster="c", workload="b"),)
    )
    whole = compose(case, RESOLVE, LINEAR, told.append)
    assert [len(item.why_not) for item in told] == [1] * len(told)
    assert [len(item.unplaced) for item in told] == sorted(len(item.unplaced) for item in told)
    assert told[-1] == whole


TEXT = (ROOT / "docs/reference/explanations.md").read_text(encoding="utf-8")


def test_the_limits_are_those_of_the_code() -> None:
    assert f"| used up, Pareto set | {composition.MAX_PRICED_ASSIGNMENTS:,} places |" in TEXT
    conflicts, workloads = composition.MAX_CONFLICT_ASSIGNMENTS, composition.MAX_UNPLACED
    assert f"| conflicts | {conflicts:,} places, {workloads} " in TEXT
    assert f"At most {composition.MAX_PARETO_POINTS} are looked for" in TEXT
    moved = MAX_TRANSITION_ASSIGNMENTS
    assert f"| transition | {moved:,} changed assignments |" in TEXT
