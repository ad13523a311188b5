"""The operations about rollouts: how far they are, and what changes them."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from pydantic import Field

from optimizer.follow.rollout.rollout_commands import no_rollout
from optimizer.follow.rollout.rollout_record import RolloutRecord, status_of
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.rights import record_rights, rollout_rights
from optimizer.operations.operation import Route, operation
from optimizer.service.rollouts.rollout_records import RolloutRecords
from optimizer.wire.request import Namespace, OptimizationName
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.rollout import RolloutCommand, RolloutList, RolloutStatus

_ONE = "/rollouts/{namespace}/{optimization}"
_Optimization = Annotated[OptimizationName, Field(description="Name of the optimization.")]
_Namespace = Annotated[Namespace, Field(description="Namespace of the optimization.")]


@operation(
    rights=record_rights,
    route=Route("GET", "/rollouts", "List the rollouts of a namespace", tag="rollouts"),
)
async def list_rollouts(
    optimizer: AuthorizedOptimizer, namespace: Namespace
) -> RolloutList | RequestProblem:
    """Tell how far the newest Stepwise rollout of each optimization is."""
    records = await optimizer.service.rollouts.records.of_namespace(namespace)
    found = RolloutList(items=tuple(map(status_of, records)))
    return await optimizer.of_namespace(namespace, found, empty=not found.items)


@operation(
    rights=record_rights, route=Route("GET", _ONE, "Tell how far a rollout is", tag="rollouts")
)
async def rollout_status(
    optimizer: AuthorizedOptimizer, namespace: _Namespace, optimization: _Optimization
) -> RolloutStatus | RequestProblem:
    """Tell which step is made, what it waits for and since when, with OCM's reason."""
    record = await optimizer.service.rollouts.records.find(namespace, optimization)
    return status_of(record) if record else no_rollout(namespace, optimization)


@operation(
    rights=record_rights, route=Route("GET", f"{_ONE}/events", "Follow a rollout", tag="rollouts")
)
async def follow_rollout(
    optimizer: AuthorizedOptimizer, namespace: _Namespace, optimization: _Optimization
) -> AsyncGenerator[RolloutStatus] | RequestProblem:
    """Send the status now and whenever it changes. The stream ends when the rollout has."""
    rollouts = optimizer.service.rollouts.records
    record = await rollouts.find(namespace, optimization)
    return _statuses(rollouts, record) if record else no_rollout(namespace, optimization)


async def _statuses(
    rollouts: RolloutRecords, record: RolloutRecord
) -> AsyncGenerator[RolloutStatus]:
    changes = rollouts.changes(record)
    del record  # What is followed is shared.
    async with aclosing(changes):
        async for changed in changes:
            yield status_of(changed)


@operation(
    rights=rollout_rights,
    write=lambda namespace, command: WriteAttempt(f"rollout {command}", namespace),
    route=Route(
        "POST",
        f"{_ONE}/{{command}}",
        "Pause, resume, undo or cancel a rollout",
        problems=(404, 409, 422),
        tag="rollouts",
    ),
)
async def change_rollout(
    optimizer: AuthorizedOptimizer,
    namespace: _Namespace,
    optimization: _Optimization,
    command: RolloutCommand,
) -> RolloutStatus | RequestProblem:
    """Change a rollout that has not ended.

    pause: write nothing more until it is resumed. undo: walk back to the start, step by step.
    cancel: end where it is, and let POST /optimize plan from there.
    """
    return await optimizer.service.rollouts.command(namespace, optimization, command)
