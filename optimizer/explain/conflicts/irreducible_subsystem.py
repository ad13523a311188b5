"""Irreducible conflicts: of many limits, some that exclude something and of which none is spare.

The search halves the limits (QuickXplain; Junker, AAAI 2004), so it asks about k log(n/k) questions
for k limits among n; then each member is shown to be needed by asking once without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

FeasibilityTest = Callable[[Sequence[T]], bool | None]
"""Tells whether it is possible while these limits hold; None: not known."""


@dataclass(frozen=True, slots=True)
class InfeasibleSubsystem(Generic[T]):
    """Limits that together exclude something; irreducible: without any one it is possible."""

    members: tuple[T, ...]
    irreducible: bool


def infeasible_subsystem(
    limits: Sequence[T], possible: FeasibilityTest[T]
) -> InfeasibleSubsystem[T]:
    """Return a conflict among limits that are known to be one, in their order.

    Answers that are not known leave limits in, and the conflict is not called irreducible then.
    """
    found = _quickxplain((), list(limits), possible, grown=False)
    if len(found) < len(limits) and possible(found) is not False:
        found = list(limits)
    return _deletion_filter([item for item in limits if item in found], possible)


def _quickxplain(
    held: Sequence[T], limits: list[T], possible: FeasibilityTest[T], *, grown: bool
) -> list[T]:
    if grown and possible(held) is False:
        return []
    if len(limits) <= 1:
        return limits
    half = len(limits) // 2
    first, second = limits[:half], limits[half:]
    later = _quickxplain([*held, *first], second, possible, grown=True)
    sooner = _quickxplain([*held, *later], first, possible, grown=bool(later))
    return [*sooner, *later]


def _deletion_filter(found: list[T], possible: FeasibilityTest[T]) -> InfeasibleSubsystem[T]:
    needed = list(found)
    proven = True
    for item in found:
        others = [other for other in needed if other is not item]
        answer = possible(others)
        if answer is False:
            needed = others
        proven = proven and answer is not None
    return InfeasibleSubsystem(tuple(needed), proven)
