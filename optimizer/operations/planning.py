"""The operations that plan: a dry run of a few words, and a complete request that is applied."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from dsf.kube.kinds import MANIFEST_WORK_REPLICA_SET, PLACEMENT_OPTIMIZATION
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import keeper_issues, kept_elsewhere, named_elsewhere
from optimizer.follow.overview.plan_request import (
    PartialRequest,
    PlanRequest,
    PlanResult,
    of_question,
    with_namespace,
    with_optimization,
)
from optimizer.follow.overview.question_completion import (
    PlanningQuestion,
    complete_question,
    whole_request,
)
from optimizer.follow.overview.what_if import PretendedObjects
from optimizer.follow.record.plan_history import RequestInForce, requests_in_force
from optimizer.follow.record.recorded_plan import recorded_request
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.rights import Rights, planning_rights, writing_rights
from optimizer.operations.examples import OPTIMIZE_EXAMPLES, PLAN_EXAMPLES
from optimizer.operations.fleet import fleet_facts, listed_objects, with_namespaces
from optimizer.operations.operation import Route, operation
from optimizer.operations.recorded_plans import recorded_plans
from optimizer.operations.writes import shown_or_applied
from optimizer.plan.plan import Plan, result
from optimizer.snapshot.object_readers import is_workload, name_of
from optimizer.wire.placement_optimization import PlacementOptimizationSpec, read_spec
from optimizer.wire.plan_record import PlanRecord
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem, dry_request
from optimizer.wire.result import OptimizeResult


@operation(rights=None)
async def question(
    optimizer: AuthorizedOptimizer,
    partial: PartialRequest,
    facts: FleetFacts | None = None,
    *,
    explains: bool = False,
) -> PlanningQuestion | RequestProblem:
    """Return the request that a partial one means; `facts`: of its namespace, if they are known.

    One that names no workloads leaves out those that another PlacementOptimization keeps, unless
    it `explains` any of them.

    An optimization that it does not say is `default`, or else the only one of the namespace. An
    objective that it does not say is that of the PlacementOptimization of its optimization, or else
    that of the plan in force, for users who may list these. A gap that it does not say is that of
    plans that a person waits for.
    """
    settled = with_namespace(partial)
    if isinstance(settled, RequestProblem):
        return settled
    further = {"gap": optimizer.service.answer_gap, **settled.further}
    settled = replace(settled, further=further)
    if settled.is_whole_request:
        whole = whole_request(settled)
        if isinstance(whole, RequestProblem):
            whole = of_question(whole, settled)
        elif not explains:
            whole = await _with_all_keepers(optimizer, whole)
        return whole
    known = facts or await fleet_facts(optimizer, settled.namespace)
    if isinstance(known, RequestProblem):
        return known
    kept = await listed_objects(optimizer, PLACEMENT_OPTIMIZATION, settled.namespace)
    kept = () if isinstance(kept, RequestProblem) else kept
    named = with_optimization(known, settled, map(name_of, kept))
    if isinstance(named, RequestProblem):
        return named
    taken = await _request_in_force(optimizer, named, kept) if named.needs_objective else None
    if isinstance(taken, RequestProblem):
        return taken
    elsewhere = {} if explains else kept_elsewhere(kept, known.workloads, named.optimization)
    found = complete_question(known, named, taken, named_elsewhere(elsewhere, kept))
    if isinstance(found, PlanningQuestion):
        found = _with_keepers(found, elsewhere)
    found = await with_namespaces(optimizer, found, settled.workloads, settled.namespace)
    return of_question(found, settled) if isinstance(found, RequestProblem) else found


async def _with_all_keepers(
    optimizer: AuthorizedOptimizer, found: PlanningQuestion
) -> PlanningQuestion:
    """Return a whole request with which PlacementOptimizations keep its workloads too."""
    namespace, name = found.request.namespace, found.request.optimization
    kept = await listed_objects(optimizer, PLACEMENT_OPTIMIZATION, namespace)
    if isinstance(kept, RequestProblem) or not kept:
        return found
    listed = await listed_objects(optimizer, MANIFEST_WORK_REPLICA_SET, namespace)
    if isinstance(listed, RequestProblem):
        return found
    workloads = {name_of(obj): obj for obj in listed if is_workload(obj)}
    return _with_keepers(found, kept_elsewhere(kept, workloads, name))


def _with_keepers(found: PlanningQuestion, elsewhere: Mapping[str, str]) -> PlanningQuestion:
    planned = {item.name for item in found.request.target_workloads}
    return found._replace(issues=tuple(keeper_issues(elsewhere, planned, found.left_out)))


async def _request_in_force(
    optimizer: AuthorizedOptimizer, partial: PartialRequest, kept: Sequence[Object]
) -> RequestInForce | RequestProblem | None:
    named = (obj for obj in kept if name_of(obj) == partial.optimization)
    spec = next(map(read_spec, named), None)
    if isinstance(spec, PlacementOptimizationSpec):
        counting = spec.open_schedule(optimizer.service.now()) or spec
        scores = {"preference": counting.preference, "objectives": counting.objectives}
        return RequestInForce(None, spec.model_copy(update=scores))
    found = await recorded_plans(optimizer, partial.namespace)
    records = () if isinstance(found, Issue | RequestProblem) else found
    found_in = requests_in_force(records, partial.optimization)
    return await asyncio.to_thread(next, found_in, None)


def _planning_rights(request: OptimizeRequest, *, to_apply: bool) -> Rights:
    rights = planning_rights(request.namespace)
    return rights + writing_rights(request.namespace) if to_apply else rights


@operation(
    rights=_planning_rights,
    write=lambda request, to_apply: WriteAttempt("apply", request.namespace) if to_apply else None,
    audited="refusal",
)
async def make_plan(
    optimizer: AuthorizedOptimizer,
    request: OptimizeRequest,
    *,
    to_apply: bool = False,
    pretended: PretendedObjects | None = None,
) -> Plan | RequestProblem:
    """Make a plan; a caller that may not apply it is refused before it is made.

    `pretended`: what the hub is pretended to have; such a plan must not be applied.
    """
    named = await optimizer.may_name_others()
    return await optimizer.service.plan(
        request,
        name_others=named,
        pretended=pretended,
        report=optimizer.caller.was_found,
        to_apply=to_apply,
    )


@operation(
    rights=None,
    route=Route(
        "POST",
        "/optimize",
        "Find the best placement and apply it",
        (404, 409, 422),
        examples=OPTIMIZE_EXAMPLES,
    ),
)
async def optimize(
    optimizer: AuthorizedOptimizer,
    request: OptimizeRequest,
    dry_run: Annotated[
        bool, Field(description="Only plan, write nothing; the same as dryRun in the body.")
    ] = False,
    expected_digest: Annotated[
        str,
        Field(
            max_length=64,
            pattern="^[0-9a-f]*$",
            description="Digest of a dry run of the same request: apply exactly that plan, or"
            " nothing (409 PlanChanged, 409 StalePlan).",
        ),
    ] = "",
) -> OptimizeResult | RequestProblem:
    """Choose at most one policy per cluster and a place for each workload.

    Generated objects of the optimization that the plan does not need are deleted; those of
    other optimizations stay. A plan without any placed workload changes nothing. If the hub
    refuses a write, the response names it: it is 403 if a right is missing, else 503. The other
    writes stay; the same request repeats only those that are missing. If the caller disconnects
    before the first write, planning stops and nothing is written. With `expected_digest`, the
    plan of that dry run is applied if it was made for this caller, by this process, in the last
    15 minutes; else the plan is made again, and applied if its digest is the same.
    """
    only_shown = dry_run or request.dry_run
    done = await shown_or_applied(
        optimizer,
        lambda: make_plan(optimizer, request, to_apply=not only_shown),
        lambda plan: not plan.rollback and _same(plan.request, request),
        dry_run=only_shown,
        expected=expected_digest,
    )
    return done if isinstance(done, RequestProblem) else result(*done)


@operation(
    rights=None,
    route=Route(
        "POST",
        "/plan",
        "Plan from few words, and write nothing",
        (404, 409, 422),
        examples=PLAN_EXAMPLES,
        progress=True,
    ),
)
async def plan(optimizer: AuthorizedOptimizer, request: PlanRequest) -> PlanResult | RequestProblem:
    """Complete a request from the fleet, plan it, and return both. It never writes.

    Candidate policies are those that name the cluster, or none; scores of which lower values
    are better are inverted. Solving stops at a gap of 0.001, or of the server if that is larger;
    a `gap` of 0 in `request` asks for the proof. A name that is unknown or not clear is 422 with
    near names.
    """
    wait = optimizer.caller.wait
    asked = await wait(question(optimizer, request.partial))
    if isinstance(asked, RequestProblem):
        return asked
    made = await wait(plan_question(optimizer, request.partial, asked))
    if isinstance(made, RequestProblem):
        return made
    if asked.pretended is None:
        optimizer.shown.add(optimizer.owner, made)
    return PlanResult(
        **dict(result(made, None)),
        request=None if asked.pretended else recorded_request(made),
        objective_from=asked.objective,
    )


async def plan_question(
    optimizer: AuthorizedOptimizer, partial: PartialRequest, asked: PlanningQuestion
) -> Plan | RequestProblem:
    """Make the plan of a question; a refusal names the fields of the question."""
    made = await make_plan(optimizer, asked.request, pretended=asked.pretended)
    if isinstance(made, RequestProblem):
        return of_question(made, partial)
    return replace(made, issues=(*asked.issues, *made.issues))


@operation(rights=None)
async def planned_again(
    optimizer: AuthorizedOptimizer, record: PlanRecord
) -> Plan | RequestProblem:
    """Make the plan that the request of a recorded one gives now; it is not kept as shown."""
    request = dry_request({**record.request, "rollout": "AllAtOnce"})
    return request if isinstance(request, RequestProblem) else await make_plan(optimizer, request)


def _same(one: OptimizeRequest, other: OptimizeRequest) -> bool:
    """Return whether two requests ask for the same, apart from dryRun."""
    return one.model_copy(update={"dry_run": other.dry_run}) == other
