"""How every command prints its result: `-o table|json|yaml`, and colour on terminals only."""

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from dsf.api.untrusted_text import escaped_json
from dsf.cli.options import Command

_COLOURS = {
    "green": ("Landed", "Ready", "Active", "Available", "Applied", "Complete", "ok", "installed"),
    "yellow": (
        *("Planned", "WaitingForPolicy", "WaitingForClaim", "Progressing", "Applying", "Paused"),
        *("Unknown", "warning", "partly"),
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
    return click.option(
        "--output",
        "-o",
        type=click.Choice(forms or ("table", "json", "yaml")),
        default=default,
        show_default=True,
        help=help or "Form of the result.",
    )


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
    return _STATE_CELL.sub(lambda found: _styled(found[0], found[1]), text)


def coloured_diff(text: str) -> str:
    """Return a unified diff with added lines in green and removed lines in red."""
    added = _ADDED_LINE.sub(lambda found: click.style(found[0], fg="green"), text)
    return _REMOVED_LINE.sub(lambda found: click.style(found[0], fg="red"), added)


def _styled(text: str, state: str | None) -> str:
    return click.style(text, fg=_COLOUR_OF[state] if state else "red")
