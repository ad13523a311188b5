"""Run a command in this process: for what a test asks of a command, and not of a process.

A process costs a second of imports. Each command has a test that starts it as one.
"""

import asyncio
from collections.abc import Mapping

import click
from click.testing import CliRunner


def invoked(
    command: click.Command, *arguments: str, env: Mapping[str, str | None] | None = None
) -> tuple[int, str, str]:
    """Run a command and return its exit code, its standard output and its standard error.

    A variable of `env` that is None is not set.
    """
    result = CliRunner().invoke(command, arguments, env=env, prog_name="dsf")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


async def invoked_meanwhile(command: click.Command, *arguments: str) -> tuple[int, str, str]:
    """Run a command in a thread, so that servers of the test's event loop answer it."""
    return await asyncio.to_thread(invoked, command, *arguments)
