"""The root command: lazily imported commands, and failures as one line and an exit code."""

import importlib
import os
import sys
from typing import Any

import click

from dsf import __version__
from dsf.api.untrusted_text import escaped_lines
from dsf.cli.commands import COMMANDS, SECTIONS

EXIT_FAILURE = 1
"""Exit code of an expected failure."""
EXIT_INTERNAL = 70
"""Exit code of an internal error: EX_SOFTWARE of sysexits.h."""


class LazyGroup(click.Group):
    """A click group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; fails with the name of a missing extra."""
        command = COMMANDS.get(cmd_name)
        if command is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = command.target.partition(":")
        try:
            loaded = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            raise click.ClickException(_missing(cmd_name, command.extra, error)) from error
        if not isinstance(loaded, click.Command):
            raise TypeError(f"{command.target} is not a command")
        return loaded

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; the message of an error is escaped: it may quote text of others."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            # In place, since it may be of any subclass; click declares the attribute final.
            vars(error)["message"] = escaped_lines(error.message)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands of each section from the table, without importing them."""
        width = max(map(len, COMMANDS))
        for section in SECTIONS:
            listed = [
                (name.ljust(width), command.help)
                for name, command in COMMANDS.items()
                if command.section == section
            ]
            with formatter.section(section):
                formatter.write_dl(listed)


def _missing(command: str, extra: str, error: ModuleNotFoundError) -> str:
    if not extra:
        return f"the module {error.name!r} is missing; reinstall dynamic-scoring-framework"
    return (
        f"`dsf {command}` needs the module {error.name!r}; install it with"
        f" pip install 'dynamic-scoring-framework[{extra}]'"
    )


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DSF"},
)
@click.version_option(__version__, message="%(version)s")
def root() -> None:
    """Dynamic Scoring Framework for Open Cluster Management.

    Every option can also be set in the environment, as DSF_<COMMAND>_<OPTION>.
    """


def main() -> None:
    """Run the command line; exit 0 on success, 1 on failure, 2 on wrong usage."""
    try:
        root(prog_name="dsf")
    except Exception as error:  # noqa: BLE001 - the outermost door: a user is owed a sentence
        _fail(error)


def _fail(error: Exception) -> None:
    from dsf.kube.errors import KubeError

    if os.environ.get("DSF_TRACEBACK"):
        raise error
    expected = isinstance(error, KubeError)
    text = str(error) if expected else f"internal error: {type(error).__name__}: {error}"
    hint = "" if expected else " (set DSF_TRACEBACK=1 to see where)"
    click.echo(f"Error: {escaped_lines(text)}{hint}", err=True)
    sys.exit(EXIT_FAILURE if expected else EXIT_INTERNAL)
