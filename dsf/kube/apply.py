"""Apply changes to a cluster: concurrently, and in order where the order matters.

How many writes are in flight follows the latency of the API server: see
`dsf.kube.write_concurrency`.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from dsf.kube.changes import Change, ChangeResult, Create, Delete, Patch, merge_patch
from dsf.kube.errors import (
    AlreadyExists,
    Conflict,
    KubeError,
    NotFound,
    TooManyRequests,
    retry_after,
)
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube
from dsf.kube.write_concurrency.write_limiter import WriteLimiter

ATTEMPTS = 4
"""How often a write is sent that the API server refuses with 429 and Retry-After, in all."""

_Numbered = tuple[int, Change]


async def apply(
    kube: Kube, changes: Iterable[Change], *, limiter: WriteLimiter | None = None
) -> list[ChangeResult]:
    """Apply every change and return a result for each, in order; a KubeError becomes its error.

    Neighbouring changes of one kind run concurrently, as many as the limiter allows; without one,
    this call has its own. Changes of one object stay in order, and deletes wait for the changes
    before them. The next kind starts once all changes of the kind before it have ended. One failure
    does not stop the others. A write that the API server refuses with 429 and Retry-After was not
    executed, and is sent again after that time.

    Two outcomes count as success: creating an object that already exists as desired, and deleting
    an object that is gone, that was re-created under its name, or that was written since it was
    read where the deletion names its resource version.
    """
    numbered = list(enumerate(changes))
    outcomes: dict[int, ChangeResult] = {}
    limiter = limiter or WriteLimiter()
    for _, stage in groupby(numbered, key=_stage):
        chains = iter(_by_object(list(stage)))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(limiter.bounds.maximum, len(numbered))):
                group.create_task(_work(kube, limiter, chains, outcomes))
    return [outcomes[number] for number, _ in numbered]


def _stage(numbered: _Numbered) -> tuple[Kind, bool]:
    _, change = numbered
    return change.kind, isinstance(change, Delete)


def _by_object(stage: Sequence[_Numbered]) -> list[list[_Numbered]]:
    chains: dict[tuple[str | None, str], list[_Numbered]] = {}
    for number, change in stage:
        chains.setdefault((change.namespace, change.name), []).append((number, change))
    return list(chains.values())


async def _work(
    kube: Kube,
    limiter: WriteLimiter,
    chains: Iterator[Sequence[_Numbered]],
    outcomes: dict[int, ChangeResult],
) -> None:
    for chain in chains:
        for number, change in chain:
            error = await _error_of(kube, limiter, change)
            if error and await _benign(kube, change, error):
                error = None
            outcomes[number] = ChangeResult(change, error)


async def _error_of(kube: Kube, limiter: WriteLimiter, change: Change) -> KubeError | None:
    error: KubeError | None = None
    for _ in range(ATTEMPTS):
        try:
            async with limiter.turn():
                await _apply_one(kube, change)
        except TooManyRequests as refusal:
            error = refusal
            if not retry_after(refusal):
                return error
        except KubeError as failure:
            return failure
        else:
            return None
    return error


async def _apply_one(kube: Kube, change: Change) -> None:
    match change:
        case Create(kind, obj):
            await kube.create(kind, obj)
        case Patch(kind, name, namespace, body, subresource):
            await kube.patch(kind, name, body, namespace, subresource=subresource)
        case Delete(kind, name, namespace, uid, version):
            await kube.delete(kind, name, namespace, uid=uid, resource_version=version)


async def _benign(kube: Kube, change: Change, error: KubeError) -> bool:
    match change, error:
        case Delete(), NotFound():
            return True
        case Delete(uid=uid, resource_version=version), Conflict():
            return bool(uid or version)
        case Create(), AlreadyExists():
            return await _exists_as_desired(kube, change)
        case _:
            return False


async def _exists_as_desired(kube: Kube, change: Create) -> bool:
    try:
        observed = await kube.get(change.kind, change.name, change.namespace)
    except KubeError:
        return False
    return not merge_patch(observed, change.obj)
