"""Expected failure as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invalid:
    """Something a user wrote that can't be used: a CamelCase reason and a message that says why.

    The reason becomes a Condition's `reason`, the message its `message`.
    """

    reason: str
    message: str
