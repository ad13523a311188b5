"""What can't be a namespace is refused by every command that takes one, before anything starts."""

import click
import pytest
from click.testing import CliRunner

from dsf.agent.cli import agent
from dsf.hub.cli import controller


@pytest.mark.parametrize("command", [agent, controller])
def test_it_is_one_line(command: click.Command) -> None:
    result = CliRunner().invoke(command, ["--namespace", "Not_A_Namespace"])
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert "--namespace" in line
    assert "Not_A_Namespace" in line
