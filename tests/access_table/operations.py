"""What the rows of the table have in common."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.access_table.answers import Answer, Asker


@dataclass(frozen=True)
class Operation:
    """A row: how the operation is asked for namespace `default`, and on a hub in which state.

    `writes`: who may do it changes the hub. `like`: the row of REST that lets the same callers in.
    """

    name: str
    ask: Callable[[Asker], Awaitable[Answer]]
    state: str = "replaced"
    writes: bool = False
    like: str = ""
