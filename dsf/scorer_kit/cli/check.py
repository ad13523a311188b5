"""`dsf scorer check`."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.durations import Duration
from dsf.cli.options import FILE
from dsf.cli.output import document, output_option, show
from dsf.scorer_kit.cli.api_options import api_options, named, reached, token_option

if TYPE_CHECKING:
    from dsf.scorer_kit.conformance.evidence import CheckSettings

MOST_SERIES = 10_000
MOST_SAMPLES = 120
"""Bound the largest request that a check sends: 30 MB."""


@click.command()
@api_options
@token_option
@click.option(
    "--data",
    type=FILE,
    help="File with series of a typical request, or an answer of"
    " Prometheus; default: invented ones.",
)
@click.option(
    "--series",
    type=click.IntRange(1, MOST_SERIES),
    default=500,
    show_default=True,
    help="Series of the largest request.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, MOST_SAMPLES),
    default=60,
    show_default=True,
    help="Samples of each of them.",
)
@click.option("--timeout", type=Duration(), help="Time for a call; default: the agent's.")
@click.option(
    "--time-limit",
    type=Duration(),
    default="2m",
    show_default=True,
    help="No call starts after this time.",
)
@click.option("--skip", multiple=True, metavar="CHECK", help="Leave out a check; repeatable.")
@output_option("text", "json", "yaml", default="text")
def check(
    url: str,
    scoring_url: str,
    dimension_format: str,
    ca_file: Path | None,
    output: str,
    **flags: Any,
) -> None:
    """Check that a scoring API keeps the contract.

    Exits with 1 if a check fails, and with 2 if the API can't be asked.
    docs/how-to/scorer-kit.md lists the checks.
    """
    from dsf.scorer_kit.conformance.run import check as run_checks

    settings = _settings(**flags)
    api = named(url, scoring_url, dimension_format, ca_file)

    async def checked() -> Any:
        return await run_checks(await reached(api), settings, time.time())

    report = asyncio.run(checked())
    show(report.text().rstrip() + "\n" if output == "text" else document(report.document(), output))
    if not report.passed:
        raise click.exceptions.Exit(1)


def _settings(
    *,
    data: Path | None,
    token_file: str,
    timeout: float | None,
    time_limit: float,
    skip: tuple[str, ...],
    **rest: Any,
) -> "CheckSettings":
    from dsf.api.untrusted_text import listed
    from dsf.scorer_kit.conformance.checks import NAMES
    from dsf.scorer_kit.conformance.evidence import CheckSettings
    from dsf.scorer_kit.series_file import UnusableFile, read_series

    if unknown := sorted(set(skip) - set(NAMES)):
        raise click.UsageError(f"no check {unknown[0]!r}; there are: {listed(NAMES)}")
    try:
        typical = read_series(data).series if data else None
    except UnusableFile as error:
        raise click.UsageError(str(error)) from error
    return CheckSettings(
        typical=typical,
        token=token_file,
        seconds=timeout,
        total=time_limit,
        skipped=frozenset(skip),
        **rest,
    )
