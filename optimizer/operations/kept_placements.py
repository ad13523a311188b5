"""The operations about PlacementOptimizations: list them, show one, approve the plan that waits."""

import asyncio
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from dsf.api.names import APPROVED_DIGEST_ANNOTATION
from dsf.kube.errors import Conflict
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION
from dsf.kube.port import find_object
from optimizer.follow.optimization.kept_conditions import objects_digest
from optimizer.follow.optimization.kept_optimization import (
    kept_optimization,
    no_optimization,
    no_waiting_plan,
    refused_approval,
)
from optimizer.follow.overview.kept_request import NotKept, kept_request
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.rights import (
    approving_rights,
    keeping_rights,
    naming_rights,
    planning_rights,
)
from optimizer.operations.fleet import fleet_facts, listed_objects
from optimizer.operations.operation import Route, operation
from optimizer.operations.planning import make_plan
from optimizer.plan.plan import Plan, result
from optimizer.service.observe import list_all
from optimizer.snapshot.object_readers import name_of
from optimizer.wire.placement_optimization import KeptList, KeptOptimization
from optimizer.wire.request import Namespace, OptimizationName
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import OptimizeResult

ATTEMPTS = 5
"""How often an approval is tried while the status of the object is written."""

_ALL, _TAG = "/placementoptimizations", "placementoptimizations"
_ONE = f"{_ALL}/{{namespace}}/{{optimization}}"


@operation(
    rights=keeping_rights,
    route=Route("GET", _ALL, "List what is kept placed in a namespace", tag=_TAG),
)
async def list_optimizations(
    optimizer: AuthorizedOptimizer, namespace: Namespace
) -> KeptList | RequestProblem:
    """Tell of each PlacementOptimization whether it is fine, what is on offer and what waits."""
    objects = await listed_objects(optimizer, PLACEMENT_OPTIMIZATION, namespace)
    if isinstance(objects, RequestProblem):
        return objects
    now = optimizer.service.now()
    items = tuple(kept_optimization(obj, now) for obj in objects)
    found = KeptList(namespace=namespace, items=items)
    return await optimizer.of_namespace(namespace, found, empty=not objects)


@operation(rights=None, route=Route("GET", _ONE, "Tell why something is kept as it is", tag=_TAG))
async def show_optimization(
    optimizer: AuthorizedOptimizer, namespace: Namespace, optimization: OptimizationName
) -> KeptOptimization | RequestProblem:
    """Tell why nothing moves, or what waits, with conditions and history."""
    found = await list_optimizations(optimizer, namespace)
    if isinstance(found, RequestProblem):
        return found
    named = (item for item in found.items if item.name == optimization)
    return next(named, None) or no_optimization(namespace, optimization)


@operation(
    rights=lambda namespace: (
        *keeping_rights(namespace),
        *planning_rights(namespace),
        *naming_rights(),
    ),
    route=Route("GET", f"{_ONE}/plan", "Show the plan that waits for an approval", tag=_TAG),
)
async def show_waiting_plan(
    optimizer: AuthorizedOptimizer, namespace: Namespace, optimization: OptimizationName
) -> OptimizeResult | RequestProblem:
    """Show what the plan that waits would change, as POST /plan does.

    It names what other namespaces have, so only those who may see these are shown it.
    """
    kept = await show_optimization(optimizer, namespace, optimization)
    if isinstance(kept, RequestProblem):
        return kept
    found = optimizer.service.waiting.get((namespace, optimization))
    plan = found.plan if found else None
    if plan is None and kept.waiting:
        plan = await _made_again(optimizer, kept)
    if plan is None or objects_digest(plan) != kept.waiting:
        return no_waiting_plan(kept)
    return result(plan, None)


async def _made_again(optimizer: AuthorizedOptimizer, kept: KeptOptimization) -> Plan | None:
    """Return the plan of what is kept, made now; None if none can be made.

    The plan that waits is in the memory of the process that keeps it, which may be another one.
    """
    objects = await list_all(optimizer.service.hub, PLACEMENT_OPTIMIZATION, kept.namespace)
    obj = next((obj for obj in objects if name_of(obj) == kept.name), None)
    facts = await fleet_facts(optimizer, kept.namespace)
    if obj is None or isinstance(facts, RequestProblem):
        return None
    meant = await asyncio.to_thread(kept_request, obj, objects, facts)
    made = None if isinstance(meant, NotKept) else await make_plan(optimizer, meant.request)
    return made if isinstance(made, Plan) else None


@operation(
    rights=approving_rights,
    write=lambda namespace, digest: WriteAttempt("approve", namespace, digest),
    route=Route("POST", f"{_ONE}/approve", "Approve the plan that waits", (404, 409, 422), _TAG),
)
async def approve_plan(
    optimizer: AuthorizedOptimizer,
    namespace: Namespace,
    optimization: OptimizationName,
    digest: Annotated[
        str, Field(pattern="^[0-9a-f]{64}$", description="That of the plan, as `waiting` says.")
    ],
) -> KeptOptimization | RequestProblem:
    """Set the annotation approved-digest, so that exactly this plan is applied.

    Refused with 409 unless a plan with this digest waits. The optimizer applies it with its own
    rights at its next look, unless the plan is out of date by then.
    """
    service = optimizer.service
    kube = (await optimizer.writer(namespace)).kube or service.hub.noting(service.kube)
    for _ in range(ATTEMPTS):
        obj = await find_object(service.kube, PLACEMENT_OPTIMIZATION, optimization, namespace)
        if obj is None:
            return no_optimization(namespace, optimization)
        kept = kept_optimization(obj, service.now())
        problem = refused_approval(kept, digest)
        if problem or kept.approved:
            return problem or kept
        version = obj["metadata"]["resourceVersion"]  # what was judged, or a Conflict
        metadata = {"resourceVersion": version, "annotations": {APPROVED_DIGEST_ANNOTATION: digest}}
        patch = {"metadata": metadata}
        with suppress(Conflict):
            patched = await kube.patch(PLACEMENT_OPTIMIZATION, optimization, patch, namespace)
            return kept_optimization(patched, service.now())
    raise Conflict(f"PlacementOptimization {optimization} changes all the time")
