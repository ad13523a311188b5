"""The flags of the limits of connections, and their chart values."""

import re
from dataclasses import asdict

import click
import pytest
import yaml
from click.testing import CliRunner

from mcp_server.cli import mcp
from optimizer.api.connection_limits import DEFAULT_LIMITS
from optimizer.cli.commands import optimizer
from optimizer.cli.connection_options import (
    CONNECTION_OPTIONS,
    connection_limits,
    connection_options,
)
from tests.repository import ROOT

CHART = ROOT / "charts" / "dynamic-scoring-optimizer"
NAMES = ("maximum", "headSeconds", "bodySeconds", "stalledSeconds")


def limits_of(*arguments: str) -> dict[str, float]:
    found = {}

    @click.command()
    @connection_options
    def command(**rest: float) -> None:
        found.update(asdict(connection_limits(rest)))

    command.main(arguments, standalone_mode=False)
    return found


def test_the_flags_have_the_limits_own_defaults() -> None:
    assert limits_of() == asdict(DEFAULT_LIMITS)


def test_each_flag_sets_its_limit() -> None:
    flags = (
        f"--{name.replace('_', '-')}={number}"
        for number, name in enumerate(CONNECTION_OPTIONS, start=3)
    )
    assert list(limits_of(*flags).values()) == [3, 4, 5, 6]


@pytest.mark.parametrize("command", [optimizer, mcp])
def test_no_limit_can_be_zero(command: click.Command) -> None:
    for name in CONNECTION_OPTIONS:
        flag = f"--{name.replace('_', '-')}"
        result = CliRunner().invoke(command, [flag, "0"])
        assert (result.exit_code, flag in result.output) == (2, True)


def test_the_chart_has_a_value_for_every_flag_of_a_limit_and_of_confirmations() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert tuple(values["connections"]) == NAMES
    assert list(values["connections"].values()) == list(asdict(DEFAULT_LIMITS).values())
    assert values["mcp"]["whenClientCannotAsk"] == "digest"
    template = (CHART / "templates" / "deployment.yaml").read_text()
    given = dict(re.findall(r"- --([a-z-]+)=\{\{ (?:int64 )?\.Values\.([\w.]+) \}\}", template))
    flags = [name.replace("_", "-") for name in CONNECTION_OPTIONS]
    assert [given[flag] for flag in flags] == [f"connections.{name}" for name in NAMES]
    assert given["when-client-cannot-ask"] == "mcp.whenClientCannotAsk"
