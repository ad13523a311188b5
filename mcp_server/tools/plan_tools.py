"""Tools that plan: what would be best, why, and what other objectives would give."""

import asyncio
from collections.abc import Mapping

from fastmcp.tools.base import ToolResult

from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, quoted
from mcp_server.results import plan_results
from mcp_server.results.history_results import (
    generated_objects,
    history_text,
    history_view,
    meant_plan,
    now_text,
    objects_text,
    objects_view,
)
from mcp_server.results.plan_results import POINTS_SHOWN, ComparisonView, compared_plan, plan_view
from mcp_server.results.tool_result import bounded
from mcp_server.tools.arguments import (
    Clusters,
    Digest,
    Digests,
    Namespace,
    Objective,
    Objectives,
    Optimization,
    OtherCluster,
    PastPlan,
    PlannedNamespace,
    Prove,
    Question,
    Request,
    SameQuestion,
    ShownObjects,
    Workload,
    Workloads,
)
from mcp_server.tools.hub_calls import (
    CallerRights,
    answer,
    asked,
    granted,
    recorded_plans,
    refused,
    with_progress,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.name_search import find_name
from optimizer.follow.overview.placement_answer import (
    PlacementAnswer,
    explained_request,
    placement_answer,
    request_in_force,
)
from optimizer.follow.overview.plan_request import PartialRequest, read_objective
from optimizer.follow.overview.what_if import PretendedObjects, WhatIf
from optimizer.operations.access.shown_plans import APPROVAL_SECONDS
from optimizer.operations.fleet import GENERATED_KINDS, fleet_facts, named_objects
from optimizer.operations.planning import make_plan, planned_again, question
from optimizer.operations.recorded_plans import list_plans, show_plan
from optimizer.plan.plan import Plan
from optimizer.wire.explanation import ParetoPoint
from optimizer.wire.plan_record import PlanRecord
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem

FIX_SECONDS = 10.0
"""How long the cheapest change is looked for that places a workload whose record says why not."""

NO_FIX_IN_TIME = (
    f"no change that gives it a place was found in {FIX_SECONDS:g} s; `dsf why` looks on"
)

MAX_PARETO_SCORES = 3
"""Scores of one Pareto set; POST /optimize takes no more."""


class PlanTools:
    """The tools that plan; they write nothing."""

    def __init__(self, caller: CallerRights, *, read_only: bool) -> None:
        self._caller = caller
        self._read_only = read_only

    async def plan_placement(
        self,
        objective: Objective = "",
        namespace: PlannedNamespace = "",
        clusters: Clusters = (),
        workloads: Workloads = (),
        request: Request = {},  # noqa: B006 - never changed
        objects: bool = False,
        *,
        what_if: Question,
    ) -> ToolResult:
        """Plan which policy each cluster enforces and where each workload runs; write nothing.

        Answers what-if too. Returns moves by workload and the digest that apply_plan takes.
        """
        weights = granted(read_objective(objective))
        partial = PartialRequest(weights, clusters, workloads, what_if, request, namespace)
        meant = await asked(question(self._caller(), partial))
        plan = await self._plan(meant.request, meant.pretended)
        view = plan_view(
            plan, applicable=meant.pretended is None, objects=objects, objective=meant.objective
        )
        text = plan_results.plan_text(plan, view, read_only=self._read_only)
        return answer(text, view)

    async def explain_placement(
        self,
        workload: Workload,
        cluster: OtherCluster = "",
        digest: Digest = "",
        objective: Objective = "",
        namespace: Namespace = "default",
    ) -> ToolResult:
        """Say why a workload is placed where it is, or why not on another cluster.

        Explains the plan of the digest, else one for the objective, else the plan in force.
        """
        if digest and objective:
            raise refused("objective: the plan of the digest has its own; say one of them")
        facts = await self._facts(namespace)
        base = await self._request_to_explain(facts, digest, objective, workload)
        names = [item.name for item in base.target_workloads]
        name = granted(find_name(workload, names, field="workload", what="workload"))
        where = cluster and granted(
            find_name(cluster, facts.hub.clusters, field="cluster", what="managed cluster")
        )
        told = None if cluster or digest or objective else facts.left_out.get(name)
        record = f"plan {UntrustedName(told.plan)} says why: {told.message}" if told else ""
        what = quoted(record, MESSAGE_LIMIT) if told else "Planning"
        work = make_plan(self._caller(), explained_request(base, name, where))
        try:
            async with asyncio.timeout(FIX_SECONDS if told else None):
                # Not kept as shown: an explanation tells nothing of the other workloads.
                plan = await asked(with_progress(work, self._caller(), what))
            view = placement_answer(plan, name, where)
        except TimeoutError:
            view = PlacementAnswer(answer=NO_FIX_IN_TIME, workload=name)
        view = view.model_copy(update={"message": record})
        return answer(plan_results.explanation_text(view), view)

    async def compare_plans(
        self,
        objectives: Objectives = (),
        digests: Digests = (),
        trade_offs: bool = False,
        namespace: Namespace = "default",
        *,
        what_if: SameQuestion,
    ) -> ToolResult:
        """Compare plans: one for each objective, or those of digests.

        Other scores are summed too. trade_offs adds the Pareto set of up to three scores.
        """
        if not objectives and (trade_offs or what_if != WhatIf()):
            raise refused("trade_offs and what_if are about plans for objectives; name objectives")
        shown = map(self.shown_plan, digests)
        plans = {plan.digest: plan for plan in shown}
        points, complete, made = tuple[ParetoPoint, ...](), None, list[Plan]()
        if objectives:
            facts = await self._facts(namespace)
            wanted = {said: granted(read_objective(said)) for said in objectives}
            scores = dict.fromkeys(name for weights in wanted.values() for name in weights)
            for said, weights in wanted.items():
                summed = {name: 0.0 for name in scores if name not in weights}
                plans[said] = await self._compared(facts, {**weights, **summed}, what_if)
            if trade_offs:
                plan = await self._compared(
                    facts, dict.fromkeys([*scores][:MAX_PARETO_SCORES], 1.0), what_if, pareto=True
                )
                made.append(plan)
                found = plan.explanation.pareto if plan.explanation else None
                points = found.points if found else ()
                complete = found.complete if found else None
        if not plans:
            raise refused("name objectives or digests; list_scores describes the scores")
        view = ComparisonView(
            plans=tuple(compared_plan(name, plan) for name, plan in plans.items()),
            trade_offs=points,
            complete=complete,
        )
        view = bounded(view, trade_offs=POINTS_SHOWN)
        applicable = {plan.digest for plan in plans.values()} <= self._applicable()
        failures = dict.fromkeys(
            text for plan in (*plans.values(), *made) for text in plan.failures
        )
        text = plan_results.comparison_text(view, applicable=applicable, failures=tuple(failures))
        return answer(text, view)

    async def plan_history(
        self,
        plan: PastPlan = "",
        prove: Prove = False,
        objects: ShownObjects = "",
        namespace: Namespace = "default",
        optimization: Optimization = "default",
    ) -> ToolResult:
        """Say who asked for an applied plan, for what, how proven it was, and what it changed."""
        caller = self._caller()
        words = objects.strip()
        if words and words != "plan":
            found = await asked(named_objects(caller, words, namespace))
            return answer(objects_text(found), objects_view(found), brief=True)
        plans = (await asked(list_plans(caller, namespace))).items
        meant = granted(meant_plan(plan, namespace, optimization, plans))
        record = await asked(show_plan(caller, meant.digest, namespace))
        if words:
            there = await asked(named_objects(caller, "", namespace, GENERATED_KINDS))
            shown, text = generated_objects(record, there)
            return answer(text, objects_view(shown), brief=True)
        text = history_text(plans, record)
        if record.intact and record.phase == "Applied":
            made = await self._planned_again(record) if prove else None
            text += f"\n{now_text(made)}"
        return answer(text, history_view(plans, record), brief=True)

    async def _planned_again(self, record: PlanRecord) -> Plan | RequestProblem:
        caller = self._caller()

        async def work() -> tuple[Plan | RequestProblem]:
            return (await planned_again(caller, record),)  # a refusal is an answer here

        return (await asked(with_progress(work(), caller)))[0]

    def was_shown(self, digest: str) -> bool:
        """Return whether a plan with this digest was shown to the caller, and not applied since."""
        caller = self._caller()
        shown, owner = caller.shown, caller.owner
        return shown.get(owner, shown.in_full(owner, digest)) is not None

    def shown_plan(self, digest: str) -> Plan:
        """Return a plan that was shown to the caller; ToolError if none has the digest."""
        caller = self._caller()
        shown, owner = caller.shown, caller.owner
        digest = shown.in_full(owner, digest)
        plan = shown.get(owner, digest)
        if shown.is_expired(owner, digest):
            raise refused(
                f"the plan {UntrustedName(digest)} was shown over {APPROVAL_SECONDS / 60:g} minutes"
                " ago, so its approval has expired; call plan_placement again and show the plan"
            )
        if plan is None:
            raise refused(
                f"no plan with digest {UntrustedName(digest)}: this server did not make it for you,"
                " it is too old, or it was applied already; call plan_placement again"
            )
        return plan

    def _applicable(self) -> set[str]:
        """Return the digests that apply_plan takes from the caller; none if it does not exist."""
        caller = self._caller()
        return set() if self._read_only else {*caller.shown.digests(caller.owner)}

    async def _compared(
        self,
        facts: FleetFacts,
        weights: Mapping[str, float],
        what_if: WhatIf,
        *,
        pareto: bool = False,
    ) -> Plan:
        partial = PartialRequest(weights, what_if=what_if, namespace=facts.namespace)
        made, pretended, _ = await asked(question(self._caller(), partial, facts))
        if not pareto:
            return await self._plan(made, pretended)
        if len(made.scored) > 1:
            made = made.model_copy(update={"pareto": tuple(item.key for item in made.scored)})
        # Not kept as shown: only its Pareto set is.
        return await asked(make_plan(self._caller(), made, pretended=pretended))

    async def _plan(
        self, request: OptimizeRequest, pretended: PretendedObjects | None = None
    ) -> Plan:
        """Make a plan and remember that its owner was shown it, unless it can't be applied."""
        caller = self._caller()
        plan = await asked(with_progress(make_plan(caller, request, pretended=pretended), caller))
        if pretended is None:
            caller.shown.add(caller.owner, plan)
        return plan

    async def _request_to_explain(
        self, facts: FleetFacts, digest: str, objective: str, workload: str
    ) -> OptimizeRequest:
        if digest:
            return self.shown_plan(digest).request
        if not objective:
            records = await asked(recorded_plans(self._caller(), facts.namespace))
            found = await asyncio.to_thread(request_in_force, records, workload)
            if found is not None:
                return granted(found)
        partial = PartialRequest(granted(read_objective(objective)), namespace=facts.namespace)
        return (await asked(question(self._caller(), partial, facts))).request

    async def _facts(self, namespace: str) -> FleetFacts:
        return await asked(fleet_facts(self._caller(), namespace))
