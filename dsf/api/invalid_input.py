"""Expected failure as a value: why something that a user wrote can't be used."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """What is wrong with an input: a CamelCase reason and a message that says why.

    Both go into a condition, as its `reason` and its `message`.
    """

    reason: str
    message: str
