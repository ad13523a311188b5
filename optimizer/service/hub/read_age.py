"""How old what an answer is made of may be: when the API server last told of its oldest part."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class ReadAge:
    """When the API server last told of the oldest part of what was read, in the loop's seconds.

    `heard` None: all was read from the API server. `all_watched`: a later change of any part of it
    would be told.
    """

    def __init__(self) -> None:
        self.heard: float | None = None
        self.all_watched = True

    @property
    def seconds(self) -> float | None:
        """How old the oldest part is now."""
        return None if self.heard is None else asyncio.get_running_loop().time() - self.heard

    def note(self, heard: float) -> None:
        """Take another part into account."""
        self.heard = heard if self.heard is None else min(heard, self.heard)


_reading = ContextVar[ReadAge | None]("reading", default=None)


@contextmanager
def measured_age() -> Iterator[ReadAge]:
    """Measure the age of what is read meanwhile, also in threads and tasks that begin meanwhile.

    What a block within this one measures counts for both.
    """
    age = ReadAge()
    before = _reading.get()
    token = _reading.set(age)
    try:
        yield age
    finally:
        _reading.reset(token)
        if before and age.heard is not None:
            before.note(age.heard)


def note_heard(heard: float) -> None:
    """Take into account that the API server told of a part of an answer at this time."""
    if age := _reading.get():
        age.note(heard)


def note_unwatched() -> None:
    """Take into account that nobody tells of changes of a part of an answer."""
    if age := _reading.get():
        age.all_watched = False
