"""Says on a terminal what a command that takes longer is doing, and since when."""

import sys
import threading
from types import TracebackType
from typing import TextIO

AFTER_SECONDS = 2.0
"""A command that ends sooner says nothing."""
EVERY_SECONDS = 1.0


class Progress:
    """A context in which standard error shows `Reading the hub: 3 s`, from two seconds on.

    The line disappears at the end. Nothing is written where standard error is no terminal.
    """

    def __init__(
        self, doing: str, stream: TextIO | None = None, *, after_seconds: float = AFTER_SECONDS
    ) -> None:
        self._doing = doing
        self._stream = sys.stderr if stream is None else stream
        self._after_seconds = after_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> "Progress":
        """Begin to count."""
        if self._stream.isatty():
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the line away."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _tell(self) -> None:
        waited = self._after_seconds
        if self._ended.wait(waited):
            return
        while True:
            self._write(f"\r{self._doing}: {waited:.0f} s")
            if self._ended.wait(EVERY_SECONDS):
                break
            waited += EVERY_SECONDS
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
