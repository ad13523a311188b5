"""Long results stay short and say what they leave out."""

import json

import pytest

from dsf.kube.changes import Create
from dsf.kube.kinds import PLACEMENT
from mcp_server.result_text import explanation, few, next_step, question, reset_text
from mcp_server.result_views import LIST_LIMIT, plan_view, reset_view
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Decision, Solution
from optimizer.domain.status import Status
from optimizer.plan.basis import Basis
from optimizer.plan.plan import Plan
from optimizer.wire.explanation import Placed
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import FailedChange, ObjectRef, ResetResult, Unplaced
from tests.mcp_server.service import request

MANY = LIST_LIMIT + 7


def _plan(*, places: int = 0, unplaced: int = 0, status: Status = "Optimal") -> Plan:
    objects = [{"metadata": {"name": f"p-{i}", "namespace": "default"}} for i in range(places)]
    return Plan(
        digest="d1",
        basis=Basis("b1"),
        request=OptimizeRequest(**request()),
        solution=Solution(status, Decision(), float(places), places + 5.0, 0.1, "highs"),
        policies={f"c{i:03}": f"policy-{i}" for i in range(places)},
        placements=tuple(
            Placed(workload=f"w{i}", cluster=f"c{i:03}", policy=f"policy-{i}", device="d", score=1)
            for i in range(places)
        ),
        unplaced=tuple(
            Unplaced(workload=f"u{i}", reason="NoCapacityLeft", message="full\nhouse")
            for i in range(unplaced)
        ),
        issues=tuple(Issue(reason="MissingScore", message="none") for _ in range(unplaced)),
        manifests=(),
        changes=tuple(Create(PLACEMENT, obj) for obj in objects),
    )


def test_a_long_plan_is_cut_and_counted() -> None:
    plan = _plan(places=MANY, unplaced=MANY)
    text = explanation(plan)
    view = plan_view(plan, text)
    lists = ("policies", "placements", "unplaced", "gaps", "changes")
    assert view.omitted == dict.fromkeys(lists, 7)
    assert all(len(getattr(view, name)) == LIST_LIMIT for name in lists)
    for cut in ("clusters", "workloads left out", "issues", "changes"):
        assert f"and 7 more {cut}" in text
    assert f"{MANY} workloads placed" in text


def test_a_short_plan_leaves_nothing_out() -> None:
    plan = _plan(places=2, unplaced=1)
    assert plan_view(plan, "").omitted == {}
    assert explanation(plan).splitlines() == [
        "Proven best: 2 workloads placed, together worth 2.",
        'c000 enforces policy-0: w0 on "d" (1).',
        'c001 enforces policy-1: w1 on "d" (1).',
        'u0 has no place: NoCapacityLeft: "full house"',
        'Not used: MissingScore: "none"',
        "Would be written: create Placement default/p-0, create Placement default/p-1.",
    ]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("Feasible", "not proven best: 1 workload placed, together worth 1; no placement is"),
        ("Infeasible", "No workload has a place"),
        ("NotSolved", "Nothing found within the limits"),
    ],
)
def test_the_verdict_says_how_good_the_plan_is(status: Status, said: str) -> None:
    assert said in explanation(_plan(places=int(status == "Feasible"), status=status))


def test_a_plan_without_places_offers_nothing_to_apply() -> None:
    plan = _plan(unplaced=1, status="Infeasible")
    assert explanation(plan).endswith("Nothing would be written.")
    assert next_step(plan_view(plan, ""), read_only=False) == ""


def test_the_question_names_what_is_agreed_to() -> None:
    asked = question(_plan(places=1))
    assert "create Placement default/p-0" in asked
    assert asked.endswith("Digest: d1")


def test_a_reset_names_what_failed() -> None:
    gone = ObjectRef(kind="Placement", namespace="default", name="a")
    failed = FailedChange(
        kind="Placement", namespace="default", name="b", action="delete", message='no "right"'
    )
    view = reset_view("default", ResetResult(deleted=(gone,), failed=(failed,) * MANY))
    lines = reset_text(view).splitlines()
    assert lines[:3] == [
        "Deleted 1 generated objects of namespace default.",
        "Placement default/a",
        f"Failed: delete Placement default/b: {json.dumps(failed.message)}",
    ]
    assert lines[-1] == "and 7 more failures"


@pytest.mark.parametrize(
    ("names", "shown"),
    [([], "none"), (["a", "b"], "a, b"), (["a"] * 22, ", ".join(["a"] * 20) + " and 2 more")],
)
def test_a_few_names(names: list[str], shown: str) -> None:
    assert few(names) == shown
