"""What an explanation says of a place is what was proven."""

import pytest

from optimizer.plan.text.tables import place_sentence
from optimizer.wire.explanation import AssignmentReason, ObjectiveLoss, RunnerUp


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
    told = "w is on 3g of east (score 60): next best for it alone is 2g of west (50)"
    assert place_sentence(item) == told + said
