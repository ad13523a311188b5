"""`dsf simulate`: what placements would be worth, on a twin of the fleet in virtual time.

The scenario is a file, or a recording: a folder, or a Prometheus and a hub.
"""

import asyncio
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.api.untrusted_text import one_line
from dsf.cli.options import FILE, Duration, Namespace, option
from dsf.cli.output import Progress, document_of, draw, output_option, picture_option, show
from optimizer.cli.hub_request import namespace_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optimizer.twin.evaluation.recording import RecordedRun
    from optimizer.twin.evaluation.report import Run
    from optimizer.twin.evaluation.sweep import Mapper, Sweep

MOST_SEEDS = 1000

_READ_HERE = ("plans do not use this kind", "neither a Kubernetes object nor a request")
"""Of what planning ignores: a recording has plans, and answers of Prometheus."""


@click.command()
@click.argument("scenario_file", metavar="[SCENARIO.yaml]", type=FILE, required=False)
@option(
    "--record",
    "recorded",
    metavar="DIR|URL",
    help="Play what was recorded, instead of a scenario: a folder with the hub's objects, its"
    " PlacementPlans and the scores that Prometheus answered, or the URL of the Prometheus that"
    " scrapes the agents of the hub of --kubeconfig.",
)
@option(
    "--since",
    type=Duration(),
    default="7d",
    help="How far back a Prometheus is asked, at most 31d.",
)
@namespace_option
@option(
    "--optimization",
    type=Namespace(),
    default="default",
    help="Name of the optimization whose plans were recorded.",
)
@option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="FIELD=VALUE,...",
    help="Try each value of a field of the scenario's optimization, such as hysteresis=1,2,5 or"
    " hysteresis.leastGain=5,10; repeatable: then all combinations.",
)
@option(
    "--seeds",
    type=click.IntRange(1, MOST_SEEDS),
    default=1,
    help="Play with so many seeds, from the scenario's on, and show means with 95% intervals.",
)
@option(
    "--hindsight/--no-hindsight",
    default=True,
    help="Compare with the best that was possible for who knew all scores beforehand.",
)
@option(
    "--processes",
    type=click.IntRange(1, 1024),
    help="Runs at once on this machine. Default: its cores.",
)
@option(
    "--dask",
    metavar="ADDRESS",
    help="Run on the Dask cluster whose scheduler has this address, such as tcp://scheduler:8786."
    " It can run code here: name one that you trust.",
)
@picture_option("Draw value and moves over time, of the first seed, into this SVG file.")
@output_option()
def simulate(
    *,
    scenario_file: Path | None,
    recorded: str | None,
    sweeps: tuple[str, ...],
    seeds: int,
    picture: Path | None,
    output: str,
    **how: Any,
) -> None:
    """Play a scenario or a recording with the product's own parts, on a virtual clock.

    Compares its controller with a naive loop that posts on a timer, and with the best in hindsight:
    value, moves, minutes in which replicas did not run, recovery from lost clusters. Writes nothing
    to a hub.
    """
    if (scenario_file is None) == (recorded is None):
        raise click.UsageError("name a scenario file, or a recording with --record")
    if how["dask"] and how["processes"]:
        raise click.UsageError("--processes is of this machine, --dask of others: give one of them")
    from dsf.cli.root import missing_module
    from optimizer.twin.evaluation.report import simulation, table
    from optimizer.twin.evaluation.sweep import SweepFailed

    try:
        asked = _recording(recorded, how) if recorded else _scenario(scenario_file)
        with _mapper(how) as mapped:
            groups = _played(asked, _sweeps(sweeps), seeds, mapped, hindsight=how["hindsight"])
        found = simulation(groups, asked.scenario, asked.notes)
    except (SweepFailed, ValueError) as error:
        raise click.ClickException(one_line(str(error))) from error
    except ModuleNotFoundError as error:
        raise click.ClickException(missing_module("simulate", "simulate", error)) from error
    if picture is not None:
        from optimizer.twin.evaluation.picture import svg

        draw(svg([group[0] for group in groups], asked.scenario), picture)
    show(table(found) if output == "table" else document_of(found, output))


def _scenario(path: Path | None) -> "RecordedRun":
    from optimizer.twin.evaluation.recording import RecordedRun
    from optimizer.twin.evaluation.scenario_file import read_scenario

    return RecordedRun(read_scenario(path or Path()), None, ())


def _recording(place: str, how: dict[str, Any]) -> "RecordedRun":
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


def _sweeps(texts: tuple[str, ...]) -> "list[Sweep]":
    from optimizer.twin.evaluation.sweep import parse_sweep

    sweeps = [parse_sweep(text) for text in texts]
    if len({sweep.path for sweep in sweeps}) < len(sweeps):
        raise click.UsageError("--sweep: a field is named twice")
    return sweeps


@contextmanager
def _mapper(how: dict[str, Any]) -> "Iterator[Mapper]":
    from optimizer.twin.evaluation.sweep import on_dask, on_this_machine

    if not how["dask"]:
        yield on_this_machine(how["processes"])
        return
    with on_dask(how["dask"]) as mapped:
        yield mapped


def _played(
    asked: "RecordedRun", sweeps: "list[Sweep]", seeds: int, mapped: "Mapper", *, hindsight: bool
) -> "list[list[Run]]":
    from optimizer.twin.evaluation.report import Run
    from optimizer.twin.evaluation.sweep import run_all

    first = asked.scenario.seed
    with Progress("Simulating") as progress:

        def told(done: int, every: int) -> None:
            progress.detail = f"; {done} of {every} runs"

        groups = run_all(
            asked.scenario,
            sweeps,
            range(first, first + seeds),
            mapped,
            hindsight=hindsight,
            told=told,
        )
    if asked.recorded:
        groups.append([Run({}, asked.recorded, groups[0][0].hindsight)])
    return groups
