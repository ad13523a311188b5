"""The root command: the table of commands, imported when called, and failures as one line."""

import gc
import importlib
import os
import sys
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import get_completion_class

from dsf import __version__
from dsf.api.untrusted_text import escaped_lines

PLAN = "Commands to try and to plan"
LOOK = "Commands to look at a hub"
AUTHORS = "Commands for authors of scorers"
PROGRAMS = "Programs of a deployment"
OTHER = "Other commands"
SECTIONS = (PLAN, LOOK, AUTHORS, PROGRAMS, OTHER)
"""The sections of `dsf --help`, in their order."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command; `target` is its import path `module:attribute`."""

    target: str
    section: str
    help: str

    @property
    def extra(self) -> str:
        """The extra of the package that the command needs; empty if it needs none."""
        return next((extra for at, extra in _EXTRAS.items() if self.target.startswith(at)), "")


_EXTRAS = {
    "dsf.sim.": "demo",
    "mcp_server.": "mcp",
    "optimizer.cli.top.": "top",
    "optimizer.": "optimizer",
}
"""The extra that a command needs, by the beginning of its target."""

COMMANDS = {
    "demo": Command(
        "dsf.sim.cli:demo", PLAN, "Run the whole loop on this machine: no cluster needed."
    ),
    "controller": Command("dsf.hub.cli:controller", PROGRAMS, "Run the hub controller."),
    "dispatcher": Command(
        "dsf.hub.dispatch.cli:dispatcher", PROGRAMS, "Run the dispatcher of Kueue's MultiKueue."
    ),
    "agent": Command(
        "dsf.agent.cli:agent", PROGRAMS, "Run the scoring agent of one managed cluster."
    ),
    "optimizer": Command(
        "optimizer.cli.commands:optimizer", PROGRAMS, "Serve the optimizer: HTTP API and MCP."
    ),
    "mcp": Command("mcp_server.cli:mcp", PROGRAMS, "Serve the MCP tools alone, on stdio or HTTP."),
    "policy-watcher": Command(
        "policy_watcher.cli:policy_watcher",
        PROGRAMS,
        "Run the policy watcher of one managed cluster.",
    ),
    "plan": Command(
        "optimizer.cli.planning:plan",
        PLAN,
        "Solve a placement for a hub, or from YAML files, and print it.",
    ),
    "diff": Command(
        "optimizer.cli.planning:diff",
        PLAN,
        "Show what applying a plan would change in the objects of a hub.",
    ),
    "optimize": Command(
        "optimizer.cli.planning:optimize", PLAN, "Plan, show the plan, ask, and apply it."
    ),
    "status": Command(
        "optimizer.cli.status:status",
        LOOK,
        "Show what is healthy, stale and waiting on a hub, and what to do.",
    ),
    "top": Command("optimizer.cli.top.command:top", LOOK, "Watch a fleet live in the terminal."),
    "doctor": Command(
        "optimizer.cli.status:doctor", LOOK, "Check a hub from here, each problem with its fix."
    ),
    "why": Command(
        "optimizer.cli.why:why",
        LOOK,
        "Say why a workload is where it is, or why it is not elsewhere.",
    ),
    "plans": Command(
        "optimizer.cli.records:plans", LOOK, "Show what was applied to a namespace before."
    ),
    "constraints": Command(
        "optimizer.cli.status:constraints",
        LOOK,
        "List what every plan keeps to: drains, pins, what runs apart.",
    ),
    "rollback": Command(
        "optimizer.cli.records:rollback", PLAN, "Restore a plan that was applied before."
    ),
    "rollout": Command(
        "optimizer.cli.rollout:rollout",
        LOOK,
        "Follow and control a plan that is applied step by step.",
    ),
    "simulate": Command(
        "optimizer.cli.simulate:simulate",
        PLAN,
        "Play days of a fleet in seconds, and say what placing by other settings is worth.",
    ),
    "mig": Command("optimizer.cli.mig:mig", PLAN, "Show what fits on a GPU divided by MIG."),
    "scores": Command("dsf.cli.scores:scores", LOOK, "Show scores: managed clusters by dimension."),
    "scorer": Command(
        "dsf.scorer_kit.cli.commands:scorer",
        AUTHORS,
        "Write, check, try and register a scoring API.",
    ),
    "uninstall": Command(
        "dsf.hub.uninstall:uninstall_command",
        OTHER,
        "Remove from a hub what the controller made, after helm uninstall.",
    ),
    "crds": Command("dsf.cli.crds:crds", OTHER, "Print the CustomResourceDefinitions."),
    "completion": Command("dsf.cli.root:completion", OTHER, "Print a shell completion script."),
}

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
            raise click.ClickException(missing_module(cmd_name, command.extra, error)) from error
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


def missing_module(command: str, extra: str, error: ModuleNotFoundError) -> str:
    """Return what to install for a command whose module is missing."""
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
    # Otherwise httpx imports its own command line, with rich where that is installed: 70 modules
    # and 3 MiB in each agent.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]  # import's documented refusal
    command = COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if command and command.section == PROGRAMS:
        # A start mostly makes what stays. `dsf.runtime.process` enables the collector again.
        gc.disable()
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


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script, such as: source <(dsf completion bash)."""
    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"no completion for {shell}")
    click.echo(found(root, {}, "dsf", "_DSF_COMPLETE").source())
