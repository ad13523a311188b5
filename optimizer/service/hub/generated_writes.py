"""Writes generated objects, in a pace that OCM's policy framework can follow.

It finds the clusters of a deleted PlacementBinding by the Placement that it names. If that is gone
too when the event arrives, which takes longer on a busy hub, nobody removes the policy from these
clusters any more.

Source: controllers/propagator/replicatepolicy_pb_eventHandler.go of governance-policy-propagator
0.19.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from dsf.kube.apply import apply
from dsf.kube.changes import Change, ChangeResult, Delete
from dsf.kube.errors import KubeError
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY, Kind
from dsf.kube.port import Kube, Lister, Object, list_objects

NOTICED_SECONDS = 10.0
"""How long a Placement stays for a policy framework that has not noticed a deleted binding."""

_POLL_SECONDS = 0.1


async def write_generated(
    writer: Kube, changes: Iterable[Change], *, reader: Lister
) -> list[ChangeResult]:
    """Apply changes in order, and return a result for each.

    Placements are deleted once the status of no policy names the bindings that were deleted before
    them, or after NOTICED_SECONDS. `reader` lists the policies.
    """
    unbinding, rest = _parted(list(changes))
    outcomes = await apply(writer, unbinding)
    unbound = {
        (str(item.change.namespace), item.change.name)
        for item in outcomes
        if _deletes(item.change, PLACEMENT_BINDING) and item.error is None
    }
    if unbound and rest:
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(NOTICED_SECONDS):
                await _until_noticed(reader, unbound)
    return [*outcomes, *await apply(writer, rest)]


def _parted(changes: Sequence[Change]) -> tuple[Sequence[Change], Sequence[Change]]:
    """Part changes before the first deletion of a Placement that follows one of a binding."""
    unbound = False
    for number, change in enumerate(changes):
        if unbound and _deletes(change, PLACEMENT):
            return changes[:number], changes[number:]
        unbound = unbound or _deletes(change, PLACEMENT_BINDING)
    return changes, ()


def _deletes(change: Change, kind: Kind) -> bool:
    return isinstance(change, Delete) and change.kind == kind


async def _until_noticed(reader: Lister, unbound: Collection[tuple[str, str]]) -> None:
    waiting = {namespace for namespace, _ in unbound}
    while waiting:
        for namespace in sorted(waiting):
            bound = _bindings(await list_objects(reader, POLICY, namespace))
            if not any((namespace, name) in unbound for name in bound):
                waiting.discard(namespace)
        if waiting:
            await asyncio.sleep(_POLL_SECONDS)


def _bindings(policies: Collection[Object]) -> set[str]:
    """Return the PlacementBindings by which the policy framework has propagated policies."""
    return {
        str(item.get("placementBinding"))
        for policy in policies
        for item in (policy.get("status") or {}).get("placement") or ()
    }
