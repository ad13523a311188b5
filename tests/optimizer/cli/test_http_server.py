"""The flags of the limits of connections, and their chart values."""

import re

import click
import pytest
import yaml
from click.testing import CliRunner

from mcp_server.cli import mcp
from optimizer.api.caller_limits import DEFAULT_STREAMS, StreamLimits
from optimizer.api.serving import DEFAULT_LIMITS, ConnectionLimits
from optimizer.cli.commands import optimizer
from optimizer.cli.http_server import (
    CONNECTION_OPTIONS,
    connection_limits,
    connection_options,
    stream_limits,
)
from tests.repository import ROOT

CHART = ROOT / "charts" / "dynamic-scoring-optimizer"
NAMES = ("maximum", "streams", "streamsPerCaller", "headSeconds", "bodySeconds", "stalledSeconds")
DEFAULTS = (
    DEFAULT_LIMITS.connections,
    DEFAULT_STREAMS.total,
    DEFAULT_STREAMS.of_caller,
    DEFAULT_LIMITS.head_seconds,
    DEFAULT_LIMITS.body_seconds,
    DEFAULT_LIMITS.stalled_seconds,
)


def limits_of(*arguments: str) -> tuple[ConnectionLimits, StreamLimits]:
    found: list[tuple[ConnectionLimits, StreamLimits]] = []

    @click.command()
    @connection_options
    def command(**rest: float) -> None:
        found.append((connection_limits(rest), stream_limits(rest)))

    command.main(arguments, standalone_mode=False)
    return found[0]


def test_the_flags_have_the_limits_own_defaults() -> None:
    assert limits_of() == (DEFAULT_LIMITS, DEFAULT_STREAMS)


@pytest.mark.parametrize(("connections", "streams"), [(1, 1), (9, 4), (1000, 256)])
def test_streams_leave_half_of_the_connections_to_others(connections: int, streams: int) -> None:
    assert limits_of(f"--max-connections={connections}")[1].total == streams


def test_each_flag_sets_its_limit() -> None:
    flags = (
        f"--{name.replace('_', '-')}={number}"
        for number, name in enumerate(reversed(CONNECTION_OPTIONS), start=3)
    )
    assert limits_of(*flags) == (ConnectionLimits(8, 5, 4, 3), StreamLimits(total=4, of_caller=6))


@pytest.mark.parametrize("command", [optimizer, mcp])
def test_no_limit_can_be_zero(command: click.Command) -> None:
    for name in CONNECTION_OPTIONS:
        flag = f"--{name.replace('_', '-')}"
        result = CliRunner().invoke(command, [flag, "0"])
        assert (result.exit_code, flag in result.output) == (2, True)


def test_the_chart_has_a_value_for_every_flag_of_a_limit_and_of_confirmations() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert tuple(values["connections"]) == NAMES
    assert tuple(values["connections"].values()) == DEFAULTS
    assert values["mcp"]["whenClientCannotAsk"] == "digest"
    template = (CHART / "templates" / "deployment.yaml").read_text()
    given = dict(re.findall(r"- --([a-z-]+)=\{\{ (?:int64 )?\.Values\.([\w.]+) \}\}", template))
    flags = [name.replace("_", "-") for name in CONNECTION_OPTIONS]
    assert [given[flag] for flag in flags] == [f"connections.{name}" for name in NAMES]
    assert given["when-client-cannot-ask"] == "mcp.whenClientCannotAsk"
