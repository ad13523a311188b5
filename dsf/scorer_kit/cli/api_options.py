"""What the commands ask about a scoring API, and how they reach it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsf.cli.options import FILE, option, options

if TYPE_CHECKING:
    from dsf.scorer_kit.scorer_target import NamedApi, ScorerTarget


class ApiUnreachable(click.ClickException):
    """A scoring API can't be asked; mostly its URL is wrong, so the exit code is that of usage."""

    exit_code = 2


def dns_label_value(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the name of an object, or an empty text; the callback of a parameter."""
    from dsf.api.name_syntax import dns_label

    if value and (problems := dns_label(value)):
        raise click.BadParameter(f"{value!r} is not a valid name: {problems[0]}")
    return value


def _dimension_formats(
    _: click.Context, __: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    from dsf.api.scoring.dimension_format import DimensionFormat
    from dsf.api.untrusted_text import InvalidInput

    for one in value:
        parsed = DimensionFormat.parse(one)
        if isinstance(parsed, InvalidInput):
            raise click.BadParameter(parsed.message)
    if len(set(value)) < len(value):
        raise click.BadParameter("the same format is given twice")
    return value


def token_in_file(_: click.Context, __: click.Parameter, value: Path | None) -> str:
    """Return the token in a file, empty without a file; the callback of an option."""
    from dsf.agent.wire.secret_data import TOKEN_LIMIT, parse_token

    if value is None:
        return ""
    with value.open("rb") as file:
        token = parse_token(file.read(TOKEN_LIMIT + 2))
    if token is None:
        raise click.BadParameter(f"{value} holds no token: one line of printable ASCII, no spaces")
    return token.value


def recording_path(value: str) -> Path:
    """Return the file of a recording that is named, or is a file. Raises click.BadParameter."""
    from dsf.api.untrusted_text import listed
    from dsf.scorer_kit.recordings import RECORDINGS

    path = RECORDINGS.get(value) or Path(value)
    if not path.is_file():
        raise click.BadParameter(f"no recording {value!r}; there are: {listed(RECORDINGS)}")
    return path


api_options = options(
    click.argument("url"),
    option(
        "--scoring-url",
        default="",
        help="Endpoint of the scoring call, instead of the one that the config names.",
    ),
    option(
        "--dimension-format",
        "dimension_formats",
        multiple=True,
        callback=_dimension_formats,
        help="scoreDimensionFormat of the DynamicScorer, such as '${app};${device}'; repeatable:"
        " the others are its scoreDimensionFormats.",
    ),
    option(
        "--ca-file", type=FILE, help="PEM certificates to trust, as tls.caSecretRef names them."
    ),
)
"""The URL of a scoring API, and what a DynamicScorer or a network would change about it."""

token_option = option(
    "--token-file",
    type=FILE,
    callback=token_in_file,
    help="File with the bearer token for the scoring call.",
)
"""`--token-file`; a command gets the token itself, empty without a file."""

recording_option = option(
    "--recording",
    default="",
    metavar="NAME|FILE",
    callback=lambda _, __, value: recording_path(value) if value else None,
    help="Recorded series by name, such as build-machine, or a file of that form, or a CSV or"
    " Parquet table.",
)
"""`--recording`; a command gets a path, None without it."""


def named(
    url: str, scoring_url: str, dimension_formats: tuple[str, ...], ca_file: Path | None
) -> "NamedApi":
    """Return what an author says about a scoring API. Raises click.UsageError."""
    from dsf.api.untrusted_text import InvalidInput
    from dsf.scorer_kit.scorer_target import named_api

    found = named_api(url, scoring_url, dimension_formats, ca_file)
    if isinstance(found, InvalidInput):
        raise click.UsageError(found.message)
    return found


async def reached(api: "NamedApi") -> "ScorerTarget":
    """Return what a scoring API answered. Raises ApiUnreachable, click.UsageError."""
    from dsf.hub.observe.prober import UnusableAuthorityFile
    from dsf.scorer_kit.scorer_target import look_at

    try:
        target = await look_at(api)
    except UnusableAuthorityFile as error:
        raise click.UsageError(str(error)) from error
    if target.unreachable:
        raise ApiUnreachable(target.unreachable)
    return target
