"""The steps in which a supply is sized."""

from dataclasses import replace

import pytest

from optimizer.domain.fleet import Fleet
from optimizer.explain.conflicts.supply_limits import MAX_STEPS, doubling_steps, supply_step
from tests.optimizer.build import fleet


def asking(*amounts: float) -> Fleet:
    """Workloads that ask for these amounts, and a cluster without supply."""
    given = fleet({"c": []}, {f"w{at}": 1 for at in range(len(amounts))}, {})
    pairs = zip(given.workloads, amounts, strict=True)
    return replace(given, workloads=tuple(replace(item, amount=own) for item, own in pairs))


@pytest.mark.parametrize(
    ("amounts", "step"),
    [((2, 4), 2), ((0.001, 0.002), 0.001), ((1, 0.001), 0.001), ((0.5, 0.75), 0.25), ((0,), 1)],
)
def test_a_step_divides_all_amounts_down_to_a_thousandth(
    amounts: tuple[float, ...], step: float
) -> None:
    assert supply_step(asking(*amounts), "gpu") == pytest.approx(step, abs=0, rel=1e-9)


def test_a_step_is_no_less_than_a_part_of_what_workloads_can_use() -> None:
    assert supply_step(asking(99.999, 0.001), "gpu") == 100 / MAX_STEPS


def test_steps_double_until_the_last_is_enough_by_itself() -> None:
    assert list(doubling_steps(asking(1, 3), "gpu")) == [1, 2, 4]
    assert list(doubling_steps(asking(1, 4), "gpu")) == [1, 2, 4, 8]
