"""Irreducible infeasible subsystems of invented conflicts."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from optimizer.explain.conflicts.correction_sets import infeasible_subsystem

LIMITS = tuple(range(8))
sets = st.frozensets(st.sampled_from(LIMITS), min_size=1, max_size=4)


@given(st.lists(sets, min_size=1, max_size=4))
def test_of_several_conflicts_one_is_found_whole_and_without_spare_members(
    conflicts: list[frozenset[int]],
) -> None:
    def possible(held: Sequence[int]) -> bool:
        return not any(item <= set(held) for item in conflicts)

    found = infeasible_subsystem(LIMITS, possible)
    assert found.irreducible
    assert not possible(found.members)
    for member in found.members:
        assert possible([item for item in found.members if item != member])


def test_few_questions_are_asked_of_many_limits() -> None:
    asked = []

    def possible(held: Sequence[int]) -> bool:
        asked.append(len(held))
        return not {3, 900} <= set(held)

    assert infeasible_subsystem(range(1000), possible).members == (3, 900)
    assert len(asked) < 60


def test_what_is_not_known_is_not_called_irreducible() -> None:
    found = infeasible_subsystem(LIMITS, lambda held: False if len(held) == len(LIMITS) else None)
    assert found.members == LIMITS
    assert not found.irreducible
