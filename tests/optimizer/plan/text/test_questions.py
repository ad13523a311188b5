"""The texts of a whole plan: its tables, and what a person is asked before it is applied."""

from pathlib import Path

from dsf.api.crd.placement_plan import RecordedRollback
from dsf.kube.changes import Create, Delete
from dsf.kube.kinds import PLACEMENT, POLICY
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Decision, Solution
from optimizer.plan.basis import Basis
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import plan_question, rollout_question
from optimizer.plan.text.tables import render
from optimizer.wire.explanation import EnforcedPolicy, Placed
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import EnforcementChange, Removal, Unplaced, WorkloadMove, WorkloadPlace
from optimizer.wire.rollout import ReplicaRef, RolloutStatus, StepActions
from tests.mcp_server.service import request
from tests.optimizer.plan.text.test_tables import explanation

EAST = WorkloadPlace(cluster="east", device="3g", scores={})
WEST = WorkloadPlace(cluster="west", device="", scores={})
MOVES = (
    WorkloadMove(workload="a", action="stays", before=(EAST,), after=(EAST,), gain={}),
    WorkloadMove(workload="b", action="starts", before=(), after=(EAST,), gain={"power": 5.5}),
    WorkloadMove(
        workload="c",
        action="moves",
        before=(EAST,),
        after=(WEST,),
        gain={"power": -1, "carbon": 0},
        uncovered=True,
    ),
    WorkloadMove(
        workload="d", action="shrinks", before=(EAST, WEST), after=(WEST,), gain={}, why="NoRoom"
    ),
    WorkloadMove(workload="e", action="stops", before=(EAST,), after=(), gain={}),
    WorkloadMove(workload="f", action="waits", before=(), after=(), gain={}, why="NoSupply"),
    WorkloadMove(workload="g", action="stops", before=(WEST,), after=(), gain={}),
)
SOLVED = Solution("Feasible", Decision(), 60.0, 63.0, 0.1, "highs")


def plan(*, bare: bool = False) -> Plan:
    """A plan with everything that its texts name; `bare`: with nothing of it."""
    whole = Plan(
        digest="0123456789abcdef",
        basis=Basis("b"),
        request=OptimizeRequest(**request()),
        solution=SOLVED,
        policies={},
        placements=(
            Placed(workload="b", cluster="east", policy="p", device="3g", score=62.5),
            Placed(workload="c", cluster="west", policy="", device="", score=-0.5),
        ),
        unplaced=(Unplaced(workload="f", reason="NoSupply", message="no room"),),
        issues=(Issue(reason="MissingScore", message="no score of f"),),
        manifests=(),
        changes=(
            Create(PLACEMENT, {"metadata": {"name": "p1", "namespace": "n"}}),
            Delete(POLICY, "p2", "n"),
        ),
        removals=(Removal(workload="g", clusters=("west",), message="stops g on west"),),
        moves=MOVES,
        enforcement_changes=(EnforcementChange(cluster="east", before=("q",), after=("p",)),),
        explanation=explanation(1),
    )
    if not bare:
        return whole
    return Plan(
        digest=whole.digest,
        basis=whole.basis,
        request=whole.request,
        solution=Solution("Optimal", Decision(), 0.0, 0.0, 0.1, "highs"),
        policies={},
        placements=(),
        unplaced=(),
        issues=(),
        manifests=(),
        changes=(),
        rollback=RecordedRollback(from_revision=3, to_revision=2),
    )


def rollout(*, turning_back: bool) -> RolloutStatus:
    """At the second of three steps, which move b, start c and stop d."""

    def ref(workload: str, cluster: str) -> tuple[ReplicaRef]:
        return (ReplicaRef(workload=workload, cluster=cluster),)

    steps = (
        StepActions(stop=ref("b", "east"), enforce=(EnforcedPolicy(cluster="east", policy="p"),)),
        StepActions(start=(*ref("b", "west"), *ref("c", "west"))),
        StepActions(stop=ref("d", "east")),
    )
    return RolloutStatus(
        namespace="n",
        optimization="default",
        record="r",
        digest="d",
        phase="Progressing",
        turning_back=turning_back,
        step=2,
        steps=steps,
        reason="StepWaiting",
        message="waits",
    )


def test_the_texts_of_plans_and_rollouts() -> None:
    texts = [
        *(render(plan(bare=bare)) for bare in (False, True)),
        *(plan_question(plan(bare=bare), hub) for bare, hub in ((False, "hub"), (True, ""))),
        *(
            rollout_question(command, rollout(turning_back=back), "hub")
            for command in ("pause", "resume", "undo", "cancel")
            for back in (False, True)
        ),
    ]
    approved = Path(__file__).with_name("questions.txt").read_text()
    assert "\n---\n".join(texts) + "\n" == approved
