"""`dsf scorer try`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import FILE, Namespace, StrictCommand, async_to_sync, option, server_url
from dsf.scorer_kit.cli.api_options import (
    api_options,
    named,
    reached,
    recording_option,
    token_option,
)

if TYPE_CHECKING:
    from dsf.agent.round import Round
    from dsf.scorer_kit.scorer_target import ScorerTarget
    from dsf.scorer_kit.trial_round import TrialSource

MOST_METRICS = 10
"""Metrics that are printed; the others are counted."""

EXIT_FAILED = 1


@click.command("try", cls=StrictCommand)
@api_options
@token_option
@option(
    "--prometheus",
    "prometheus_url",
    default="",
    callback=server_url,
    help="Prometheus to ask for the series.",
)
@option(
    "--data",
    type=FILE,
    help="File with the series: a scoring request, an answer of Prometheus, or a CSV or Parquet"
    " table.",
)
@recording_option
@option(
    "--cluster-name",
    "cluster",
    type=Namespace(),
    default="cluster1",
    help="Stands for the managed cluster.",
)
@option(
    "--objects",
    "objects_path",
    type=click.Path(exists=True, path_type=Path),
    help="File or folder with the ManagedCluster, the workloads and the policies that a scorer asks"
    " for in its context; default: invented ones.",
)
@option("--plot", "plotted", is_flag=True, help="Draw the series and their scores.")
@option(
    "--output",
    "-o",
    type=click.Choice(["text", "yaml"]),
    default="text",
    help="yaml: only the AddOnPlacementScore, as for dsf plan -f.",
)
@async_to_sync
async def trial(
    url: str,
    scoring_url: str,
    dimension_formats: tuple[str, ...],
    ca_file: Path | None,
    *,
    token_file: str,
    cluster: str,
    objects_path: Path | None,
    plotted: bool,
    output: str,
    **source: Any,
) -> None:
    """Run one round as an agent would, and show what would be published.

    Prints where each value came from, as `dsf agent --explain` does, and the metrics. Exits with 1
    if the round failed, and with 2 if the API can't be asked.
    """
    from dsf.scorer_kit.series_file import UnusableFile, is_table
    from dsf.scorer_kit.trial_round import TrialSource, recorded

    api = named(url, scoring_url, dimension_formats, ca_file)
    if sum(map(bool, source.values())) > 1:
        raise click.UsageError("name the series once: --prometheus, --data or --recording")
    if source["data"] and is_table(source["data"]):
        source = {**source, "data": None, "recording": source["data"]}
    try:
        source["recording"] = source["recording"] and recorded(source["recording"])
    except UnusableFile as error:
        raise click.UsageError(str(error)) from error
    target = await reached(api)
    done = await _round(target, TrialSource(**source), cluster, token_file, objects_path)
    if not dimension_formats:
        done = _in_suggested_format(done, cluster)
    if output == "yaml":
        _print_object(done, cluster)
    else:
        _print(done, plotted=plotted)
    if done.failure:
        failure = done.failure
        click.echo(f"Error: {failure.stage}: {failure.reason}: {failure.message}", err=True)
        raise click.exceptions.Exit(EXIT_FAILED)


async def _round(
    target: "ScorerTarget",
    source: "TrialSource",
    cluster: str,
    token: str,
    objects_path: Path | None,
) -> "Round":
    from dsf.api.untrusted_text import InvalidInput
    from dsf.scorer_kit.scorer_target import AuthorCredentials
    from dsf.scorer_kit.series_file import UnusableFile
    from dsf.scorer_kit.trial_context import with_context_of
    from dsf.scorer_kit.trial_round import try_round

    summary = target.summary
    if isinstance(summary, InvalidInput):
        raise click.ClickException(target.why_unusable or f"{summary.reason}: {summary.message}")
    if (summary.source_type == "None") == source.given:
        raise click.UsageError(
            "the scorer has source type None: leave out --prometheus, --data and --recording"
            if source.given
            else "name the series with --prometheus, --data or --recording"
        )
    if not source.data and any(one.source_kubernetes for one in summary.single_sources):
        raise click.UsageError("objects of a cluster come from a file here: name it with --data")
    try:
        credentials = AuthorCredentials(summary.scoring_endpoint, token, target.named.ca)
        if objects_path and not summary.context:
            raise click.UsageError("the config asks for no context: leave out --objects")
        if objects_path:
            summary = with_context_of(objects_path, summary, cluster)
        elif summary.context:
            click.echo("the context is invented: name objects with --objects", err=True)
        if source.as_of:
            click.echo(f"as of {source.as_of:%Y-%m-%dT%H:%M:%SZ}, the newest sample", err=True)
        return await try_round(summary, source, credentials, cluster)
    except UnusableFile as error:
        raise click.UsageError(str(error)) from error


def _print(done: "Round", *, plotted: bool) -> None:
    from dsf.agent.dry_run import explained
    from dsf.api.untrusted_text import escaped
    from dsf.cli.terminal_drawing import levels_for
    from dsf.scorer_kit.pictures import plot
    from dsf.scorer_kit.trial_round import metrics

    click.echo(explained([done]), nl=False)
    lines = metrics(done)
    if lines:
        click.echo("\nmetrics")
    for line in lines[:MOST_METRICS]:
        click.echo(f"  {escaped(line)}")
    if len(lines) > MOST_METRICS:
        click.echo(f"  ({len(lines) - MOST_METRICS} more)")
    if plotted and done.evidence:
        click.echo()
        click.echo(plot(done.evidence.series, done.evidence.results, levels_for(sys.stdout)))


def _print_object(done: "Round", cluster: str) -> None:
    from dsf.agent.dry_run import render
    from dsf.kube.clock import utc_now

    if not done.failure:
        click.echo(render(cluster, [done], utc_now()), nl=False)


def _in_suggested_format(done: "Round", cluster: str) -> "Round":
    """Return a round in the format that its results suggest, and say which that is."""
    from dsf.scorer_kit.trial_round import with_suggested_format

    formed = with_suggested_format(done, cluster)
    if formed is not done:
        form = formed.summary.score_dimension_format
        click.echo(f"the labels suggest '{form}': --dimension-format sets another", err=True)
    return formed
