"""Long results stay short and say what they leave out."""

import json
from dataclasses import replace

import pytest

from dsf.api.crd.placement_plan import RecordedRollback
from dsf.kube.changes import Create
from dsf.kube.kinds import PLACEMENT
from mcp_server.results.plan_results import (
    next_step,
    plan_text,
    plan_view,
)
from mcp_server.results.tool_result import LIST_LIMIT
from mcp_server.results.write_results import reset_text, reset_view
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Decision, Solution, Status
from optimizer.plan.basis import Basis
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import (
    ISSUES_SHOWN,
    STABLE_SECONDS,
    move_sentence,
    plan_question,
    rollout_question,
)
from optimizer.wire.explanation import Placed
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import (
    EnforcementChange,
    FailedChange,
    MoveAction,
    ObjectRef,
    ResetResult,
    Unplaced,
    WorkloadMove,
    WorkloadPlace,
)
from optimizer.wire.rollout import ReplicaRef, RolloutCommand, RolloutStatus, StepActions
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
        next_step(view, read_only=False),
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
    plan = _plan(places=int(status == "Feasible"), status=status)
    view = plan_view(plan, applicable=True, objects=False)
    assert said in plan_text(plan, view, read_only=False)


def test_a_restored_plan_says_which_revision_it_restores_instead_of_how_good_it_is() -> None:
    plan = replace(
        _plan(places=1, status="Feasible"),
        rollback=RecordedRollback(from_revision=3, to_revision=2),
    )
    text = plan_text(plan, plan_view(plan, applicable=True, objects=False), read_only=False)
    assert text.startswith("Restores revision 2 as it was recorded: 1 workload placed, together")
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


@pytest.mark.parametrize(
    ("before", "after", "action", "said"),
    [
        (("a", "3g"), ("b", "2g"), "moves", "w moves from 3g on a to 2g on b, +20 s; uncovered"),
        (("a", "3g"), None, "stops", "w stops on 3g on a, +20 s; uncovered"),
        (("a", "3g"), ("a", "3g"), "stays", "w stays on 3g on a, +20 s; uncovered"),
    ],
)
def test_a_move_is_one_sentence(
    before: tuple[str, str], after: tuple[str, str] | None, action: MoveAction, said: str
) -> None:
    def places(at: tuple[str, str] | None) -> tuple[WorkloadPlace, ...]:
        return (WorkloadPlace(cluster=at[0], device=at[1], scores={}),) if at else ()

    move = WorkloadMove(
        workload="w",
        action=action,
        before=places(before),
        after=places(after),
        gain={"s": 20},
        uncovered=True,
    )
    assert move_sentence(move).startswith(said)


def test_the_time_without_cover_is_the_policy_watchers_default() -> None:
    [option] = [item for item in watch.params if item.name == "stable_duration_sec"]
    assert option.default == str(STABLE_SECONDS)


def test_the_question_names_what_is_agreed_to() -> None:
    plan = _plan(places=1)
    asked = plan_question(plan, "hub.example")
    where = 'hub "hub.example", namespace "default", optimization "default"'
    assert asked.splitlines() == [
        f"Stop 0, move 0, start 1 of 1 workload on {where}?",
        '"w0" starts on "d" on "c000", +1 "s".',
        "Proven best: 1 workload placed, together worth 1.",
        "Objects: create 1.",
        "Digest: d1",
    ]


def test_the_question_counts_what_it_does_not_name_and_tells_the_worst_first() -> None:
    plan = _plan(places=40, unplaced=20)
    stops = WorkloadMove(
        workload="z",
        action="stops",
        before=(WorkloadPlace(cluster="c" * 200, device="d", scores={}),),
        after=(),
        gain={},
    )
    changed = tuple(
        EnforcementChange(cluster=f"c{i:03}", before=(), after=("p",)) for i in range(30)
    )
    plan = replace(plan, moves=(*plan.moves, stops), enforcement_changes=changed)
    lines = plan_question(plan, "").splitlines()
    assert lines[0].startswith("Stop 1, move 0, start 40, have no place 20 of 61 workloads on the")
    assert lines[1] == f'"z" stops on "d" on "{"c" * 48}…{"c" * 15}".'
    assert f"and {61 - 12} more" in lines
    assert any("on 30 clusters" in line and "and 18 more" in line for line in lines)
    assert f"and {20 - ISSUES_SHOWN} more issues" in lines


def _rollout(*, turning_back: bool = False) -> RolloutStatus:
    def replica(workload: str, cluster: str) -> ReplicaRef:
        return ReplicaRef(workload=workload, cluster=cluster)

    return RolloutStatus(
        namespace="default",
        optimization="team-a",
        record="team-a-2",
        digest="d2",
        phase="Progressing",
        turning_back=turning_back,
        step=1,
        steps=(
            StepActions(stop=(replica("moved", "a"),), start=(replica("moved", "b"),)),
            StepActions(stop=(replica("gone", "a"),)),
            StepActions(start=(replica("new", "a"),)),
        ),
        reason="StepWritten",
        message="step 1 is written",
    )


LEFT = [
    '"gone" stops on "a".',
    '"moved" moves from "a" to "b".',
    '"new" starts on "a".',
]
BACK = ['"moved" moves from "b" to "a".']


@pytest.mark.parametrize(
    ("command", "turning_back", "said", "changes"),
    [
        ("pause", False, "Pause {}, and hold back: stop 1, move 1, start 1 of 3 workloads?", LEFT),
        ("resume", False, "Resume {}: stop 1, move 1, start 1 of 3 workloads?", LEFT),
        ("undo", False, "Turn back {}: stop 0, move 1, start 0 of 1 workload?", BACK),
        (
            "cancel",
            False,
            "Cancel {} where it is, and give up: stop 1, move 1, start 1 of 3 workloads?",
            LEFT,
        ),
        ("resume", True, "Resume {}: stop 0, move 1, start 0 of 1 workload?", BACK),
    ],
)
def test_the_question_about_a_rollout_begins_with_what_moves(
    command: RolloutCommand, turning_back: bool, said: str, changes: list[str]
) -> None:
    head, *told, last = rollout_question(
        command, _rollout(turning_back=turning_back), "hub.example"
    ).splitlines()
    where = 'the rollout on hub "hub.example", namespace "default", optimization "team-a"'
    assert head == said.format(where)
    assert told == changes
    assert last == "It is at step 1 of 3."


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
