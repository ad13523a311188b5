"""The command `dsf demo`."""

import shutil
import tempfile
from functools import partial
from pathlib import Path

import click

from dsf.api.names import OPTIMIZER_PORT


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=OPTIMIZER_PORT,
    show_default=True,
    help="Port of the optimizer on 127.0.0.1; 0 chooses a free one.",
)
@click.option("--keep", is_flag=True, help="Keep everything running afterwards, until Ctrl-C.")
@click.option(
    "--allow-writes",
    is_flag=True,
    help="With --keep: let the optimizer write afterwards too, by POST /optimize and by MCP tools.",
)
@click.option(
    "--story",
    type=click.Choice(("inference", "airan")),
    help="Tell a user story instead: efficient inference on different accelerators, or AI"
    " workloads that leave radio sites before their peaks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def demo(port: int, keep: bool, allow_writes: bool, story: str | None, as_json: bool) -> None:
    """Run the whole loop on this machine.

    The demo starts an embedded hub, two managed clusters, scoring APIs, agents and the optimizer.
    Agents publish scores; the optimizer places workloads for performance, then for power; the
    workloads move. It needs no cluster, no container and no network.
    """
    from dsf.runtime.process import run
    from dsf.sim.demo.output import JsonOutput, TextOutput
    from dsf.sim.demo.processes import DemoError, free_port, require_free
    from dsf.sim.demo.walkthrough import walk_through
    from dsf.sim.stories.tell import tell

    try:
        if port:
            require_free(port, "--port")
        work_dir = Path(tempfile.mkdtemp(prefix="dsf-demo-"))
        output = JsonOutput() if as_json else TextOutput()
        port = port or free_port()
        demo_run = partial(tell, story) if story else walk_through
        run(demo_run(output, work_dir, port=port, keep=keep, allow_writes=allow_writes))
    except DemoError as error:
        raise click.ClickException(str(error)) from error
    shutil.rmtree(work_dir, ignore_errors=True)
    if not output.finished:
        raise click.ClickException("the demo was stopped before it had a result")
