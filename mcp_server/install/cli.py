"""The command `dsf mcp install`."""

import sys
import tempfile
from pathlib import Path

import click

from dsf.api.untrusted_text import escaped_json
from dsf.cli.options import FILE, option, server_url
from dsf.kube.yaml_documents import YamlFileError, file_content
from mcp_server.install.clients import CLIENTS, TOKEN_VARIABLE, HttpServer, McpClient, StdioServer
from mcp_server.install.config_text import MAX_CONFIG_BYTES, Installation, RefusedConfig, installed
from mcp_server.install.one_line import LINE_ONLY
from mcp_server.install.one_line import one_line as line_of

SERVER_NAME = "dynamic-scoring-framework"
_PERMISSIONS = 0o777
"""The bits of a file's mode that chmod sets."""


@click.command()
@option(
    "--client",
    "client_name",
    type=click.Choice([*CLIENTS, *LINE_ONLY]),
    required=True,
    help="MCP client.",
)
@option(
    "--one-line",
    is_flag=True,
    help="Print a command or a link that adds the server. copilot, codex and goose have only that.",
)
@option("--write", is_flag=True, help="Write the client's file, instead of printing it.")
@option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to read and write; default: the client's own, in the working directory if it has"
    " one for each project.",
)
@option("--name", default=SERVER_NAME, help="Name of the server.")
@option("--replace", is_flag=True, help="Replace an entry of this name that differs.")
@option(
    "--url",
    default="",
    callback=server_url,
    help="URL of a running server, such as http://localhost:8338/mcp; default: the client starts"
    " the server.",
)
@option("--no-token", is_flag=True, help="Send no token to --url: it serves --auth none.")
@option(
    "--kubeconfig", type=FILE, help="Kubeconfig of the hub for a server that the client starts."
)
@option("--context", help="Context of the kubeconfig.")
@option("--allow-writes", is_flag=True, help="Start a server that has the tools that write.")
def install(
    *,
    client_name: str,
    one_line: bool,
    write: bool,
    path: Path | None,
    name: str,
    replace: bool,
    url: str,
    no_token: bool,
    kubeconfig: Path | None,
    context: str | None,
    allow_writes: bool,
) -> None:
    """Print the configuration that makes an MCP client use this server, or write it.

    Other servers and settings in the file are kept. A file that is not valid JSON is refused.
    Nothing secret is written: clients read the token of --url from an environment variable, or ask
    for it.
    """
    if url and (kubeconfig or context or allow_writes):
        raise click.UsageError(
            "--url names a server that runs already; --kubeconfig, --context and --allow-writes"
            " are for one that the client starts"
        )
    if no_token and not url:
        raise click.UsageError("--no-token needs --url")
    server = (
        HttpServer(url, token=not no_token) if url else _started(kubeconfig, context, allow_writes)
    )
    if one_line or client_name in LINE_ONLY:
        if write or path or replace:
            raise click.UsageError(
                "--write, --file and --replace are about a file; a line is run or opened as it is"
            )
        click.echo(_line(client_name, name, server))
        return
    client = CLIENTS[client_name]
    file = path or Path(client.path(sys.platform)).expanduser()
    wanted = _installation(client, name, server)
    before = _read(file)
    after = installed(before, wanted, replace=replace)
    if isinstance(after, RefusedConfig):
        raise click.ClickException(f"{file}: {after}; nothing was written")
    if not write:
        click.echo(escaped_json(after), nl=False)
        click.echo(f"This is what {file} would be; write it with --write.", err=True)
        return
    if after == before:
        click.echo(f"{file} has the server {name!r} already.")
        return
    _replace(file, after)
    click.echo(f"{file} has the server {name!r} now. {_next(client, server)}")


def _line(client: str, name: str, server: StdioServer | HttpServer) -> str:
    line = line_of(client, name, server)
    if line is None:
        title = LINE_ONLY.get(client) or CLIENTS[client].title
        what = "a server that runs already" if isinstance(server, HttpServer) else "this"
        raise click.UsageError(f"{title} has no line for {what}: leave out --one-line, or --url")
    return line


def _installation(client: McpClient, name: str, server: StdioServer | HttpServer) -> Installation:
    entry = client.entry(server)
    if entry is None:
        raise click.UsageError(
            f"{client.title} starts its servers itself: leave --url out, or add the URL as a"
            " connector in its settings"
        )
    return Installation(client.key, name, entry, client.needed_inputs(server))


def _started(kubeconfig: Path | None, context: str | None, allow_writes: bool) -> StdioServer:
    """Return how to start this very installation: clients have another PATH than a shell."""
    arguments = ["-m", "dsf", "mcp"]
    if kubeconfig:
        arguments += ["--kubeconfig", str(kubeconfig.absolute())]
    if context:
        arguments += ["--context", context]
    if allow_writes:
        arguments.append("--allow-writes")
    return StdioServer(sys.executable, tuple(arguments))


def _read(file: Path) -> str:
    try:
        return file_content(file, MAX_CONFIG_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except YamlFileError as error:
        raise click.ClickException(f"{error}; nothing was written") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file}: not UTF-8 text; nothing was written") from error
    except OSError as error:
        raise click.ClickException(f"can't read {file}: {error.strerror}") from error


def _replace(file: Path, text: str) -> None:
    """Write a file in one step, so that a client never reads half of it; follow a symbolic link."""
    target = file.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".dsf-") as folder:
            draft = Path(folder) / target.name
            draft.write_text(text, encoding="utf-8")
            if target.exists():
                draft.chmod(target.stat().st_mode & _PERMISSIONS)
            draft.replace(target)
    except OSError as error:
        raise click.ClickException(f"can't write {file}: {error.strerror}") from error


def _next(client: McpClient, server: StdioServer | HttpServer) -> str:
    if isinstance(server, StdioServer) or not server.token:
        return f"Start {client.title} again."
    if client.inputs:
        return f"{client.title} asks for the token when it connects."
    return f"Start {client.title} again, with the token in the environment as {TOKEN_VARIABLE}."
