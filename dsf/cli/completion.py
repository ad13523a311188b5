"""`dsf completion`: the script that teaches a shell to complete `dsf`."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script, such as: source <(dsf completion bash)."""
    from dsf.cli.root import root

    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"no completion for {shell}")
    click.echo(found(root, {}, "dsf", "_DSF_COMPLETE").source())
