"""The demo's output: steps and tables as text, or one JSON document.

Tables are made of Kubernetes objects and of the optimizer's answers.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import click

from dsf.api.conditions import conditions_of, find
from dsf.api.scoring.placement_scores import by_score
from dsf.api.untrusted_text import escaped_lines
from dsf.cli.output import TextTable
from dsf.cli.scores import score_table
from dsf.kube.port import Object

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


SHOWN_DIMENSIONS = 8
"""Rows of a table of scores; a table then fits a terminal of 24 lines, and the rest is counted."""

DIGEST_SHOWN = 12
"""Characters of a digest in a table: enough to tell plans apart."""

OptimizeAnswer = Mapping[str, Any]
"""The JSON answer of POST /optimize."""


def score_tables(scores: Iterable[Object]) -> list[TextTable]:
    """Return one table for each score: a row for each dimension, a column for each cluster."""
    found = by_score(scores)
    return [score_table(name, found[name], most=SHOWN_DIMENSIONS) for name in found]


def table_of(items: Iterable[Mapping[str, Any]], *columns: str) -> TextTable:
    """Return a table of some fields of the items of an answer; a digest is cut."""
    return TextTable(columns, [[_cell(name, item[name]) for name in columns] for item in items])


def _cell(column: str, value: Any) -> str:
    if column == "digest":
        return str(value)[:DIGEST_SHOWN]
    return format(value, "g") if isinstance(value, float) else str(value or "-")


def plan_tables(answer: OptimizeAnswer) -> list[TextTable]:
    """Return the tables of a plan: policies of clusters, clusters of workloads, what has none."""
    unplaced = [table_of(answer["unplaced"], "workload", "reason")] if answer["unplaced"] else []
    return [
        TextTable(("cluster", "policy"), sorted(answer["policies"].items())),
        table_of(answer["placements"], "workload", "cluster", "device", "score"),
        *unplaced,
    ]


def placement_table(placements: Iterable[Object]) -> TextTable:
    """Return a table of Placements with the columns of `kubectl get placements`."""
    rows = []
    for obj in sorted(placements, key=lambda item: str(item["metadata"]["name"])):
        status = obj.get("status") or {}
        condition = find(conditions_of(obj), "PlacementSatisfied") or {}
        rows.append(
            (
                obj["metadata"]["name"],
                condition.get("status", "-"),
                condition.get("reason", "-"),
                str(status.get("numberOfSelectedClusters", "-")),
            )
        )
    return TextTable(("placement", "succeeded", "reason", "clusters"), rows)


def inventory_table(groups: Mapping[str, Iterable[Mapping[str, Any]]], prefix: str) -> TextTable:
    """Return a table of what groups of nodes have, by cluster: resources that begin so."""
    rows = [
        (cluster, str(group["count"]), name, amount, group["requested"].get(name, "0"))
        for cluster, found in groups.items()
        for group in found
        for name, amount in group["allocatable"].items()
        if name.startswith(prefix)
    ]
    return TextTable(("cluster", "nodes", "resource", "allocatable", "requested"), rows)


def comparison_table(answers: Mapping[str, OptimizeAnswer]) -> TextTable:
    """Return a table that compares answers: a row for each preference and cluster."""
    rows = [
        (
            name,
            str(answer["status"]),
            format(answer["objective_value"], "g"),
            cluster,
            policy,
            ", ".join(p["workload"] for p in answer["placements"] if p["cluster"] == cluster),
        )
        for name, answer in answers.items()
        for cluster, policy in sorted(answer["policies"].items())
    ]
    return TextTable(("preference", "status", "objective", "cluster", "policy", "workloads"), rows)
