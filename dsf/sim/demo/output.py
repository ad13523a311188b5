"""The demo's output: steps and tables as text, or one JSON document."""

import json
from collections.abc import Iterable
from typing import Any

import click

from dsf.api.untrusted_text import escaped_lines
from dsf.cli.text_table import TextTable

INDENT = "   "


class DemoOutput:
    """Receives the steps of the demo and prints none; `finished` is true once it has the result."""

    finished = False

    def step(self, title: str) -> None:
        """Begin a step."""

    def note(self, text: str) -> None:
        """Say a sentence within a step."""

    def show(self, tables: Iterable[TextTable]) -> None:
        """Show tables."""

    def finish(self, result: Any) -> None:  # noqa: ARG002 - for JsonOutput
        """Take the result, which the steps have shown."""
        self.finished = True


class TextOutput(DemoOutput):
    """Prints each step as it happens, with its tables."""

    _steps = 0

    def step(self, title: str) -> None:
        """Print the number and the title of a step."""
        self._steps += 1
        click.secho(f"\n{self._steps}. {title}", bold=True)

    def note(self, text: str) -> None:
        """Print a sentence within a step."""
        click.echo((INDENT + escaped_lines(text)).rstrip())

    def show(self, tables: Iterable[TextTable]) -> None:
        """Print tables, their titles in italics."""
        for table in tables:
            click.echo()
            for number, line in enumerate(str(table).splitlines()):
                click.secho(INDENT + line, italic=bool(table.title) and number == 0)


class JsonOutput(DemoOutput):
    """Prints one JSON document at the end, and nothing else."""

    def finish(self, result: Any) -> None:
        """Print the result."""
        click.echo(json.dumps(result, indent=2))
        super().finish(result)
