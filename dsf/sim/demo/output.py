"""The demo's output: steps and tables as text, or one JSON document."""

import json
from collections.abc import Iterable
from typing import Any, Protocol

import click

from dsf.api.untrusted_text import escaped_lines
from dsf.cli.columns import aligned
from dsf.sim.demo.tables import Table

INDENT = "   "


class DemoOutput(Protocol):
    """Receives the steps of the demo; `finished` is true once it has the result."""

    finished: bool

    def step(self, title: str) -> None:
        """Begin a step."""
        ...

    def note(self, text: str) -> None:
        """Say a sentence within a step."""
        ...

    def show(self, tables: Iterable[Table]) -> None:
        """Show tables."""
        ...

    def finish(self, result: Any) -> None:
        """Give the result."""
        ...


class TextOutput:
    """Prints each step as it happens, with its tables."""

    def __init__(self) -> None:
        self.finished = False
        self._steps = 0

    def step(self, title: str) -> None:
        """Begin a step."""
        self._steps += 1
        click.secho(f"\n{self._steps}. {title}", bold=True)

    def note(self, text: str) -> None:
        """Say a sentence within a step."""
        click.echo(INDENT + escaped_lines(text))

    def show(self, tables: Iterable[Table]) -> None:
        """Show tables."""
        for table in tables:
            click.echo()
            if table.title:
                click.secho(INDENT + table.title, italic=True)
            for line in aligned(table.columns, table.rows).splitlines():
                click.echo(INDENT + line)

    def finish(self, result: Any) -> None:  # noqa: ARG002 - required by DemoOutput
        """Print nothing: the steps have shown the result."""
        self.finished = True


class JsonOutput:
    """Prints one JSON document at the end, and nothing else."""

    def __init__(self) -> None:
        self.finished = False

    def step(self, title: str) -> None:
        """Stay silent."""

    def note(self, text: str) -> None:
        """Stay silent."""

    def show(self, tables: Iterable[Table]) -> None:
        """Stay silent."""

    def finish(self, result: Any) -> None:
        """Print the result."""
        click.echo(json.dumps(result, indent=2))
        self.finished = True
