"""`dsf scores`: the published scores as tables of managed clusters by dimension."""

import asyncio
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import click

from dsf.api.crd.score_meaning import PublishedMeaning, in_words
from dsf.api.scoring.placement_scores import ByDimension, by_score, expired_at, status_written
from dsf.api.scoring.registered_meaning import meanings
from dsf.api.scoring.track_record import read_trust
from dsf.api.times import read_time
from dsf.api.untrusted_text import escaped, listed
from dsf.cli.durations import shown_duration
from dsf.cli.options import cluster_options
from dsf.cli.output import document, output_option, show
from dsf.cli.progress import Progress
from dsf.cli.text_table import TextTable
from dsf.kube.clock import utc_now
from dsf.kube.port import Object

ScoreKey = tuple[str, str]
"""The names of an AddOnPlacementScore and of its managed cluster."""


@click.command()
@cluster_options("the hub")
@click.option("--cluster", "-c", "clusters", multiple=True, help="Only this managed cluster.")
@click.option("--score", "-s", "scores_", multiple=True, help="Only this AddOnPlacementScore.")
@click.option("--valid", is_flag=True, help="Omit expired scores.")
@output_option()
def scores(
    kubeconfig: Path | None,
    context: str | None,
    clusters: tuple[str, ...],
    scores_: tuple[str, ...],
    output: str,
    *,
    valid: bool,
) -> None:
    """Show scores: one table per AddOnPlacementScore, managed clusters by dimension.

    The last table says how old the scores of each cluster are, and when they expire. AGE is the
    time since they were written, "-" where the hub does not keep it.
    """
    with Progress("Reading scores"):
        objects, scorers = asyncio.run(_read(kubeconfig, context))
    objects = _only(objects, "namespace", clusters, "scores of managed cluster")
    objects = _only(objects, "name", scores_, "AddOnPlacementScore")
    now = utc_now()
    if valid:
        objects = [obj for obj in objects if not expired_at(obj, now)]
    found = by_score(objects)
    expired = _expired(objects, now)
    for (name, cluster), time in expired.items():
        expiry = f"{name} of {cluster} expired at {time}"
        click.echo(f"{escaped(expiry)}: a Placement counts it as 0", err=True)
    for obj in objects:
        if read_trust(obj) == 0:
            click.echo(escaped(_untrusted(obj["metadata"])), err=True)
    if output != "table":
        show(document(found, output))
    elif found:
        known = meanings(scorers)
        tables = [
            *(score_table(name, found[name], expired, meaning=known.get(name)) for name in found),
            freshness_table(objects, now),
        ]
        show("\n\n".join(map(str, tables)) + "\n")
    else:
        click.echo("No scores found.", err=True)


async def _read(
    kubeconfig: Path | None, context: str | None
) -> tuple[Sequence[Object], Sequence[Object]]:
    """Return the AddOnPlacementScores, and the DynamicScorers if the user may list them."""
    from dsf.kube.client.connect import connect
    from dsf.kube.errors import Forbidden, NotFound
    from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, DYNAMIC_SCORER

    async with connect(kubeconfig, context) as kube:
        found = (await kube.list(ADD_ON_PLACEMENT_SCORE)).items
        try:
            return found, (await kube.list(DYNAMIC_SCORER)).items
        except (Forbidden, NotFound):
            return found, ()


def _only(
    objects: Sequence[Object], field: str, names: Sequence[str], what: str
) -> Sequence[Object]:
    """Return the objects with one of the names; all objects if none is given."""
    if not names:
        return objects
    there = {obj["metadata"][field] for obj in objects}
    unknown = sorted(set(names) - there)
    if unknown:
        known = f"the hub has {listed(sorted(there))}" if there else "the hub has none"
        raise click.ClickException(f"no {what} {listed(unknown)}; {known}")
    return [obj for obj in objects if obj["metadata"][field] in names]


def _untrusted(metadata: Mapping[str, Any]) -> str:
    name, cluster = metadata["name"], metadata["namespace"]
    told = f"kubectl -n {cluster} describe addonplacementscore {name}"
    return f"forecasts {name} of {cluster} are no better than the last value: see {told}"


def _expired(objects: Sequence[Object], now: datetime) -> dict[ScoreKey, str]:
    """Return when scores expired, for those that did."""
    found = {
        (obj["metadata"]["name"], obj["metadata"]["namespace"]): expired_at(obj, now)
        for obj in objects
        if (obj.get("status") or {}).get("scores")
    }
    return {key: time for key, time in sorted(found.items()) if time}


def score_table(
    name: str,
    entries: ByDimension,
    expired: Container[ScoreKey] = (),
    *,
    meaning: PublishedMeaning | None = None,
    most: int | None = None,
) -> TextTable:
    """Return a table of one score: a row for each of the first `most` dimensions, then the rest.

    There is a column for each managed cluster; its cells say which scores are `expired`. The title
    says what the values mean, if that is known.
    """
    clusters = sorted({cluster for values in entries.values() for cluster in values})
    rows = [
        [entry, *(_cell(values.get(cluster), (name, cluster) in expired) for cluster in clusters)]
        for entry, values in islice(entries.items(), most)
    ]
    if left := len(entries) - len(rows):
        rows.append([f"({left} more)", *("" for _ in clusters)])
    words = in_words(meaning) if meaning else ""
    return TextTable(["dimension", *clusters], rows, f"{name} ({words})" if words else name)


def freshness_table(objects: Iterable[Object], now: datetime) -> TextTable:
    """Return a table of when each AddOnPlacementScore was written last, and when it expires.

    An agent writes scores that do not change only when half of their validity is over.
    """
    rows = []
    for obj in sorted(objects, key=lambda one: (one["metadata"]["name"], _cluster(one))):
        written = status_written(obj)
        age = shown_duration(max((now - written).total_seconds(), 0)) if written else "-"
        rows.append((obj["metadata"]["name"], _cluster(obj), age, _expiry(obj, now)))
    return TextTable(("score", "cluster", "age", "expires"), rows)


def _cluster(obj: Object) -> str:
    return str(obj["metadata"]["namespace"])


def _expiry(obj: Object, now: datetime) -> str:
    until = read_time((obj.get("status") or {}).get("validUntil"))
    if until is None:
        return "never"
    left = (until - now).total_seconds()
    return f"in {shown_duration(left)}" if left > 0 else f"{shown_duration(-left)} ago"


def _cell(value: int | None, expired: bool) -> str:
    if value is None:
        return "-"
    return f"{value} (expired)" if expired else str(value)
