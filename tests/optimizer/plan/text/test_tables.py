"""What an explanation says is all that it has, and of a place what was proven."""

from pathlib import Path

import pytest

from optimizer.plan.text.tables import (
    SHOWN,
    explanation_sections,
    explanation_sentences,
    place_sentence,
)
from optimizer.wire.explanation import (
    AssignmentReason,
    AssignmentRef,
    BindingLimit,
    ConflictingLimit,
    EnforcedPolicy,
    Explanation,
    GpusToDrain,
    ObjectiveLoss,
    ParetoPoint,
    ParetoSet,
    Repair,
    RepairChange,
    RunnerUp,
    TransitionPlan,
    TransitionStep,
    UnplacedReason,
    WhyNotAnswer,
)


@pytest.mark.parametrize(
    ("margin", "at_most", "said"),
    [
        (5.0, 5.0, "; without this place the plan loses 5 (then without a place)"),
        (None, 5.0, "; without this place the plan loses at most 5 (then without a place)"),
        (None, None, ""),
    ],
)
def test_a_loss_that_is_only_bounded_is_not_told_as_the_loss(
    margin: float | None, at_most: float | None, said: str
) -> None:
    exact, bound = (
        None if value is None else ObjectiveLoss(total=value, by_priority={})
        for value in (margin, at_most)
    )
    here = {"workload": "w", "cluster": "east", "device": "3g", "policy": "p", "score": 60.0}
    other = RunnerUp(cluster="west", device="2g", score=50.0)
    item = AssignmentReason(**here, runner_up=other, margin=exact, at_most=bound)
    told = "w is on 3g of east (worth 60): next best for it alone is 2g of west (50)"
    assert place_sentence(item) == told + said


@pytest.mark.parametrize(
    ("taken_by", "at_most", "said"),
    [
        ((), None, ""),
        (("v",), None, ", but the plan has v there"),
        (
            ("u", "v"),
            ObjectiveLoss(total=5, by_priority={}),
            (
                ", but the plan has u, v there; no plan with w there is better; without this place"
                " the plan loses at most 5 (then without a place)"
            ),
        ),
    ],
)
def test_what_is_better_for_it_is_not_told_as_the_next_best(
    taken_by: tuple[str, ...], at_most: ObjectiveLoss | None, said: str
) -> None:
    here = {"workload": "w", "cluster": "east", "device": "3g", "policy": "p", "score": 40.0}
    other = RunnerUp(cluster="west", device="2g", score=50.0, taken_by=taken_by)
    item = AssignmentReason(**here, runner_up=other, margin=None, at_most=at_most)
    told = "w is on 3g of east (worth 40): 2g of west (50) is better for it alone"
    assert place_sentence(item) == told + said


APPROVED = Path(__file__).with_name("explanation.txt")


def loss(total: float, **by_priority: float) -> ObjectiveLoss:
    by = {int(key.removeprefix("p")): value for key, value in by_priority.items()}
    return ObjectiveLoss(total=total, by_priority=by)


def explanation(count: int) -> Explanation:
    """One with every part, whose lists have `count` items."""
    at = AssignmentRef(workload="w", cluster="east", device="3g")
    runs = EnforcedPolicy(cluster="east", policy="p")
    change = RepairChange(message="add 1 gpu", size=0.1)
    remedy = Repair(changes=(change,), verified=True, places=(at,), losing=("v",))
    limit = ConflictingLimit(rule="room", message="east is full")
    gpus = GpusToDrain(cluster="east", policy="p", gpus=("n/0",))
    step = TransitionStep(
        draining=(gpus, GpusToDrain(cluster="west", policy="q")),
        enforce=(runs,),
        release=(runs,),
        start=(at,),
        stop=(at,),
        uncovered=("w",),
    )
    here = {"workload": "w", "cluster": "east", "device": "3g", "policy": "p", "score": 60.0}
    place = AssignmentReason(
        **here,
        runner_up=RunnerUp(cluster="west", device="2g", score=50.0),
        margin=loss(3, p2=3, p1=0),
        at_most=loss(3, p2=3, p1=0),
        instead=(at,),
        entries={"power": "e1"},
    )
    point = ParetoPoint(values={"power": 1.5}, policies=(runs,), places=(at,))
    return Explanation(
        unplaced=(UnplacedReason(workload="u", message="no room", limits=(limit,), remedy=remedy),)
        * count,
        why_not=(WhyNotAnswer(asked="w on west", possible=True, message="fits", lost=loss(2)),)
        * count,
        pareto=ParetoSet(points=(point,) * count, complete=True, message="1 found"),
        transition=TransitionPlan(
            steps=(step,) * count, uncovered=("w",), least=True, message="in 1 step"
        ),
        not_computed=("the rest",) * count,
        binding=(
            BindingLimit(cluster="east", limit="gpu of east", used=2, price={2: 1.5, 1: 0}),
            BindingLimit(cluster="east", limit="cpu of east", used=0.5, price={1: 4}),
            BindingLimit(cluster="", limit="power", used=3, price=None),
        )[:count]
        * count,
        places=(place,) * count,
    )


def test_every_part_of_an_explanation_is_told_in_tables_and_sentences() -> None:
    few = explanation(1).model_copy(update={"binding": explanation(3).binding[:3]})
    tables = "\n\n".join(str(section.table) for section in explanation_sections(few))
    told = "\n".join(explanation_sentences(few))
    assert f"{tables}\n\n{told}\n" == APPROVED.read_text()


@pytest.mark.parametrize("count", [SHOWN - 1, SHOWN, SHOWN + 2])
def test_a_list_is_cut_where_it_is_longer_than_a_screen(count: int) -> None:
    whole = explanation(count).model_copy(update={"transition": None})
    text = "\n".join(explanation_sentences(whole))
    cut = [line for line in text.split("\n") if line.startswith("And ")]
    left = count - SHOWN
    of_one = [f"And {left} more of these."] if left > 0 else []
    of_three = [f"And {3 * count - SHOWN} more of these."]
    assert cut == [*of_one, *of_three, *of_one]
    [table] = [s.table for s in explanation_sections(whole) if s.table.columns[0] == "not computed"]
    assert len(table.rows) == min(count, SHOWN + 1)
    assert table.rows[-1] == (("...",) if left > 0 else ("the rest",))
