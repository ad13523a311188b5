"""What values of the fleet and of a solution say, compared with sums and formulas."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.domain.fleet import (
    CLUSTER_NAME_KEY,
    CandidatePolicy,
    Cluster,
    Objective,
    Selector,
    Supply,
    net_supplies,
)
from optimizer.domain.solution import Decision, Solution

SUPPLIES = st.lists(
    st.builds(Supply, st.sampled_from("gc"), st.sampled_from(["", "d"]), st.integers(0, 5)),
    max_size=4,
)


def amounts(supplies: tuple[Supply, ...] | list[Supply]) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for kind, device, amount in supplies:
        found[kind, device] += int(amount)
    return found


@given(SUPPLIES, SUPPLIES)
def test_what_is_used_is_taken_from_supplies_and_the_rest_is_uncovered(
    supplies: list[Supply], used: list[Supply]
) -> None:
    left, uncovered = net_supplies(supplies, used)
    there, needed = amounts(supplies), amounts(used)
    assert amounts(left) == there - needed
    assert amounts(uncovered) == needed - there
    assert list(uncovered) == sorted(uncovered)
    assert [item for item in left if item.amount == 0] == [
        item for item in supplies if item.amount == 0
    ]
    if not needed:
        assert list(left) == supplies


SCORE = st.floats(-200, 200)


@given(SCORE, st.floats(0, 10), st.booleans(), st.one_of(st.none(), st.tuples(SCORE, SCORE)))
def test_a_score_is_weighed_scaled_and_inverted(
    score: float, weight: float, invert: bool, bounds: tuple[float, float] | None
) -> None:
    least, most = sorted(bounds or (0.0, 1.0))
    if bounds and most - least < 1e-3:
        return
    of = Objective("s", weight, *((least, most) if bounds else ()), invert=invert)
    if bounds:
        clipped = min(max(score, least), most)
        scaled = 100 * (clipped - least) / (most - least)
        expected = weight * (100 - scaled if invert else scaled)
    else:
        expected = weight * (-score if invert else score)
    assert of.value(score) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (10.0, 12.0, 0.2),
        (-10.0, -8.0, 0.2),
        (0.0, 0.0, 0.0),
        (0.0, 1.0, None),
        (5.0, 5.0, 0.0),
        (5.0, 4.0, 0.0),
        (5.0, None, None),
    ],
)
def test_the_gap_is_relative_to_the_objective(
    objective: float, bound: float | None, gap: float | None
) -> None:
    found = Solution("Feasible", Decision(), objective, bound, 0.0, "s").gap
    assert found == (None if gap is None else pytest.approx(gap))


def test_a_cluster_supplies_what_its_candidates_do_and_what_it_has_itself() -> None:
    one, base = Supply("gpu", "d", 1.0), Supply("cpu", "", 2.0)
    policy = CandidatePolicy("p", (one,))
    cluster = Cluster("c", Selector("c"), (policy,), {"zone": "a"}, base=(base,))
    assert list(cluster.supplies) == [one, base]
    assert [cluster.label(key) for key in ("zone", "other", CLUSTER_NAME_KEY)] == ["a", "", "c"]
