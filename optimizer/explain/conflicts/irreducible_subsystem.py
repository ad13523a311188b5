"""Irreducible infeasible subsystems (IIS): limits that exclude something, and none is redundant.

QuickXplain (U. Junker, AAAI 2004) halves the limits and needs about k log(n/k) tests for k members
among n limits. A deletion filter (J. Chinneck and E. Dravnieks, ORSA Journal on Computing 3, 1991)
then tests once without each member, which proves that it is needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

FeasibilityTest = Callable[[Sequence[T]], bool | None]
"""Tells whether all required replicas can run while these limits hold; None: not known."""


@dataclass(frozen=True, slots=True)
class InfeasibleSubsystem(Generic[T]):
    """Limits that no decision keeps together; irreducible: without any one of them some does."""

    members: tuple[T, ...]
    irreducible: bool


def infeasible_subsystem(
    limits: Sequence[T], possible: FeasibilityTest[T]
) -> InfeasibleSubsystem[T]:
    """Return an infeasible subsystem of limits that are infeasible together, in their order.

    A test without an answer leaves its limit in, and the result is not called irreducible.
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
