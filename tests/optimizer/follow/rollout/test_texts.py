"""What conditions and tables say of a rollout, wherever it is."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from optimizer.follow.rollout.next_step import RolloutProgress
from optimizer.follow.rollout.rollout_record import current_step, progressing_condition
from optimizer.follow.rollout.text import rollout_tables
from optimizer.wire.explanation import EnforcedPolicy
from optimizer.wire.plan_record import RecordedStep, RolloutPace, RolloutPlan
from optimizer.wire.rollout import (
    ReplicaRef,
    RolloutStatus,
    RolloutWait,
    StepActions,
    UncoveredOthers,
)

NEW, OLD = (EnforcedPolicy(cluster="east", policy=name) for name in ("new", "old"))
RUNS = (ReplicaRef(workload="w", cluster="east"),)
OTHERS = (
    UncoveredOthers(cluster="east", owner="o", namespace="m", workloads=("v", "u"), count=2),
    UncoveredOthers(cluster="west", owner="o", count=1),
)
STEPS = (
    StepActions(release=(OLD,), enforce=(NEW,), stop=RUNS, uncovered=("w",)),
    StepActions(start=RUNS, keep=RUNS, uncovers_others=OTHERS),
    StepActions(),
)
PLAN = RolloutPlan(
    namespace="n",
    optimization="default",
    pace=RolloutPace(),
    policies=(OLD,),
    replicas=RUNS,
    objects=(),
    steps=tuple(RecordedStep(actions=step) for step in STEPS),
)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
WAITS = tuple(RolloutWait(reason=f"R{n}", message=f"waits for {n}") for n in range(1, 5))
BEGUN = RolloutProgress(source=0, target=1)
AT = {
    "to begin": RolloutProgress(),
    "first": BEGUN,
    "waiting": replace(BEGUN, waiting_for=WAITS[:1]),
    "waiting for three": replace(BEGUN, waiting_for=WAITS[:3]),
    "overdue": replace(BEGUN, waiting_for=WAITS, overdue=True),
    "second": RolloutProgress(source=1, target=2),
    "turning back": RolloutProgress(source=2, target=1, turning_back=True),
    "last": RolloutProgress(source=2, target=3),
    "paused": replace(BEGUN, paused=True),
    "paused on the way back": replace(BEGUN, paused=True, turning_back=True),
    "complete": RolloutProgress(source=3, target=3, phase="Complete"),
    "turned back": RolloutProgress(turning_back=True, phase="TurnedBack"),
    "cancelled": replace(BEGUN, phase="Cancelled"),
}


def text(name: str) -> str:
    progress = AT[name]
    condition = progressing_condition(PLAN, progress)
    waits = tuple(item.model_copy(update={"since": SINCE}) for item in progress.waiting_for[:1])
    status = RolloutStatus(
        namespace="n",
        optimization="default",
        record="r",
        digest="d",
        phase=progress.phase,
        paused=progress.paused,
        turning_back=progress.turning_back,
        step=current_step(progress),
        steps=STEPS,
        waiting_for=(*waits, *progress.waiting_for[1:]),
        reason=condition.reason,
        message=condition.message,
    )
    return f"{name}: {condition.status}\n{rollout_tables(status)}"


def test_the_texts_of_a_rollout() -> None:
    assert "\n".join(map(text, AT)) == Path(__file__).with_name("texts.txt").read_text()
