"""`dsf scorer` and its commands."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import yaml

from dsf.cli.durations import Duration
from dsf.cli.options import FILE, options

if TYPE_CHECKING:
    from dsf.scorer_kit.conformance.evidence import CheckSettings
    from dsf.scorer_kit.scorer_target import NamedApi, ScorerTarget

MOST_SERIES = 10_000
MOST_SAMPLES = 120
"""Bound the largest request that a check sends: 30 MB."""

AuthorCommand = TypeVar("AuthorCommand", bound=Callable[..., Any])


class ApiUnreachable(click.ClickException):
    """A scoring API can't be asked; mostly its URL is wrong, so the exit code is that of usage."""

    exit_code = 2


@click.group()
def scorer() -> None:
    """Write, check, try and register a scoring API.

    URL is that of the config endpoint; /config is added to a URL without a path. Only this server
    is called, at addresses that an agent may call.
    """


@scorer.command()
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the document and a JSON Schema of each body into this directory instead.",
)
def openapi(output_dir: Path | None) -> None:
    """Print the contract of the scoring API as an OpenAPI 3.1 document."""
    from dsf.api.scoring.openapi import json_schemas
    from dsf.api.scoring.openapi import openapi as document

    text = yaml.safe_dump(document(), sort_keys=False, width=100)
    if output_dir is None:
        click.echo(text, nl=False)
        return
    files = {"openapi.yaml": text} | {
        f"{name}.schema.json": json.dumps(schema, indent=2) + "\n"
        for name, schema in json_schemas().items()
    }
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (output_dir / name).write_text(content, encoding="utf-8")
            click.echo(output_dir / name)
    except OSError as error:
        raise click.ClickException(f"cannot write to {output_dir}: {error.strerror}") from error


def _dimension_format(_: click.Context, __: click.Parameter, value: str) -> str:
    from dsf.api.invalid_input import InvalidInput
    from dsf.api.scoring.dimension_format import DimensionFormat

    parsed = DimensionFormat.parse(value) if value else None
    if isinstance(parsed, InvalidInput):
        raise click.BadParameter(parsed.message)
    return value


def _token(_: click.Context, __: click.Parameter, value: Path | None) -> str:
    from dsf.agent.wire.secret_data import TOKEN_LIMIT, parse_token

    if value is None:
        return ""
    with value.open("rb") as file:
        token = parse_token(file.read(TOKEN_LIMIT + 2))
    if token is None:
        raise click.BadParameter(f"{value} holds no token: one line of printable ASCII, no spaces")
    return token.value


api_options = options(
    click.argument("url"),
    click.option(
        "--scoring-url",
        default="",
        help="Endpoint of the scoring call, instead of the one that the config names.",
    ),
    click.option(
        "--dimension-format",
        default="",
        callback=_dimension_format,
        help="scoreDimensionFormat of the DynamicScorer, such as '${app};${device}'.",
    ),
)
"""The URL of a scoring API, and what a DynamicScorer or a network would change about it."""

token_option = click.option(
    "--token-file",
    "token",
    type=FILE,
    callback=_token,
    help="File with the bearer token for the scoring call.",
)


@scorer.command()
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
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text")
def check(url: str, scoring_url: str, dimension_format: str, output: str, **flags: Any) -> None:
    """Check that a scoring API keeps the contract.

    Exits with 1 if a check fails, and with 2 if the API can't be asked. docs/scorer-kit.md lists
    the checks.
    """
    from dsf.scorer_kit.conformance.run import check as run_checks

    settings = _settings(**flags)
    named = _named(url, scoring_url, dimension_format)

    async def checked() -> Any:
        return await run_checks(await _reached(named), settings, time.time())

    report = asyncio.run(checked())
    click.echo(
        json.dumps(report.document(), indent=2) if output == "json" else report.text().rstrip()
    )
    if not report.passed:
        raise click.exceptions.Exit(1)


def _settings(
    *,
    data: Path | None,
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
        typical=typical, seconds=timeout, total=time_limit, skipped=frozenset(skip), **rest
    )


def _named(url: str, scoring_url: str, dimension_format: str) -> "NamedApi":
    from dsf.api.invalid_input import InvalidInput
    from dsf.scorer_kit.scorer_target import named_api

    named = named_api(url, scoring_url, dimension_format)
    if isinstance(named, InvalidInput):
        raise click.UsageError(named.message)
    return named


async def _reached(named: "NamedApi") -> "ScorerTarget":
    """Return what a scoring API answered. Raises ApiUnreachable."""
    from dsf.scorer_kit.scorer_target import look_at

    target = await look_at(named)
    if target.unreachable:
        raise ApiUnreachable(target.unreachable)
    return target
