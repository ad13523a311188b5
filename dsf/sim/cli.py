"""The command `dsf demo`."""

import shutil
import tempfile
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.api.names import OPTIMIZER_PORT
from dsf.cli.options import Namespace, StrictCommand, option, server_url

if TYPE_CHECKING:
    from dsf.sim.demo.authors_part import AuthorsPart, AuthorsRecording


@click.command(cls=StrictCommand)
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=OPTIMIZER_PORT,
    help="Port of the optimizer on 127.0.0.1; 0 chooses a free one.",
)
@option("--keep", is_flag=True, help="Keep everything running afterwards, until Ctrl-C.")
@option(
    "--allow-writes",
    is_flag=True,
    help="With --keep: let the optimizer write afterwards too, by POST /optimize and by MCP tools.",
)
@option(
    "--story",
    type=click.Choice(("inference", "airan")),
    help="Tell a user story instead: efficient inference on different accelerators, or AI"
    " workloads that leave radio sites before their peaks.",
)
@option(
    "--fleet",
    type=click.IntRange(2, 300),
    metavar="CLUSTERS",
    help="Run a fleet of 2 to 300 clusters instead, whose load changes: it stays up and serves the"
    " page until Ctrl-C. Callers may write there.",
)
@option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="URL",
    help="A scoring API of yours that runs on this machine: registered beside the others, and a"
    " plan is made by its score. Repeatable.",
)
@option(
    "--recording",
    "recordings",
    multiple=True,
    metavar="[CLUSTER=]NAME|FILE",
    help="Series for --scorer, as for `dsf scorer backtest`: a recording by name, or a JSON, CSV or"
    " Parquet file, repeated without end. Without CLUSTER, worker02 is 60 steps ahead of worker01."
    " Repeatable.",
)
@option(
    "--prometheus-url",
    default="",
    callback=server_url,
    help="A Prometheus that all agents ask, instead of recordings; the demo's scorers of recorded"
    " series are left out.",
)
@option(
    "--manifest-namespace",
    "manifest_namespaces",
    multiple=True,
    type=Namespace(),
    help="Namespace besides default whose workloads and policies are sent to scorers that ask for"
    " them. Repeatable.",
)
@option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def demo(
    port: int,
    keep: bool,
    allow_writes: bool,
    story: str | None,
    fleet: int | None,
    as_json: bool,
    **authors: Any,
) -> None:
    """Run the whole loop on this machine.

    The demo starts an embedded hub, two managed clusters, scoring APIs, agents and the optimizer.
    Agents publish scores; the optimizer places workloads for performance, then for power; the
    workloads move. It needs no cluster, no container and no network.
    """
    from dsf.runtime.process import run
    from dsf.sim.demo.output import JsonOutput, TextOutput
    from dsf.sim.demo.processes import DemoError, free_port, require_free
    from dsf.sim.demo.walkthrough import walk_through
    from dsf.sim.fleet.run_fleet import run_fleet
    from dsf.sim.stories.tell import tell

    params = click.get_current_context().command.params
    given = [one.opts[0] for one in params if one.name and authors.get(one.name)]
    own = "--fleet" if fleet else "--story"
    given += ["--story"] if fleet and story else []
    if (story or fleet) and given:
        said = ", ".join(map(str, given))
        raise click.UsageError(f"{own} has scorers and series of its own: leave out {said}")
    if allow_writes and not (keep or fleet):
        raise click.UsageError("--allow-writes is about afterwards: say --keep too")
    part = _authors_part(**authors)
    work_dir: Path | None = None
    try:
        if port:
            require_free(port, "--port")
        work_dir = Path(tempfile.mkdtemp(prefix="dsf-demo-"))
        output = JsonOutput() if as_json else TextOutput()
        port = port or free_port()
        if fleet:
            run(run_fleet(fleet, output, work_dir, port=port))
        else:
            demo_run = partial(tell, story) if story else partial(walk_through, part=part)
            run(demo_run(output, work_dir, port=port, keep=keep, allow_writes=allow_writes))
    except DemoError as error:
        if work_dir and not any(work_dir.glob("*.log")):
            shutil.rmtree(work_dir, ignore_errors=True)
        raise click.ClickException(str(error)) from error
    shutil.rmtree(work_dir, ignore_errors=True)
    if not output.finished:
        raise click.ClickException("the demo was stopped before it had a result")


def _authors_part(
    *,
    scorers: tuple[str, ...],
    recordings: tuple[str, ...],
    prometheus_url: str,
    manifest_namespaces: tuple[str, ...],
) -> "AuthorsPart":
    """Return what the options bring. Raises click.UsageError."""
    from dsf.scorer_kit.cli.api_options import named
    from dsf.sim.demo.authors_part import AuthorsPart

    if recordings and prometheus_url:
        raise click.UsageError("--recording and --prometheus-url: one of them has the series")
    if (recordings or prometheus_url) and not scorers:
        raise click.UsageError(
            f"{'--recording' if recordings else '--prometheus-url'}: no scorer of the demo asks for"
            " it: name yours with --scorer URL"
        )
    found = tuple(map(_recording, recordings))
    for first, second in combinations(found, 2):
        if query := first.contends_with(second):
            raise click.UsageError(
                f"--recording: {first.name} and {second.name} both answer {query}: name a CLUSTER="
                " for each"
            )
    apis = tuple(named(url, "", (), None) for url in scorers)
    return AuthorsPart(apis, found, prometheus_url, manifest_namespaces)


def _recording(value: str) -> "AuthorsRecording":
    from dsf.api.untrusted_text import listed
    from dsf.scorer_kit.cli.api_options import recording_path
    from dsf.scorer_kit.recordings import name_of, of_whole_periods, replayable
    from dsf.scorer_kit.series_file import UnusableFile
    from dsf.sim.demo.authors_part import AuthorsRecording
    from dsf.sim.demo.scorers import HARDWARE

    cluster, marked, file = value.partition("=")
    if not marked or Path(value).is_file():
        cluster, file = "", value
    elif cluster not in HARDWARE:
        raise click.UsageError(
            f"--recording: the demo has no cluster {cluster!r}; there are {listed(HARDWARE)}"
        )
    path = recording_path(file)
    try:
        return AuthorsRecording(name_of(path), of_whole_periods(replayable(path)), cluster)
    except UnusableFile as error:
        raise click.UsageError(f"--recording: {error}") from error
