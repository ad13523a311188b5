"""Long results stay short and say what they leave out."""

import json
from dataclasses import replace

import pytest

from dsf.api.crd.placement_plan import RecordedRollback
from dsf.api.optimization import Optimization
from dsf.kube.changes import Create
from dsf.kube.kinds import PLACEMENT
from mcp_server.results.plan_results import (
    ComparisonView,
    compared_plan,
    comparison_text,
    next_step,
    plan_text,
    plan_view,
    trade_offs_known,
)
from mcp_server.results.tool_result import LIST_LIMIT
from mcp_server.results.write_results import reset_text, reset_view
from optimizer.domain.issue import Issue, TakenIssue
from optimizer.domain.solution import Decision, Solution, Status
from optimizer.plan.basis import Basis
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import STABLE_SECONDS
from optimizer.wire.explanation import Explanation, ParetoSet, Placed
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import (
    FailedChange,
    ObjectRef,
    ResetResult,
    Unplaced,
    WorkloadMove,
    WorkloadPlace,
)
from policy_watcher.cli import policy_watcher as watch
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
        moves=(
            *(_move(f"w{i}", f"c{i:03}") for i in range(places)),
            *(_move(f"u{i}", why="NoCapacityLeft") for i in range(unplaced)),
        ),
    )


def _move(workload: str, cluster: str = "", why: str = "") -> WorkloadMove:
    place = WorkloadPlace(cluster=cluster, device="d", scores={"s": 1})
    return WorkloadMove(
        workload=workload,
        action="starts" if cluster else "waits",
        before=(),
        after=(place,) if cluster else (),
        gain={"s": 1} if cluster else {},
        why=why,
    )


def test_a_short_plan_leaves_nothing_out() -> None:
    plan = _plan(places=2, unplaced=1)
    view = plan_view(plan, applicable=True, objects=False)
    assert view.omitted == {}
    assert plan_text(plan, view, read_only=False).splitlines() == [
        "Proven best: 2 workloads placed, together worth 2. Totals: s 2.",
        "w0 starts on d on c000, +1 s.",
        "w1 starts on d on c001, +1 s.",
        "u0 has no place: NoCapacityLeft.",
        'Issue: MissingScore: "none"',
        "Next: explain_placement with digest d1 says which limits leave no place.",
        next_step(view, read_only=False),
    ]


@pytest.mark.parametrize(
    ("owner", "own"),
    [
        (Optimization("default").without_prune, True),
        ("optimization default of namespace default-b", False),
    ],
)
def test_only_what_its_own_optimization_keeps_can_be_named_to_be_planned(
    owner: str, *, own: bool
) -> None:
    held = TakenIssue("HeldByOthers", f"cluster c: {owner} enforces policy p", "c", owner=owner)
    plan = replace(_plan(unplaced=1), issues=(held,))
    text = plan_text(plan, plan_view(plan, applicable=True, objects=False), read_only=False)
    assert ("Name it in workloads to plan it too." in text) is own


@pytest.mark.parametrize(
    ("explanation", "said"),
    [
        (None, "Trade-offs were not computed."),
        (
            Explanation(not_computed=("everything: its process did not stop",)),
            'Trade-offs were not computed: "everything: its process did not stop".',
        ),
        (
            Explanation(pareto=ParetoSet(points=(), complete=False, message="there was no time")),
            'More trade-offs may exist: "there was no time".',
        ),
        (
            Explanation(pareto=ParetoSet(points=(), complete=True, message="")),
            "No other trade-off exists.",
        ),
    ],
)
def test_a_comparison_says_how_complete_its_trade_offs_are(
    explanation: Explanation | None, said: str
) -> None:
    plan = replace(_plan(places=1), explanation=explanation)
    assert trade_offs_known(plan) == "One score has no trade-offs."
    asked = plan.request.model_copy(update={"pareto": ("s", "t")})
    assert trade_offs_known(replace(plan, request=asked)) == said
    view = ComparisonView(plans=(compared_plan("s", plan),))
    assert comparison_text(view, applicable=True, known=said).splitlines()[1:] == [
        said,
        "Next: show the user one, and call apply_plan with its digest.",
    ]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("Feasible", "not proven best: 1 workload placed, together worth 1; no placement is"),
        ("Infeasible", "has a place, so nothing changes and what runs stays.\n"),
        ("NotSolved", "Nothing found within the limits"),
    ],
)
def test_the_verdict_says_how_good_the_plan_is(status: Status, said: str) -> None:
    plan = _plan(places=int(status == "Feasible"), status=status)
    view = plan_view(plan, applicable=True, objects=False)
    assert said in plan_text(plan, view, read_only=False)


def test_a_restored_plan_says_which_revision_it_restores_instead_of_how_good_it_is() -> None:
    plan = replace(
        _plan(places=1, status="Feasible"),
        rollback=RecordedRollback(from_revision=3, to_revision=2),
    )
    text = plan_text(plan, plan_view(plan, applicable=True, objects=False), read_only=False)
    assert text.startswith(
        "Restores revision 2 of optimization default as it was recorded: 1 workload placed"
    )
    assert "proven" not in text


def test_a_plan_says_how_it_can_be_applied() -> None:
    empty, full = _plan(unplaced=1, status="Infeasible"), _plan(places=1)
    for plan, applicable, read_only, said in (
        (empty, True, False, "Nothing would be written"),
        (full, True, True, "read-only, so a person has to apply"),
        (full, False, False, "so it can't be applied"),
    ):
        view = plan_view(plan, applicable=applicable, objects=False)
        assert said in next_step(view, read_only=read_only)


def test_the_time_without_cover_is_the_policy_watchers_default() -> None:
    [option] = [item for item in watch.params if item.name == "stable_duration_sec"]
    assert option.default == str(STABLE_SECONDS)


def test_a_reset_names_what_failed() -> None:
    gone = ObjectRef(kind="Placement", namespace="default", name="a")
    failed = FailedChange(
        kind="Placement", namespace="default", name="b", action="delete", message='no "right"'
    )
    view = reset_view("default", ResetResult(deleted=(gone,), failed=(failed,) * MANY))
    lines = reset_text(view).splitlines()
    assert lines[:3] == [
        "Deleted 1 generated object of namespace default.",
        "Placement default/a",
        f"Failed: delete Placement default/b: {json.dumps(failed.message)}",
    ]
    assert lines[-1] == "and 7 more failures"
