"""Reads the recording that `dsf simulate --record` names: a folder, or a Prometheus and a hub."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.api.untrusted_text import one_line
from dsf.cli.output import Progress

if TYPE_CHECKING:
    from optimizer.twin.evaluation.recording import RecordedRun

_READ_HERE = ("plans do not use this kind", "neither a Kubernetes object nor a request")
"""Of what planning ignores: a recording has plans, and answers of Prometheus."""


def read_recording(place: str, how: dict[str, Any]) -> "RecordedRun":
    """Return the recording of a folder, or of a Prometheus and a hub. Raises ClickException."""
    from dsf.cli.prometheus import PrometheusRefused
    from optimizer.twin.scenario import LONGEST_SECONDS

    from_url = place.startswith(("http://", "https://"))
    if not from_url and not Path(place).is_dir():
        raise click.UsageError(f"--record: {place} is neither a folder nor a URL of http or https")
    if how["since"] > LONGEST_SECONDS:
        raise click.UsageError("--since: at most 31d")
    try:
        with Progress("Reading the recording"):
            read = _of_hub(place, how) if from_url else _of_folder(Path(place), how)
            return asyncio.run(read)
    except PrometheusRefused as error:
        raise click.ClickException(str(error)) from error


async def _of_hub(url: str, how: dict[str, Any]) -> "RecordedRun":
    from dsf.kube.client.connect import connect
    from optimizer.twin.evaluation.recorded_hub import recording_of_hub

    async with connect(how["kubeconfig"], how["context"]) as kube:
        return await recording_of_hub(
            kube, url, how["namespace"], how["optimization"], seconds=how["since"]
        )


async def _of_folder(folder: Path, how: dict[str, Any]) -> "RecordedRun":
    from dsf.cli.prometheus import series_of
    from dsf.kube.kinds import find
    from dsf.kube.yaml_documents import documents
    from optimizer.cli.object_files import is_object, objects, read_object_files
    from optimizer.twin.evaluation.recorded_hub import RECORDS, record_of
    from optimizer.twin.evaluation.recording import recording_of

    found = list(documents(folder))
    series = [
        one
        for document in found
        if isinstance(document.value, dict) and "data" in document.value and not is_object(document)
        for one in series_of(document.value["data"], str(document.path))
    ]
    every = [obj for document in found if is_object(document) for obj in objects(document)]
    namespace = how["namespace"]
    own = [obj for obj in every if obj["metadata"].get("namespace", "default") == namespace]
    records = {kind: [obj for obj in own if find(obj) == kind] for kind in RECORDS}
    files = read_object_files([folder], None)
    for text in files.ignored:
        if not text.endswith(_READ_HERE):
            click.echo(f"Ignored: {one_line(text)}", err=True)
    record = await record_of(files.hub, records, namespace, how["optimization"])
    return recording_of(*record, series)
