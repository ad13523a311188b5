"""`dsf scorer backtest`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import FILE, Duration, StrictCommand, async_to_sync, option, server_url
from dsf.cli.output import document, output_option, show
from dsf.scorer_kit.cli.api_options import (
    api_options,
    named,
    reached,
    recording_option,
    token_option,
)

if TYPE_CHECKING:
    from dsf.api.scoring.scorer_summary import ScorerSummary
    from dsf.scorer_kit.backtest.history import History
    from dsf.scorer_kit.backtest.plan import BacktestPlan
    from dsf.scorer_kit.backtest.report import BacktestReport
    from dsf.scorer_kit.scorer_target import AuthorCredentials, ScorerTarget

MOST_REQUESTS = 5_000


def _truth(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    import re

    if value and not re.fullmatch(r"mean|max|min|query|p[1-9]\d?(\.\d+)?", value):
        raise click.BadParameter(f"{value!r} is no truth: write mean, max, min, query, or as p90")
    return value


@click.command(cls=StrictCommand)
@api_options
@token_option
@recording_option
@option(
    "--data",
    type=FILE,
    help="File with the history: a saved answer of Prometheus, or a CSV or Parquet table.",
)
@option(
    "--prometheus",
    "prometheus_url",
    default="",
    callback=server_url,
    help="Prometheus to ask for the history.",
)
@option(
    "--since", type=Duration(), default="24h", help="How far back to ask Prometheus, such as 24h."
)
@option("--query", default="", help="The query, instead of that of the config.")
@option("--range", "window", type=Duration(), help="Window; default: that of the config.")
@option("--step", type=Duration(), help="Step; default: that of the config, or the history.")
@option(
    "--horizon",
    type=Duration(),
    help="How far ahead the scores forecast; default: forecast.horizon.",
)
@option(
    "--truth",
    callback=_truth,
    metavar="mean|max|min|pNN|query",
    help="What came true: of the horizon, such as p90, or the answer to forecast.truth.query;"
    " default: that answer if the history has it, else the mean.",
)
@option("--season", type=Duration(), help="Of the seasonal naive method; default: found.")
@option(
    "--requests",
    type=click.IntRange(2, MOST_REQUESTS),
    default=300,
    help="Most requests to send, spread over the history.",
)
@option(
    "--part",
    type=click.Choice(["all", "first", "second"]),
    default="all",
    help="Use a half of the steps: tune on the first, report on the second.",
)
@option("--choose-by", default="", metavar="LABEL", help="Choose a value of this label.")
@option(
    "--best",
    type=click.Choice(["lowest", "highest"]),
    help="Which score is chosen; default: by the direction of the config, else lowest.",
)
@option("--plot", "plotted", is_flag=True, help="Draw scores and truth.")
@option(
    "--svg", "picture", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture."
)
@output_option("text", "json", "yaml", default="text")
@async_to_sync
async def backtest(
    url: str,
    scoring_url: str,
    dimension_formats: tuple[str, ...],
    ca_file: Path | None,
    *,
    token_file: str,
    plotted: bool,
    picture: Path | None,
    output: str,
    **flags: Any,
) -> None:
    """Measure how good the scores of a scorer would have been over a history.

    Asks the scorer at each step with the window that it would have got, and compares with the last
    value, the window's mean and the last season. docs/how-to/backtest.md says what the figures
    mean. If the scorer is better than all of them, asks again in copies of the history that it
    can't know. Exits with 1 if the scorer fails or knows the history, and with 2 if the history
    can't be used.
    """
    _require_kit()
    api = named(url, scoring_url, dimension_formats, ca_file)
    done = await _backtest(await reached(api), token_file, flags)
    if picture:
        _write(picture, done)
    show(done.text() if output == "text" else document(done.document(), output))
    if plotted and output == "text":
        _plot(done)
    if done.implausible:
        raise click.ClickException(done.implausible)


def _require_kit() -> None:
    try:
        import polars  # noqa: F401
        import scipy  # noqa: F401
    except ModuleNotFoundError as error:
        from dsf.cli.root import missing_module

        raise click.ClickException(missing_module("scorer backtest", "kit", error)) from error


async def _backtest(target: "ScorerTarget", token: str, flags: dict[str, Any]) -> "BacktestReport":
    from dsf.agent.failure import Failure
    from dsf.api.untrusted_text import InvalidInput
    from dsf.scorer_kit.backtest.history import UnusableHistory
    from dsf.scorer_kit.backtest.replay import Replay
    from dsf.scorer_kit.backtest.report import report
    from dsf.scorer_kit.scorer_target import AuthorCredentials
    from dsf.scorer_kit.series_file import UnusableFile

    summary = target.summary
    if isinstance(summary, InvalidInput):
        raise click.ClickException(target.why_unusable or f"{summary.reason}: {summary.message}")
    credentials = AuthorCredentials(summary.scoring_endpoint, token, target.named.ca)
    try:
        plan = await _plan(target, summary, **flags)
        replay = Replay(plan.history, plan.steps.window, plan.ends())
        with click.progressbar(
            length=len(replay.ends),
            label="requests",
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as bar:
            answers = await replay.run(summary, credentials, lambda: bar.update(1))
        if isinstance(answers, Failure):
            raise click.ClickException(f"{answers.stage}: {answers.reason}: {answers.message}")
        done = report(plan, answers)
        return await _doubted(done, plan, summary, credentials) if done.better_than_all else done
    except (UnusableFile, UnusableHistory) as error:
        raise click.UsageError(str(error)) from error


async def _doubted(
    done: "BacktestReport",
    plan: "BacktestPlan",
    summary: "ScorerSummary",
    credentials: "AuthorCredentials",
) -> "BacktestReport":
    """Return a report with what the scorer says of copies of the history."""
    import numpy as np

    from dsf.agent.failure import Failure
    from dsf.scorer_kit.backtest.plausibility import copies, steps_to_repeat
    from dsf.scorer_kit.backtest.replay import Replay
    from dsf.scorer_kit.backtest.report import with_copy

    ends = steps_to_repeat(plan.ends(), plan.steps.ahead)
    for copy in copies(plan.history, np.random.default_rng()):
        replay = Replay(copy.history, plan.steps.window, ends)
        answers = await replay.run(summary, credentials, lambda: None)
        came = answers.reason if isinstance(answers, Failure) else answers
        done = with_copy(done, plan, copy, came)
    return done


async def _plan(
    target: "ScorerTarget",
    summary: "ScorerSummary",
    *,
    window: float | None,
    step: float | None,
    horizon: float | None,
    truth: str | None,
    season: float | None,
    requests: int,
    part: str,
    choose_by: str,
    best: str | None,
    **source: Any,
) -> "BacktestPlan":
    from dsf.api.untrusted_text import listed
    from dsf.scorer_kit.backtest.accuracy import Choices
    from dsf.scorer_kit.backtest.plan import QUERY, BacktestPlan

    if summary.sources:
        named = listed(one.name for one in summary.sources)
        raise click.UsageError(f"the config has several sources ({named}): a backtest needs one")
    declared = summary.forecast
    ahead = horizon or (declared.horizon if declared else None)
    if not ahead:
        raise click.UsageError("the config has no forecast.horizon: set --horizon")
    measured = truth in {None, QUERY}
    name, history = await _history(summary, round(step or 0), measured=measured, **source)
    if truth == QUERY and not history.measured:
        raise click.UsageError(f"--truth query: {name} has no answer to forecast.truth.query")
    if choose_by and not any(choose_by in one.metric for one in history.series):
        raise click.UsageError(f"--choose-by: no series of {name} has the label {choose_by!r}")
    config = target.config
    highest = bool(config and config.direction == "HigherIsBetter")
    return BacktestPlan(
        name=name,
        history=history,
        window=round(window or summary.source_range or history.step),
        horizon=round(ahead),
        choices=Choices(choose_by, lowest=best == "lowest" if best else not highest),
        season=round(season or 0),
        requests=requests,
        part=part,
        quantile=declared.quantile if declared else 0.5,
    ).judged_by(truth)


async def _history(
    summary: "ScorerSummary",
    step: int,
    *,
    measured: bool,
    recording: Path | None,
    data: Path | None,
    prometheus_url: str,
    since: float,
    query: str,
) -> tuple[str, "History"]:
    """Return the name of a history and its series, with the truth of the config if `measured`."""
    from dsf.scorer_kit.backtest import replay
    from dsf.scorer_kit.series_file import is_table

    if sum(map(bool, (recording, data, prometheus_url))) != 1:
        raise click.UsageError("name one history: --recording, --data or --prometheus")
    file = recording or data
    table = file if file and is_table(file) else None
    if query and (table or data):
        raise click.UsageError("--query: a table or saved answer has one query; leave it out")
    usual = step or summary.source_step
    truth_query = summary.forecast.truth.query if measured and summary.forecast else ""
    if table:
        return replay.from_table(table, usual, measured=measured)
    if recording:
        wanted = query or summary.source_query
        return replay.recorded(recording, wanted, usual, given=bool(query), truth_query=truth_query)
    usual = usual or replay.DEFAULT_STEP
    if data:
        return replay.from_file(data, usual)
    asked = {"source_query": query or summary.source_query, "source_step": usual}
    found = await replay.from_prometheus(
        summary.model_copy(update=asked), prometheus_url, round(since), truth_query
    )
    if isinstance(found, str):
        raise click.ClickException(found)
    return prometheus_url, found


def _write(path: Path, done: "BacktestReport") -> None:
    from dsf.scorer_kit.pictures import svg

    try:
        path.write_text(svg(done.outcomes, done.setting.history), encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{path} can't be written: {error.strerror}") from error


def _plot(done: "BacktestReport") -> None:
    from dsf.cli.terminal_drawing import levels_for
    from dsf.scorer_kit.pictures import terminal_plot

    click.echo()
    click.echo(terminal_plot(done.outcomes, levels_for(sys.stdout)))
