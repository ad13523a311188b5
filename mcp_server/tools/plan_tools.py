"""Tools that plan: what would be best, why, and what other objectives would give."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from fastmcp.tools.base import ToolResult

from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, quoted
from mcp_server.results import plan_results
from mcp_server.results.history_results import (
    HISTORY_SHOWN,
    HistoryView,
    generated_objects,
    history_text,
    history_view,
    meant_plan,
    not_applied_text,
    not_applied_view,
    now_text,
    objects_text,
    objects_view,
    planned_yaml,
)
from mcp_server.results.plan_results import ComparisonView, compared_plan, plan_view
from mcp_server.results.tool_result import ANSWER_CHARACTERS, LEAST_CHARACTERS
from mcp_server.tools.arguments import (
    AsYaml,
    Clusters,
    Digest,
    Digests,
    MeantOptimization,
    Namespace,
    Objective,
    Objectives,
    Offset,
    OtherCluster,
    PastPlan,
    PlainOptimization,
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
    answered,
    asked,
    granted,
    paged,
    recorded_plans,
    recorded_rollouts,
    refused,
    with_progress,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import KEEPER_REASONS
from optimizer.follow.overview.name_search import find_name
from optimizer.follow.overview.placement_answer import (
    PlacementAnswer,
    explained_request,
    outside_answer,
    placement_answer,
    request_in_force,
)
from optimizer.follow.overview.plan_request import PartialRequest, read_objective
from optimizer.follow.overview.question_completion import PlanningQuestion
from optimizer.follow.overview.what_if import WhatIf
from optimizer.follow.record.plan_history import history_of, in_force_text
from optimizer.follow.record.plan_views import DIGEST_SHOWN
from optimizer.operations.access.shown_plans import APPROVAL_SECONDS, SHORTEST_DIGEST, ShownPlans
from optimizer.operations.fleet import (
    GENERATED_KINDS,
    fleet_facts,
    named_objects,
    namespaces_with_workloads,
    with_namespaces,
)
from optimizer.operations.kept_placements import list_optimizations
from optimizer.operations.planning import make_plan, plan_question, planned_again, question
from optimizer.operations.recorded_plans import list_plans, show_plan
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import inversions
from optimizer.wire.explanation import ParetoPoint
from optimizer.wire.plan_record import PlanRecord
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem

FIX_SECONDS = 10.0
"""How long the cheapest change is looked for that places a workload whose record says why not."""

NO_FIX_IN_TIME = (
    f"no change that gives it a place was found in {FIX_SECONDS:g} s; `dsf why` looks on"
)

HEADS_OF_YAML = 600
"""Characters of the lines before and after a plan's YAML."""

MAX_PARETO_SCORES = 3
"""Scores of one Pareto set; POST /optimize takes no more."""


class PlanTools:
    """The tools that plan; they write nothing."""

    def __init__(self, caller: CallerRights, *, read_only: bool) -> None:
        self._caller = caller
        self._read_only = read_only
        self._pretended = ShownPlans()

    async def plan_placement(
        self,
        objective: Objective = "",
        namespace: PlannedNamespace = "",
        clusters: Clusters = (),
        workloads: Workloads = (),
        request: Request = {},  # noqa: B006 - never changed
        objects: AsYaml = False,
        *,
        what_if: Question,
    ) -> ToolResult:
        """Plan which policy each cluster enforces and where each workload runs; write nothing.

        Answers what-if too. Returns moves by workload and the digest that apply_plan takes.
        """
        weights = granted(read_objective(objective))
        partial = PartialRequest(weights, clusters, workloads, what_if, request, namespace)
        meant = await asked(question(self._caller(), partial))
        plan = await self._plan(partial, meant)
        view = plan_view(
            plan, applicable=meant.pretended is None, objects=objects, objective=meant.objective
        )
        text = plan_results.plan_text(plan, view, read_only=self._read_only)
        if objects:
            room = ANSWER_CHARACTERS - LEAST_CHARACTERS - len(text) - HEADS_OF_YAML
            text += f"\n{planned_yaml(plan, most=max(room, LEAST_CHARACTERS))}"
        return answer(text, view)

    async def explain_placement(
        self,
        workload: Workload,
        cluster: OtherCluster = "",
        digest: Digest = "",
        objective: Objective = "",
        namespace: Namespace = "default",
        optimization: PlainOptimization = None,
    ) -> ToolResult:
        """Say why a workload is placed where it is, or why not on another cluster.

        Explains the plan of the digest, else one for the objective, else the plan in force.
        """
        if digest and (objective or optimization):
            said = "objective" if objective else "optimization"
            raise refused(f"{said}: the plan of the digest has its own; say one of them")
        facts = await self._facts(namespace)
        base, whose = await self._request_to_explain(
            facts, digest, objective, workload, optimization
        )
        names = [item.name for item in base.target_workloads]
        name = await self._meant_workload(workload, names, namespace)
        where = cluster and granted(
            find_name(cluster, facts.hub.clusters, field="cluster", what="managed cluster")
        )
        if outside := outside_answer(facts, base, name, where, whose):
            text = plan_results.explanation_text(
                outside, outside=where, clusters=base.cluster_names
            )
            return answer(text, outside)
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
        optimization: PlainOptimization = None,
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
                asks = _asked_of(facts, {**weights, **summed}, optimization, what_if)
                plans[said] = await self._compared(facts, asks)
            if trade_offs:
                equal = dict.fromkeys([*scores][:MAX_PARETO_SCORES], 1.0)
                asks = _asked_of(facts, equal, optimization, what_if)
                plan = await self._compared(facts, asks, pareto=True)
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
        applicable = {plan.digest for plan in plans.values()} <= self._applicable()
        changing = any(plan.changes for plan in plans.values())
        failures = dict.fromkeys(
            text for plan in (*plans.values(), *made) for text in plan.failures
        )
        kept = dict.fromkeys(
            item.message
            for plan in plans.values()
            for item in plan.issues
            if item.reason in KEEPER_REASONS
        )
        ends = dict.fromkeys(said for plan in plans.values() for said in inversions(plan.request))
        text = plan_results.comparison_text(
            view,
            applicable=applicable and changing,
            failures=(*failures, *kept),
            inverted=tuple(ends),
            known=plan_results.trade_offs_known(made[0]) if made else "",
        )
        return answer(text, view)

    async def plan_history(
        self,
        plan: PastPlan = "",
        prove: Prove = False,
        objects: ShownObjects = "",
        namespace: Namespace = "default",
        optimization: MeantOptimization = None,
        *,
        offset: Offset,
    ) -> ToolResult:
        """Say who asked for an applied plan, for what, how proven it was, and what it changed."""
        caller = self._caller()
        words = objects.strip()
        if words and prove:
            raise refused("prove: objects are shown alone; ask for the proof without objects")
        if words and words != "plan":
            found = await asked(named_objects(caller, words, namespace))
            return answer(objects_text(found, offset), objects_view(found), brief=True)
        plans = (await asked(list_plans(caller, namespace))).items
        elsewhere = () if plans else await answered(namespaces_with_workloads(caller))
        meant = meant_plan(plan, namespace, optimization, plans, elsewhere)
        if isinstance(meant, RequestProblem) and (made := self._made_plan(plan)):
            if words:
                text = planned_yaml(made, offset)
                return answer(text, not_applied_view(made), brief=True)
            listed = partial(not_applied_text, plan=made)
            return paged(listed, not_applied_view(made), HISTORY_SHOWN, offset)
        if isinstance(meant, RequestProblem):
            await self._refuse_a_waiting(plan, namespace, optimization)
        record = await asked(show_plan(caller, granted(meant).digest, namespace))
        if words:
            there = await asked(named_objects(caller, "", namespace, GENERATED_KINDS))
            shown, text = generated_objects(record, there, offset)
            return answer(text, objects_view(shown), brief=True)
        head = now = ""
        if not (plan or offset):
            head = await self._of_a_newer_plan(record, namespace)
        if record.intact and record.phase == "Applied" and not offset:
            again = await self._planned_again(record) if prove else None
            now = f"\n{now_text(again, record.gap)}"

        def told(page: HistoryView) -> str:
            return head + history_text(page, plans, record, offset) + now

        return paged(told, history_view(plans, record), HISTORY_SHOWN, offset)

    def _made_plan(self, digest: str) -> Plan | None:
        """Return a plan that was made for the caller, also one that can't be applied."""
        caller = self._caller()
        for made in (caller.shown, self._pretended):
            if plan := made.get(caller.owner, made.in_full(caller.owner, digest)):
                return plan
        return None

    async def _of_a_newer_plan(self, told: PlanRecord, namespace: str) -> str:
        """Return which plan is in force and what became of the newest, unless that is told."""
        caller = self._caller()
        history = history_of(await asked(recorded_plans(caller, namespace)), told.optimization)
        if not history or history[0].name == told.name:
            return ""
        rollouts = await asked(recorded_rollouts(caller, namespace))
        coming = next((item for item in rollouts if item.record == history[0].name), None)
        return f"In force: {quoted(in_force_text(history, coming), MESSAGE_LIMIT)}.\n"

    async def _planned_again(self, record: PlanRecord) -> Plan | RequestProblem:
        caller = self._caller()
        return await answered(with_progress(planned_again(caller, record), caller))

    async def _refuse_a_waiting(self, said: str, namespace: str, optimization: str | None) -> None:
        """Raise ToolError if a plan that is meant waits for an approval, so that no record has it.

        An empty text means that of the optimization, or without one any.
        """
        kept = await answered(list_optimizations(self._caller(), namespace))
        for item in () if isinstance(kept, RequestProblem) else kept.items:
            named = said or item.waiting if optimization in (None, item.name) else said
            if len(named) >= SHORTEST_DIGEST and item.waiting.startswith(named):
                name = UntrustedName(item.name)
                raise refused(
                    f"plan {UntrustedName(item.waiting)} of {name} waits for an approval, so it is"
                    f" in no record yet: kept_placements with name {name} lists its moves"
                )

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
        self, facts: FleetFacts, partial: PartialRequest, *, pareto: bool = False
    ) -> Plan:
        meant = await self._meant(facts, partial)
        if not pareto:
            return await self._plan(partial, meant)
        made = meant.request
        if len(made.scored) > 1:
            made = made.model_copy(update={"pareto": tuple(item.key for item in made.scored)})
        # Not kept as shown: only its Pareto set is.
        return await asked(make_plan(self._caller(), made, pretended=meant.pretended))

    async def _meant(
        self, facts: FleetFacts, partial: PartialRequest, *, explains: bool = False
    ) -> PlanningQuestion:
        """Return what a tool asks that has optimization as an argument, and no request."""
        found = await answered(question(self._caller(), partial, facts, explains=explains))
        if isinstance(found, RequestProblem):
            errors = (replace(i, field=i.field.removeprefix("request.")) for i in found.errors)
            return granted(replace(found, errors=tuple(errors)))
        return found

    async def _plan(self, partial: PartialRequest, meant: PlanningQuestion) -> Plan:
        """Make a plan and remember that its owner was shown it, unless it can't be applied."""
        caller = self._caller()
        plan = await asked(with_progress(plan_question(caller, partial, meant), caller))
        made = caller.shown if meant.pretended is None else self._pretended
        made.add(caller.owner, plan)
        return plan

    async def _request_to_explain(
        self,
        facts: FleetFacts,
        digest: str,
        objective: str,
        workload: str,
        optimization: str | None,
    ) -> tuple[OptimizeRequest, str]:
        """Return the request whose plan is explained, and whose it is in words."""
        if digest:
            plan = self.shown_plan(digest)
            return plan.request, f"plan {UntrustedName(plan.digest[:DIGEST_SHOWN])}"
        if not objective:
            records = await asked(recorded_plans(self._caller(), facts.namespace))
            of = optimization or ""
            found = await asyncio.to_thread(request_in_force, records, workload, of)
            if found is not None:
                return (taken := granted(found)).request, taken.whose
        await self._meant_workload(workload, facts.workloads, facts.namespace)
        asks = _asked_of(facts, granted(read_objective(objective)), optimization)
        return (await self._meant(facts, asks, explains=True)).request, "this question"

    async def _meant_workload(self, said: str, names: Iterable[str], namespace: str) -> str:
        found = find_name(said, names, field="workload", what="workload")
        return await asked(with_namespaces(self._caller(), found, (said,), namespace))

    async def _facts(self, namespace: str) -> FleetFacts:
        return await asked(fleet_facts(self._caller(), namespace))


def _asked_of(
    facts: FleetFacts,
    weights: Mapping[str, float],
    optimization: str | None,
    what_if: WhatIf | None = None,
) -> PartialRequest:
    further = {"optimization": optimization} if optimization else {}
    return PartialRequest(
        weights, what_if=what_if or WhatIf(), further=further, namespace=facts.namespace
    )
