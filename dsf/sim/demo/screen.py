"""What the demo prints: steps and tables for people, one JSON document for machines."""

import json
from collections.abc import Iterable
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table as RichTable

from dsf.sim.demo.facts import Table


class Screen(Protocol):
    """Where the story is told."""

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


class People:
    """Readable steps and tables."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._steps = 0

    def step(self, title: str) -> None:
        """Begin a step."""
        self._steps += 1
        self._console.print(f"\n[bold]{self._steps}. {title}[/bold]")

    def note(self, text: str) -> None:
        """Say a sentence within a step."""
        self._console.print(f"   {text}", markup=False)

    def show(self, tables: Iterable[Table]) -> None:
        """Show tables."""
        for table in tables:
            drawn = RichTable(title=table.title, title_justify="left", title_style="italic")
            for index, column in enumerate(table.columns):
                drawn.add_column(column, no_wrap=index == 0, overflow="fold")
            for row in table.rows:
                drawn.add_row(*row)
            self._console.print(drawn)

    def finish(self, result: Any) -> None:
        """Nothing is left to say."""


class Machines:
    """One JSON document at the end, and nothing else."""

    def step(self, title: str) -> None:
        """Stay silent."""

    def note(self, text: str) -> None:
        """Stay silent."""

    def show(self, tables: Iterable[Table]) -> None:
        """Stay silent."""

    def finish(self, result: Any) -> None:
        """Print the result."""
        print(json.dumps(result, indent=2))  # noqa: T201 - standard output is the interface
