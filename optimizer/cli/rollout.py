"""`dsf rollout`: how far a Stepwise rollout is; pause, resume, undo and cancel it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import option, options
from dsf.cli.output import document_of, output_option, show
from optimizer.cli.hub_request import connected, namespace_option, optimization_option, usable
from optimizer.cli.model_options import key_option, settings_of

if TYPE_CHECKING:
    from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
    from optimizer.wire.rollout import RolloutCommand, RolloutStatus

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
def status(*, watch: bool, output: str, **which: Any) -> None:
    """Show which step is made and what it waits for.

    Exit code 0 if the rollout is complete, 1 otherwise. Writes nothing.
    """
    found = asyncio.run(_follow(which, output) if watch else _status(which, output))
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


def _change(which: dict[str, Any], command: "RolloutCommand") -> None:
    from optimizer.follow.rollout.text import rollout_headline
    from optimizer.operations.rollouts import change_rollout

    async def changed(optimizer: "AuthorizedOptimizer", **of: str) -> "RolloutStatus":
        return usable(await change_rollout(optimizer, **of, command=command))

    click.echo(rollout_headline(asyncio.run(_with_optimizer(which, changed))))


async def _status(which: dict[str, Any], output: str) -> "RolloutStatus":
    from optimizer.operations.rollouts import rollout_status

    async def shown(optimizer: "AuthorizedOptimizer", **of: str) -> "RolloutStatus":
        found = usable(await rollout_status(optimizer, **of))
        show(_text(found, output))
        return found

    return await _with_optimizer(which, shown)


async def _follow(which: dict[str, Any], output: str) -> "RolloutStatus":
    from optimizer.follow.rollout.text import rollout_headline
    from optimizer.operations.rollouts import follow_rollout

    async def followed(optimizer: "AuthorizedOptimizer", **of: str) -> "RolloutStatus":
        async for found in usable(await follow_rollout(optimizer, **of)):
            line = rollout_headline(found) if output == "table" else _text(found, output).rstrip()
            click.echo(line)
        return found

    return await _with_optimizer(which, followed)


async def _with_optimizer(
    which: dict[str, Any], work: Callable[..., Awaitable["RolloutStatus"]]
) -> "RolloutStatus":
    from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer

    only = replace(settings_of(which), rollout_namespaces=(which["namespace"],))
    async with connected(which["kubeconfig"], which["context"], only) as (_, optimizer):
        of = {name: which[name] for name in ("namespace", "optimization")}
        return await work(AuthorizedOptimizer(optimizer), **of)


def _text(found: "RolloutStatus", output: str) -> str:
    if output != "table":
        return document_of(found, output)
    from optimizer.follow.rollout.text import rollout_tables

    return rollout_tables(found)
