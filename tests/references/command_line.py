"""Writes docs/reference/command-line.md from the commands.

Run `make references` after a change of an option.
"""

from collections.abc import Iterator
from inspect import cleandoc

import click

from dsf.cli.root import COMMANDS, SECTIONS, root
from tests.repository import ROOT

PAGE = ROOT / "docs/reference/command-line.md"

_HEAD = """# Command line

A reference for people who type `dsf`, written from the commands by `make references`. `dsf COMMAND
--help` tells the same. Each option can also be an environment variable, which the third column
names. `*` marks an option that can be given several times.
"""
_VARIABLES = {
    "`KUBECONFIG`": (
        "all commands that ask a hub",
        "kubeconfig files, separated by `:`; without it `~/.kube/config`, then the Pod's account",
    ),
    "`KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT`": (
        "all commands that ask a hub, and `dsf agent`",
        "Kubernetes sets them in a Pod: the API server of the Pod's cluster",
    ),
    "`HOME`": ("all commands that ask a hub", "where `~/.kube/config` is"),
    "`DSF_MCP_TOKEN`": (
        "the client that `dsf mcp install --url` configures",
        "the token that the client sends to a running server",
    ),
    "`SCORING_TOKEN`, `HOST`, `PORT`": (
        "scorers made by `dsf scorer new`",
        "the token that callers must send, by default none; where it listens, `127.0.0.1:8000`",
    ),
    "`NO_COLOR`": ("`dsf`", "with any value, no colours"),
    "`FASTMCP_*`": (
        "`dsf mcp`",
        "settings of FastMCP; its own logs, banner, check for updates and `.env` are off",
    ),
    "`DSF_TRACEBACK`": ("`dsf`", "with any value, an unexpected error shows its stack trace"),
    "`TOKEN_FILE`, `PROMETHEUS_URL`": (
        "sample scorers; the second by those of `dsf scorer new` too",
        "the defaults of `--token-file` and `--prometheus-url`",
    ),
    "`VLLM_ENDPOINT`, `MODEL_NAME`, `MODEL_TOKEN_FILE`": (
        "`sample_scorers.llm_forecast`, the template and `shared_model`",
        "the defaults of `--endpoint`, `--model` and `--model-token-file`",
    ),
}


def page() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *_sections()))


def _sections() -> Iterator[str]:
    yield "Other variables that programs read:\n\n| variable | read by | meaning |\n|---|---|---|"
    yield from (f"| {name} | {reader} | {does} |" for name, (reader, does) in _VARIABLES.items())
    yield ""
    context = click.Context(root, info_name="dsf", auto_envvar_prefix="DSF")
    for section in SECTIONS:
        yield f"## {section}\n"
        for name, command in COMMANDS.items():
            if command.section == section:
                yield from _command(root.get_command(context, name), name, context)


def _command(command: click.Command | None, name: str, parent: click.Context) -> Iterator[str]:
    """Yield a command and those of its group."""
    if command is None:
        raise ValueError(f"dsf {name}: not installed")
    prefix = f"{parent.auto_envvar_prefix}_{name.upper().replace('-', '_')}"
    context = click.Context(command, parent, info_name=name, auto_envvar_prefix=prefix)
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    words = " ".join([context.command_path, *(param.make_metavar(context) for param in arguments)])
    yield f"### `{words}`\n\n{cleandoc(command.help or '')}\n"
    options = [param for param in command.params if isinstance(param, click.Option)]
    if shown := [option for option in options if not option.hidden]:
        yield "| option | meaning | variable |\n|---|---|---|"
        yield from (_option(option, context) for option in shown)
        yield ""
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            yield from _command(command.get_command(context, sub), sub, context)


def _option(option: click.Option, context: click.Context) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    metavar = "" if option.is_flag else f" {option.make_metavar(context)}"
    several = " *" if option.multiple else ""
    required = "Required. " if option.required else ""
    default = option.get_default(context, call=False)
    said = option.help or ""
    shown = option.show_default and not option.is_flag and default not in (None, ())
    meaning = f"{required}{said}" + (f" Default: `{default}`." if shown else "")
    variable = option.envvar or f"{context.auto_envvar_prefix}_{(option.name or '').upper()}"
    cells = (f"`{names}{metavar}`{several}", meaning.strip(), f"`{variable}`")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
