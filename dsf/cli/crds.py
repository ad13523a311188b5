"""`dsf crds`: the CustomResourceDefinitions as YAML."""

from collections.abc import Iterable
from pathlib import Path

import click
import yaml

from dsf.api.untrusted_text import listed
from dsf.cli.options import option
from dsf.kube.port import Object


@click.command()
@click.argument("plurals", nargs=-1, metavar="[PLURAL]...")
@option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file per CRD into this directory instead of printing them.",
)
def crds(plurals: tuple[str, ...], output_dir: Path | None) -> None:
    """Print the CustomResourceDefinitions, ready for kubectl apply -f -.

    PLURAL is a name such as placementplans; without any, all are printed.
    """
    from dsf.api.crd.definitions import crds as definitions

    known = {str(item["spec"]["names"]["plural"]): item for item in definitions()}
    if unknown := set(plurals) - known.keys():
        raise click.BadParameter(f"{min(unknown)!r} is none of {listed(known)}")
    chosen = [item for plural, item in known.items() if plural in plurals or not plurals]
    if output_dir is None:
        click.echo(yaml.safe_dump_all(chosen, sort_keys=False), nl=False)
        return
    try:
        _write(chosen, output_dir)
    except OSError as error:
        raise click.ClickException(f"cannot write to {output_dir}: {error.strerror}") from error


def _write(definitions: Iterable[Object], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for definition in definitions:
        path = directory / f"{definition['metadata']['name']}.yaml"
        path.write_text(yaml.safe_dump(definition, sort_keys=False), encoding="utf-8")
        click.echo(path)
