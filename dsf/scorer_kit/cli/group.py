"""`dsf scorer`: the group of the commands."""

import click

from dsf.scorer_kit.cli.backtest import backtest
from dsf.scorer_kit.cli.check import check
from dsf.scorer_kit.cli.new import new
from dsf.scorer_kit.cli.openapi import openapi
from dsf.scorer_kit.cli.register import register
from dsf.scorer_kit.cli.trial import trial


@click.group(commands=[new, check, trial, backtest, register, openapi])
def scorer() -> None:
    """Write, check, try and register a scoring API.

    URL is that of the config endpoint; /config is added to a URL without a path. Only this server
    is called, at addresses that an agent may call.
    """
