"""`dsf scorer register`."""

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsf.scorer_kit.cli.api_options import (
    api_options,
    dns_label_value,
    named,
    reached,
    token_option,
)

if TYPE_CHECKING:
    from dsf.scorer_kit.registration import FormatOrigin
    from dsf.scorer_kit.scorer_target import NamedApi, ScorerTarget


@click.command()
@api_options
@token_option
@click.option(
    "--name",
    default="",
    callback=dns_label_value,
    help="Name of the DynamicScorer; default: that of the config.",
)
@click.option("--output", "-o", type=click.Choice(["yaml", "json"]), default="yaml")
def register(
    url: str,
    scoring_url: str,
    dimension_format: str,
    ca_file: Path | None,
    *,
    token_file: str,
    name: str,
    output: str,
) -> None:
    """Write the DynamicScorer of a scoring API to standard output.

    Nothing is applied. Comments say what to change; with `-o json` they are on standard error. One
    request with invented series shows which labels results have.
    """
    from dsf.scorer_kit.registration import advice, as_yaml, dynamic_scorer
    from dsf.scorer_kit.scorer_target import object_name

    api = named(url, scoring_url, dimension_format, ca_file)
    target, form, origin = asyncio.run(_asked(api, token_file))
    config = target.config
    if config is None:
        raise click.ClickException(target.why_unusable)
    document = dynamic_scorer(name or object_name(config), config, api.config_url, form)
    comments = advice(config, api.config_url, origin)
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
    from dsf.scorer_kit.author_call import AuthorCredentials, typical_results
    from dsf.scorer_kit.dimension_suggestion import suggested_format

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
