"""`dsf scorer new`."""

from pathlib import Path

import click

from dsf.scorer_kit.cli.api_options import dns_label_value


@click.command()
@click.argument("name", callback=dns_label_value)
@click.option(
    "--lang",
    type=click.Choice(["python", "go", "node", "shell"]),
    default="python",
    show_default=True,
    help="Language of the scorer; shell needs jq, and Python for HTTP.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder in which the folder NAME is made; default: this one.",
)
@click.option("--force", is_flag=True, help="Overwrite files of an existing folder.")
def new(name: str, lang: str, output_dir: Path, *, force: bool) -> None:
    """Write the folder NAME: a scorer that works, to be changed.

    It has the service, tests, a Dockerfile, manifests and a README, and passes dsf scorer check.
    """
    from dsf.scorer_kit.scaffold import FolderExists, files_of, write

    if not name[:1].isalpha():
        raise click.BadParameter(f"{name!r} must start with a letter, as a Service does")
    folder, files = output_dir / name, files_of(lang, name)
    try:
        write(folder, files, overwrite=force)
    except FolderExists as error:
        raise click.ClickException(f"{error}; --force overwrites its files") from error
    except OSError as error:
        raise click.ClickException(f"cannot write to {folder}: {error.strerror}") from error
    for path in files:
        click.echo(folder / path)
    click.echo(f"Next: {folder / 'README.md'} has the commands to run, check and try it.")
