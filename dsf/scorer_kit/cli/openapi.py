"""`dsf scorer openapi`: the contract of the scoring API as documents."""

import json
from pathlib import Path

import click
import yaml


@click.command()
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the document and a JSON Schema of each body into this directory instead.",
)
def openapi(output_dir: Path | None) -> None:
    """Print the contract of the scoring API as an OpenAPI 3.1 document."""
    from dsf.api.scoring.openapi import json_schemas
    from dsf.api.scoring.openapi import openapi as document

    text = yaml.safe_dump(document(), sort_keys=False, width=100)
    if output_dir is None:
        click.echo(text, nl=False)
        return
    files = {"openapi.yaml": text} | {
        f"{name}.schema.json": json.dumps(schema, indent=2) + "\n"
        for name, schema in json_schemas().items()
    }
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (output_dir / name).write_text(content, encoding="utf-8")
            click.echo(output_dir / name)
    except OSError as error:
        raise click.ClickException(f"cannot write to {output_dir}: {error.strerror}") from error
