"""How every command prints: `-o table|json|yaml`, aligned columns, colour, and its progress."""

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import click

from dsf.api.untrusted_text import escaped, escaped_json
from dsf.cli.options import Command, option

COLUMN_SPACING = 3
"""Spaces between two columns, as in kubectl."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """Column names, rows with a cell for each column, and a title (empty for none)."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def __str__(self) -> str:
        """Return the title, the columns in capitals and the rows, each cell as wide as its column.

        Invisible characters are escaped, because a terminal would obey some of them.
        """
        header = [column.upper() for column in self.columns]
        lines = [[escaped(cell) for cell in line] for line in (header, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [
            (" " * COLUMN_SPACING).join(map(str.ljust, line, widths)).rstrip() for line in lines
        ]
        return "\n".join([escaped(self.title), *padded] if self.title else padded)


_COLOURS = {
    "green": ("Landed", "Ready", "Active", "Available", "Applied", "Complete", "ok", "installed"),
    "yellow": (
        *("Planned", "WaitingForPolicy", "WaitingForClaim", "WaitingForPods", "Progressing"),
        *("Applying", "Paused", "Unknown", "warning", "partly"),
    ),
    "red": ("Refused", "Inactive", "Failed", "failed", "missing", "ClusterLost", "ClusterLeft"),
}
"""Colours of the words that are states, where one is a whole cell of a table."""
_COLOUR_OF = {word: colour for colour, words in _COLOURS.items() for word in words}
_STATE_CELL = re.compile(
    rf"(?:(?<=^)|(?<=   ))({'|'.join(_COLOUR_OF)})(?= {{3}}|$)|\d+ \((expired)\)", re.MULTILINE
)
_ADDED_LINE, _REMOVED_LINE = re.compile(r"^\+.*$", re.MULTILINE), re.compile(r"^-.*$", re.MULTILINE)


def output_option(
    *forms: str,
    default: str = "table",
    help: str = "",  # noqa: A002 - click's word
) -> Callable[[Command], Command]:
    """Return `--output`, `-o`; without `forms`: table, json or yaml."""
    return option(
        "--output",
        "-o",
        type=click.Choice(forms or ("table", "json", "yaml")),
        default=default,
        help=help or "Form of the result.",
    )


def picture_option(what: str, form: str = ".svg") -> Callable[[Command], Command]:
    """Return `--picture`; `what` it draws. A file of another `form` is refused before any work."""

    def checked(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and path.suffix.lower() != form:
            instead = path.with_suffix(form).name
            raise click.BadParameter(f"{path} must end in {form}; write {instead}, for browsers")
        return path

    file = click.Path(dir_okay=False, writable=True, path_type=Path)
    return option("--picture", type=file, callback=checked, help=what)


def draw(picture: str, path: Path) -> None:
    """Write a picture, and say so on standard error. Raises ClickException."""
    try:
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
    click.echo(f"Drew {path}: open it in a browser.", err=True)


def document(value: Any, form: str) -> str:
    """Return a JSON value as a JSON or YAML document without invisible characters."""
    if form == "yaml":
        import yaml

        return str(yaml.safe_dump(value, sort_keys=False))
    return escaped_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def document_of(models: Any, form: str) -> str:
    """Return a pydantic model, or a sequence of them, as a JSON or YAML document."""
    if isinstance(models, Sequence):
        return document([json.loads(item.model_dump_json()) for item in models], form)
    return document(json.loads(models.model_dump_json()), form)


def show(text: str) -> None:
    """Print text, its states in colour on a terminal unless NO_COLOR is set (no-color.org)."""
    click.echo(coloured(text), nl=False, color=colour_wanted())


def colour_wanted() -> bool | None:
    """Return False if NO_COLOR is set, else None: click decides by whether it is a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def coloured(text: str) -> str:
    """Return text of tables with the cells that are states in the colour of the state."""
    return _STATE_CELL.sub(
        lambda found: click.style(found[0], fg=_COLOUR_OF[found[1]] if found[1] else "red"), text
    )


def coloured_diff(text: str) -> str:
    """Return a unified diff with added lines in green and removed lines in red."""
    added = _ADDED_LINE.sub(lambda found: click.style(found[0], fg="green"), text)
    return _REMOVED_LINE.sub(lambda found: click.style(found[0], fg="red"), added)


AFTER_SECONDS = 2.0
"""A command that ends sooner says nothing."""
EVERY_SECONDS = 1.0


class Progress:
    """A context in which standard error shows `Reading the hub: 3 s`, from two seconds on.

    The line disappears at the end. Nothing is written where standard error is no terminal.
    `detail`, if it is set meanwhile, is shown after the seconds.
    """

    detail = ""

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
            self._write(f"\r\x1b[K{self._doing}: {waited:.0f} s{self.detail}")
            if self._ended.wait(EVERY_SECONDS):
                break
            waited += EVERY_SECONDS
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
