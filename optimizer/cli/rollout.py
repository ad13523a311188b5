"""`dsf rollout`: how far a Stepwise rollout is; pause, resume, undo and cancel it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import async_to_sync, option, options
from dsf.cli.output import document_of, output_option, show
from optimizer.cli.hub_request import connected, namespace_option, optimization_option, usable
from optimizer.cli.model_options import key_option, settings_of

if TYPE_CHECKING:
    from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
    from optimizer.wire.rollout import RolloutCommand

EXIT_NOT_COMPLETE = 1

_which = options(namespace_option, optimization_option("Name of the optimization."), key_option)


@click.group()
def rollout() -> None:
    """Follow a plan that is applied step by step, and control it.

    `POST /optimize` with `rollout: Stepwise` begins one; `dsf optimizer` makes its steps.
    """


@rollout.command()
@_which
@option("--watch", "-w", is_flag=True, help="Follow the rollout until it has ended.")
@output_option()
@async_to_sync
async def status(*, watch: bool, output: str, **which: Any) -> None:
    """Show which step is made and what it waits for.

    Exit code 0 if the rollout is complete, 1 otherwise. Writes nothing.
    """
    from optimizer.follow.rollout.text import rollout_headline, rollout_tables
    from optimizer.operations.rollouts import follow_rollout, rollout_status

    table = output == "table"
    async with _rollout(which) as (optimizer, of):
        if watch:
            async for found in usable(await follow_rollout(optimizer, **of)):
                line = rollout_headline(found) if table else document_of(found, output).rstrip()
                click.echo(line)
        else:
            found = usable(await rollout_status(optimizer, **of))
            show(rollout_tables(found) if table else document_of(found, output))
    if found.phase != "Complete":
        raise click.exceptions.Exit(EXIT_NOT_COMPLETE)


@rollout.command()
@_which
def pause(**which: Any) -> None:
    """Write nothing more until the rollout is resumed."""
    _change(which, "pause")


@rollout.command()
@_which
def resume(**which: Any) -> None:
    """Go on after a pause; the progress deadline starts again."""
    _change(which, "resume")


@rollout.command()
@_which
def undo(**which: Any) -> None:
    """Walk back to the start of the rollout, step by step."""
    _change(which, "undo")


@rollout.command()
@_which
def cancel(**which: Any) -> None:
    """End the rollout where it is; plan again from there."""
    _change(which, "cancel")


@async_to_sync
async def _change(which: dict[str, Any], command: "RolloutCommand") -> None:
    from optimizer.follow.rollout.text import rollout_headline
    from optimizer.operations.rollouts import change_rollout

    async with _rollout(which) as (optimizer, of):
        changed = usable(await change_rollout(optimizer, **of, command=command))
    click.echo(rollout_headline(changed))


@asynccontextmanager
async def _rollout(
    which: dict[str, Any],
) -> AsyncIterator[tuple["AuthorizedOptimizer", dict[str, str]]]:
    """Yield the optimizer to ask, and the namespace and the optimization of a rollout."""
    only = replace(settings_of(which), rollout_namespaces=(which["namespace"],))
    async with connected(which["kubeconfig"], which["context"], only) as (_, optimizer):
        yield optimizer, {name: which[name] for name in ("namespace", "optimization")}
