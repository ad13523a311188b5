"""`dsf scorer`: its group, and the commands `new`, `openapi`, `register` and `check`.

`new` writes a folder from templates: each is a scorer that works under the name `my-scorer`.
"""

import json
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import click
import yaml

from dsf.cli.options import FILE, Duration, StrictCommand, async_to_sync, option, server_url
from dsf.cli.output import document, output_option, show
from dsf.scorer_kit.cli.api_options import (
    api_options,
    dns_label_value,
    named,
    reached,
    token_option,
)
from dsf.scorer_kit.cli.backtest import backtest
from dsf.scorer_kit.cli.trial import trial

if TYPE_CHECKING:
    from dsf.scorer_kit.conformance.evidence import CheckSettings
    from dsf.scorer_kit.registration import FormatOrigin
    from dsf.scorer_kit.scorer_target import NamedApi, ScorerTarget


TEMPLATES = Path(__file__).parents[1] / "templates"
LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "python": ("deployment", "python_http", "python"),
    "go": ("deployment", "go"),
    "node": ("deployment", "node"),
    "shell": ("deployment", "python_http", "shell"),
}
"""The folders of templates that make a scorer, by its language."""

_NAME, _SCORE_NAME = "my-scorer", "my_scorer"
_NODE_PORT = "30080"
_USED_NODE_PORT = re.compile(r"\bnodePort: (\d{1,5})\b")
FIRST_NODE_PORT, NODE_PORTS = 30_000, 2_768
"""The range of node ports, by default of the API server."""

_LANGUAGE_PAGE = "language.md"
_LANGUAGE_MARK = "<!-- language -->\n"
_SCRIPT = "#!"


class FolderExists(OSError):
    """The folder of a new scorer has files already."""


def files_of(language: str, name: str, node_port: int) -> dict[str, str]:
    """Return the text of each file of a scorer, by its path in the folder."""
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for folder in (TEMPLATES / part for part in LANGUAGES[language])
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
    page = texts.pop(_LANGUAGE_PAGE)
    texts["README.md"] = texts["README.md"].replace(_LANGUAGE_MARK, page)
    return {path: _renamed(text, name, node_port) for path, text in sorted(texts.items())}


def write(folder: Path, files: Mapping[str, str], *, overwrite: bool) -> None:
    """Write files into a folder, scripts as executable ones. Raises FolderExists, OSError."""
    if not overwrite and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderExists(f"{folder} exists and is not an empty folder")
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        if text.startswith(_SCRIPT):
            target.chmod(0o755)


def _renamed(text: str, name: str, node_port: int) -> str:
    renamed = text.replace(_NAME, name).replace(_SCORE_NAME, name.replace("-", "_"))
    return renamed.replace(_NODE_PORT, str(node_port))


def used_node_ports(folder: Path) -> dict[int, Path]:
    """Return the manifests of the scorers beside a folder, by the node port that they take."""
    used = dict[int, Path]()
    for path in sorted(folder.absolute().parent.glob("*/manifests/*.yaml")):
        if path.parents[1] != folder.absolute():
            found = _USED_NODE_PORT.findall(path.read_text(encoding="utf-8", errors="replace"))
            used |= dict.fromkeys(map(int, found), path)
    return used


def free_node_port(name: str, used: Collection[int]) -> int:
    """Return the node port of a scorer: that of its name, or the next that is not used."""
    first = crc32(name.encode()) % NODE_PORTS
    ports = (FIRST_NODE_PORT + (first + step) % NODE_PORTS for step in range(NODE_PORTS))
    return next(port for port in ports if port not in used)


@click.command(cls=StrictCommand)
@click.argument("name", callback=dns_label_value)
@option(
    "--lang",
    type=click.Choice(list(LANGUAGES)),
    default="python",
    help="Language of the scorer; shell needs jq, and Python for HTTP.",
)
@option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder in which the folder NAME is made.",
)
@option(
    "--node-port",
    type=click.IntRange(FIRST_NODE_PORT, FIRST_NODE_PORT + NODE_PORTS - 1),
    help="Port at the nodes of its cluster; default: one that no scorer beside the folder has.",
)
@option("--force", is_flag=True, help="Overwrite files of an existing folder.")
def new(name: str, lang: str, output_dir: Path, node_port: int | None, *, force: bool) -> None:
    """Write the folder NAME: a scorer that works, to be changed.

    It has the service, tests, a Dockerfile, manifests and a README, and passes dsf scorer check.
    """
    if not name[:1].isalpha():
        raise click.BadParameter(f"{name!r} must start with a letter, as a Service does")
    folder = output_dir / name
    try:
        used = used_node_ports(folder)
        if node_port in used:
            raise click.BadParameter(f"{used[node_port]} has the node port {node_port} already")
        files = files_of(lang, name, node_port or free_node_port(name, used))
        write(folder, files, overwrite=force)
    except FolderExists as error:
        raise click.ClickException(f"{error}; --force overwrites its files") from error
    except OSError as error:
        raise click.ClickException(f"cannot write to {folder}: {error.strerror}") from error
    for path in files:
        click.echo(folder / path)
    click.echo(f"Next: {folder / 'README.md'} has the commands to run, check and try it.")


@click.command(cls=StrictCommand)
@option(
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


@click.command(cls=StrictCommand)
@api_options
@token_option
@option(
    "--name",
    default="",
    callback=dns_label_value,
    help="Name of the DynamicScorer; default: that of the config.",
)
@option(
    "--config-url",
    default="",
    callback=server_url,
    help="configURL of the DynamicScorer, at an address that the hub and all agents reach, such as"
    " 'http://${NODE_IP}:30080/config'; default: URL.",
)
@option("--output", "-o", type=click.Choice(["yaml", "json"]), default="yaml")
@async_to_sync
async def register(
    url: str,
    scoring_url: str,
    dimension_formats: tuple[str, ...],
    ca_file: Path | None,
    *,
    token_file: str,
    name: str,
    config_url: str,
    output: str,
) -> None:
    """Write the DynamicScorer of a scoring API to standard output.

    Nothing is applied. Comments say what to change; with `-o json` they are on standard error. One
    request with invented series shows which labels results have.
    """
    from dsf.scorer_kit.registration import advice, as_yaml, dynamic_scorer
    from dsf.scorer_kit.scorer_target import object_name

    api = named(url, scoring_url, dimension_formats, ca_file)
    target, form, origin = await _asked(api, token_file)
    config = target.config
    if config is None:
        raise click.ClickException(target.why_unusable)
    reached_at = config_url or api.config_url
    formats = (form, *api.further_formats)
    document = dynamic_scorer(name or object_name(config), config, reached_at, formats)
    comments = advice(config, reached_at, origin)
    if output == "yaml":
        click.echo(as_yaml(document, comments), nl=False)
        return
    click.echo(json.dumps(document, indent=2))
    for line in comments:
        click.echo(line, err=True)


async def _asked(api: "NamedApi", token: str) -> "tuple[ScorerTarget, str, FormatOrigin]":
    """Return what the API answered, and the dimension format with its origin."""
    from dsf.api.crd.dynamic_scorer import DEFAULT_FORMAT
    from dsf.api.scoring.scorer_summary import ScorerSummary
    from dsf.scorer_kit.registration import suggested_format
    from dsf.scorer_kit.scorer_target import AuthorCredentials, typical_results

    target = await reached(api)
    if api.dimension_format:
        return target, api.dimension_format, "given"
    summary = target.summary
    if isinstance(summary, ScorerSummary):
        credentials = AuthorCredentials(summary.scoring_endpoint, token, api.ca)
        results = await typical_results(summary, credentials, time.time())
        metrics = [one.metric for one in results] if isinstance(results, list) else []
        suggested = suggested_format(metrics, summary.score_dimension_formats)
        if metrics and suggested:
            return target, suggested, "suggested"
    return target, DEFAULT_FORMAT, "default"


MOST_SERIES = 10_000
MOST_SAMPLES = 120
"""Bound the largest request that a check sends: 30 MB."""


@click.command(cls=StrictCommand)
@api_options
@token_option
@option(
    "--data",
    type=FILE,
    help="File with series of a typical request, or an answer of"
    " Prometheus; default: invented ones.",
)
@option(
    "--series",
    type=click.IntRange(1, MOST_SERIES),
    default=500,
    help="Series of the largest request.",
)
@option(
    "--samples", type=click.IntRange(1, MOST_SAMPLES), default=60, help="Samples of each of them."
)
@option("--timeout", type=Duration(), help="Time for a call; default: the agent's.")
@option("--time-limit", type=Duration(), default="2m", help="No call starts after this time.")
@option("--skip", multiple=True, metavar="CHECK", help="Leave out a check; repeatable.")
@output_option("text", "json", "yaml", default="text")
@async_to_sync
async def check(
    url: str,
    scoring_url: str,
    dimension_formats: tuple[str, ...],
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
    api = named(url, scoring_url, dimension_formats, ca_file)
    report = await run_checks(await reached(api), settings, time.time())
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


@click.group(commands=[new, check, trial, backtest, register, openapi])
def scorer() -> None:
    """Write, check, try and register a scoring API.

    URL is that of the config endpoint; /config is added to a URL without a path. Only this server
    is called, at addresses that an agent may call.
    """
