"""`dsf crds`: the CustomResourceDefinitions as YAML."""

from collections.abc import Iterable
from pathlib import Path

import click
import yaml

from dsf.kube.port import Object


@click.command()
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file per CRD into this directory instead of printing them.",
)
def crds(output_dir: Path | None) -> None:
    """Print the CustomResourceDefinitions, ready for kubectl apply -f -."""
    from dsf.api.crd.definitions import crds as definitions

    if output_dir is None:
        click.echo(yaml.safe_dump_all(definitions(), sort_keys=False), nl=False)
        return
    try:
        _write(definitions(), output_dir)
    except OSError as error:
        raise click.ClickException(f"cannot write to {output_dir}: {error.strerror}") from error


def _write(definitions: Iterable[Object], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for definition in definitions:
        path = directory / f"{definition['metadata']['name']}.yaml"
        path.write_text(yaml.safe_dump(definition, sort_keys=False), encoding="utf-8")
        click.echo(path)
