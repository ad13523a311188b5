"""`dsf scores`: the published scores as tables of managed clusters by dimension, or as bars."""

import asyncio
import sys
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from dsf.api.crd.score_meaning import PublishedMeaning, in_words
from dsf.api.scoring import placement_scores
from dsf.api.scoring.score_conditions import read_trust
from dsf.api.times import shown_duration, shown_expiry
from dsf.api.untrusted_text import escaped, listed
from dsf.cli.missing_scores import NO_SCORER, why_missing
from dsf.cli.options import (
    Duration,
    StrictCommand,
    async_to_sync,
    cluster_options,
    option,
    server_url,
)
from dsf.cli.output import Progress, TextTable, document, output_option, show
from dsf.cli.terminal_drawing import levels_for
from dsf.kube.clock import utc_now
from dsf.kube.errors import Forbidden, Gone, KubeError, NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG
from dsf.kube.port import Kube, Object, list_objects

if TYPE_CHECKING:
    from dsf.cli.prometheus import PastValues

T = TypeVar("T")

ScoreKey = tuple[str, str]
"""The names of an AddOnPlacementScore and of its managed cluster."""

WATCH_SECONDS = 30
"""Ages are shown anew after so long, even if no score changed."""
PAUSE_SECONDS = 1.0
"""Between two looks: agents of a large fleet write all the time."""
RETRY_SECONDS = 5.0
"""Until a hub that went away is asked again."""
HISTORY_POINTS = 120
"""Values of each score that are asked of a Prometheus."""


class _ScoreView(NamedTuple):
    """Which scores are shown, and how. `plot`: as bars. `since`: seconds of history."""

    clusters: tuple[str, ...]
    scores: tuple[str, ...]
    valid: bool
    output: str
    plot: bool
    prometheus_url: str
    since: float


class _FoundScores(NamedTuple):
    """AddOnPlacementScores, past values by a Prometheus, and what the hub controller reports.

    `scorers` is None if the user may not list DynamicScorers, or the hub does not know them.
    """

    objects: Sequence[Object]
    past: "Sequence[PastValues]"
    scorers: Sequence[Object] | None
    config: Object | None = None


@click.command(cls=StrictCommand)
@cluster_options("the hub")
@option("--cluster", "-c", "clusters", multiple=True, help="Only this managed cluster.")
@option("--score", "-s", "scores_", multiple=True, help="Only this AddOnPlacementScore.")
@option("--valid", is_flag=True, help="Omit expired scores.")
@option("--plot", is_flag=True, help="Draw bars by managed cluster.")
@option(
    "--prometheus-url",
    default="",
    callback=server_url,
    help="Draw the history of scores too, as this Prometheus has it.",
)
@option("--since", type=Duration(), default="24h", help="How long that history is.")
@option("--watch", "-w", is_flag=True, help="Show them again whenever one changes.")
@output_option()
@async_to_sync
async def scores(
    kubeconfig: Path | None,
    context: str | None,
    clusters: tuple[str, ...],
    scores_: tuple[str, ...],
    output: str,
    prometheus_url: str,
    since: float,
    *,
    valid: bool,
    plot: bool,
    watch: bool,
) -> None:
    """Show scores: one table per AddOnPlacementScore, managed clusters by dimension.

    The last table says how old the scores of each cluster are, and when they expire. AGE is the
    time since they were written, "-" where the hub does not keep it. Standard error says on which
    clusters a scorer fails, and why it has no scores.
    """
    from dsf.kube.client.connect import connect

    source = click.get_current_context().get_parameter_source("since")
    if source is ParameterSource.COMMANDLINE and not prometheus_url:
        raise click.UsageError("--since needs --prometheus-url, which has the history")
    if output != "table" and (plot or prometheus_url):
        raise click.UsageError("--plot and --prometheus-url draw: give no --output")
    view = _ScoreView(clusters, scores_, valid, output, plot, prometheus_url, since)
    async with connect(kubeconfig, context) as kube:
        if watch:
            async for found in score_looks(kube, lambda kube: _read(kube, view)):
                if sys.stdout.isatty():
                    click.clear()
                _show(found, view)
        with Progress("Reading scores"):
            found = await _read(kube, view)
    _show(found, view)


async def score_changes(kube: Kube, *, pause: float = PAUSE_SECONDS) -> AsyncGenerator[None]:
    """Yield at once, after each change of an AddOnPlacementScore, and at least every 30 s."""
    while True:
        version = (await kube.list(ADD_ON_PLACEMENT_SCORE, limit=1)).resource_version
        yield
        changes = kube.watch(
            ADD_ON_PLACEMENT_SCORE, resource_version=version, timeout_seconds=WATCH_SECONDS
        )
        async with aclosing(changes):
            with suppress(Gone):
                async for event in changes:
                    if event.type != "BOOKMARK":
                        break
        await asyncio.sleep(pause)


async def score_looks(
    kube: Kube, read: Callable[[Kube], Awaitable[T]], *, pause: float = RETRY_SECONDS
) -> AsyncGenerator[T]:
    """Yield what `read` returns, at once and after each change; ask a hub that goes away again.

    Raises KubeError if the hub does not answer the first time, or will never answer.
    """
    seen = False
    while True:
        try:
            async for _ in score_changes(kube):
                found = await read(kube)
                seen = True
                yield found
        except KubeError as error:
            if not (seen and error.retryable):
                raise
            click.echo(f"{escaped(str(error))}; trying again", err=True)
            await asyncio.sleep(pause)


async def _read(kube: Kube, view: _ScoreView) -> _FoundScores:
    """Return the AddOnPlacementScores, and the DynamicScorers if the user may list them."""
    objects = await list_objects(kube, ADD_ON_PLACEMENT_SCORE)
    past = await _past_values(view) if view.prometheus_url else ()
    try:
        scorers = await list_objects(kube, DYNAMIC_SCORER)
        configs = await list_objects(kube, DYNAMIC_SCORING_CONFIG)
    except (Forbidden, NotFound):
        return _FoundScores(objects, past, None)
    return _FoundScores(objects, past, scorers, configs[0] if configs else None)


async def _past_values(view: _ScoreView) -> "Sequence[PastValues]":
    from dsf.cli.prometheus import PrometheusRefused, past_values
    from dsf.cli.terminal_drawing import HISTORY_QUERY

    end = utc_now().timestamp()
    try:
        return await past_values(
            view.prometheus_url,
            HISTORY_QUERY,
            start=end - view.since,
            end=end,
            step=max(view.since / HISTORY_POINTS, 1.0),
        )
    except PrometheusRefused as error:
        raise click.ClickException(str(error)) from error


def _show(seen: _FoundScores, view: _ScoreView) -> None:
    _explain(seen, view)
    objects = _only(seen.objects, "namespace", view.clusters, "scores of managed cluster")
    objects = _only(objects, "name", view.scores, "AddOnPlacementScore")
    now = utc_now()
    if view.valid:
        objects = [obj for obj in objects if not placement_scores.validity_of(obj, now)[1]]
    found = placement_scores.by_score(objects)
    expired = _expired(objects, now)
    _warn(objects, expired)
    if view.output != "table":
        show(document(found, view.output))
    elif found:
        tables = [*_tables(found, expired, seen, view), freshness_table(objects, now)]
        show("\n\n".join(map(str, tables)) + "\n")
    else:
        click.echo("No scores found.", err=True)


def _explain(seen: _FoundScores, view: _ScoreView) -> None:
    """Say on standard error where scorers fail, and why there are no scores."""
    wanted = [one for one in seen.objects if not view.clusters or _cluster(one) in view.clusters]
    scored = placement_scores.by_score(wanted)
    reasons = why_missing(
        seen.scorers or (), seen.config, scored, clusters=view.clusters, scores=view.scores
    )
    for line in reasons:
        click.echo(escaped(line), err=True)
    if seen.scorers is None and not seen.objects:
        click.echo("DynamicScorers can't be listed here: they would say why", err=True)
    elif not seen.scorers and not seen.objects:
        click.echo(NO_SCORER, err=True)


def _tables(
    found: Mapping[str, placement_scores.ByDimension],
    expired: Container[ScoreKey],
    seen: _FoundScores,
    view: _ScoreView,
) -> Iterator[TextTable]:
    from dsf.cli.terminal_drawing import bars, history

    known, levels = placement_scores.meanings(seen.scorers or ()), levels_for(sys.stdout)
    for name, entries in found.items():
        meaning = known.get(name)
        if view.plot:
            yield bars(name, entries, expired, levels, meaning=meaning)
        else:
            yield score_table(name, entries, expired, meaning=meaning)
    if view.prometheus_url:
        yield history(seen.past, found, levels)


def _warn(objects: Iterable[Object], expired: Mapping[ScoreKey, str]) -> None:
    """Say on standard error which scores expired, and which forecasts nobody should trust."""
    for (name, cluster), time in expired.items():
        expiry = f"{name} of {cluster} expired at {time}"
        click.echo(f"{escaped(expiry)}: a Placement counts it as 0", err=True)
    for obj in objects:
        if read_trust(obj) == 0:
            click.echo(escaped(_untrusted(obj["metadata"])), err=True)


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
    command = f"kubectl -n {cluster} describe addonplacementscore {name}"
    return f"forecasts {name} of {cluster} are no better than the last value: see {command}"


def _expired(objects: Sequence[Object], now: datetime) -> dict[ScoreKey, str]:
    """Return when scores expired, for those that did."""
    found = {
        (obj["metadata"]["name"], obj["metadata"]["namespace"]): str(obj["status"]["validUntil"])
        for obj in objects
        if (obj.get("status") or {}).get("scores") and placement_scores.validity_of(obj, now)[1]
    }
    return dict(sorted(found.items()))


def score_table(
    name: str,
    entries: placement_scores.ByDimension,
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
        written = placement_scores.status_written(obj)
        age = shown_duration(max((now - written).total_seconds(), 0)) if written else "-"
        rows.append((obj["metadata"]["name"], _cluster(obj), age, _expiry(obj, now)))
    return TextTable(("score", "cluster", "age", "expires"), rows)


def _cluster(obj: Object) -> str:
    return str(obj["metadata"]["namespace"])


def _expiry(obj: Object, now: datetime) -> str:
    until, expired = placement_scores.validity_of(obj, now)
    return "unreadable" if until is None and expired else shown_expiry(until, now)


def _cell(value: int | None, expired: bool) -> str:
    if value is None:
        return "-"
    return f"{value} (expired)" if expired else str(value)
