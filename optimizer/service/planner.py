"""Makes plans: observe, read, generate candidates, formulate, solve, explain, plan."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import Any

from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, Kind
from dsf.kube.port import Lister, ObjectList
from dsf.runtime.lru_cache import LruCache
from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.domain.fleet import Fleet
from optimizer.domain.settings import ANSWER_GAP, OptimizerSettings
from optimizer.domain.solution import Solution
from optimizer.explain.case import Case, case_of
from optimizer.explain.explanation_process import Explained, explain
from optimizer.follow.overview.what_if import PretendedObjects, ScoreChange
from optimizer.follow.record.rollback import RestoredPlan, with_recorded_policies
from optimizer.follow.record.rollback_check import not_allowed, restored_solution
from optimizer.follow.rollout.rollout_steps import rollout_plan
from optimizer.keep.plan_restraint import PlanRestraint
from optimizer.keep.restraint import with_policy_margins
from optimizer.model.formulate import formulate, too_large, too_many_scores
from optimizer.model.problem import Problem
from optimizer.plan.objects_reading import FleetReading, ObjectsReading, objects_reading
from optimizer.plan.plan import Plan, plan
from optimizer.plan.pretended_plan import told_plan
from optimizer.plan.workload_moves import uncovered_by_steps
from optimizer.service.hub.score_pages import score_names, score_pages
from optimizer.service.observe import observe, retry_when_gone
from optimizer.snapshot.fleet_reader import FleetReader
from optimizer.snapshot.fleet_snapshot import FleetSnapshot
from optimizer.snapshot.ineffective_input import unknown_names
from optimizer.snapshot.observation import Observation, kept_objects, own_decisions
from optimizer.snapshot.requested_gpus import mig_rules
from optimizer.snapshot.scores.score_meanings import absent_quantiles, maximised_by_mistake
from optimizer.solve.solver_process import Solve, ignored, solve
from optimizer.solve.supervised_process import start_fork_server
from optimizer.solve.warm_start import SolvedProblem, kept_for_next
from optimizer.wire.plan_record import RolloutPace, RolloutPlan
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import FieldProblem, RequestProblem, invalid_request
from optimizer.wire.result import Unplaced


class HypotheticalHub:
    """Lists what another hub lists, with the pretended changes.

    Each page is changed by itself, so a page may have more objects than its limit.
    """

    def __init__(self, kube: Lister, pretended: PretendedObjects) -> None:
        self._kube = kube
        self._pretended = pretended
        self._effective = set[ScoreChange]()

    def changes_without_effect(self) -> RequestProblem | None:
        """Return the problem of score changes that no entry that was listed has; None: of none."""
        messages = self._pretended.without_effect(self._effective)
        problems = tuple(FieldProblem("what_if.scores", message) for message in messages)
        return invalid_request(problems) if problems else None

    def told(self, made: Plan, fleet: Fleet) -> Plan:
        """Return the plan with what pretended objects lack, and which of them change nothing."""
        new = self._pretended
        return told_plan(made, new.unscored, new.policies, fleet)

    async def list(self, kind: Kind, namespace: str | None = None, **asked: Any) -> ObjectList:
        """Return a page of the objects that the question pretends."""
        page = await self._kube.list(kind, namespace, **asked)
        if kind == ADD_ON_PLACEMENT_SCORE:
            self._effective.update(self._pretended.effective(page.items))
        items = tuple(self._pretended.seen(kind, page.items))
        if not page.continue_token:
            items += tuple(self._pretended.besides(kind, namespace))
        return ObjectList(items, page.resource_version, page.continue_token, page.remaining)


def pretended_hub(kube: Lister, pretended: PretendedObjects | None) -> Lister:
    """Return a hub, or what lists it as a question pretends it."""
    return HypotheticalHub(kube, pretended) if pretended else kube


SolvedProblems = LruCache[tuple[str, str], SolvedProblem]
"""The last problem and solution of each optimization, by its namespace and name."""

MAX_SOLVED = 16
"""Optimizations of which they are kept: up to 600,000 assignments each, which take 1.2 MB where
scores are whole numbers, and about 2 KB for each workload and policy."""


def no_solved_problems() -> SolvedProblems:
    """Return an empty memory of solved problems."""
    return SolvedProblems(MAX_SOLVED)


class Planner:
    """Makes plans for one hub; writes nothing.

    All calls raise KubeError where the hub can't be read. `now` returns an aware datetime.
    `name_others` says whether a plan names what other namespaces have; it counts in any case.
    `solve` solves the problems, by default in a process of its own. `solved`: where each solve
    starts from the last one of its optimization.
    """

    def __init__(
        self,
        kube: Lister,
        settings: OptimizerSettings,
        *,
        now: Callable[[], datetime],
        solve: Solve = solve,
        solved: SolvedProblems | None = None,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._now = now
        self._solver = solve
        self._solved = no_solved_problems() if solved is None else solved

    async def plan(
        self,
        request: OptimizeRequest,
        *,
        name_others: bool,
        report: Callable[[Solution], None] = ignored,
    ) -> Plan | RequestProblem:
        """Observe, read, generate candidates, formulate, solve, plan, explain.

        `report` is called in another thread with each better decision that the solver finds.
        """
        found = await self.read(request, name_others=name_others)
        if isinstance(found, RequestProblem):
            return found
        formulated = await self._formulate(found.snapshot, request)
        if isinstance(formulated, RequestProblem):
            return formulated
        fleet, problem = formulated
        solution = await self._solve(problem, request, report)
        made = await self._planned(found, fleet, problem, solution)
        pretended = self._kube if isinstance(self._kube, HypotheticalHub) else None
        if isinstance(made, Plan) and pretended:
            made = pretended.changes_without_effect() or made
        if isinstance(made, RequestProblem):
            return made
        if request.explained:
            case = case_of(request, fleet, problem, solution, found.snapshot)
            explanation, failure = await self._explain(case)
            made = replace(made, explanation=explanation, explanation_failure=failure)
        return pretended.told(made, fleet) if pretended else made

    async def read(
        self, request: OptimizeRequest, *, name_others: bool, last: FleetReading | None = None
    ) -> FleetReading | RequestProblem:
        """Observe, and read the fleet of a request; of `last` what reads the same now is taken."""
        if self._solver is solve:
            start_fork_server()
        observation = await observe(self._kube, request.namespace, self._now(), named=name_others)
        mistaken = maximised_by_mistake(observation, request)
        if mistaken := mistaken or absent_quantiles(observation, request):
            return mistaken
        return await retry_when_gone(lambda: self._read(observation, request, last))

    async def plan_restrained(
        self, found: FleetReading, restraint: PlanRestraint
    ) -> Plan | RequestProblem:
        """Plan a fleet that was read, again and again as far as a restraint takes the plan."""
        fleet = await asyncio.to_thread(restraint.restrained, found.snapshot.fleet)
        formulated = await self._formulate(replace(found.snapshot, fleet=fleet), found.request)
        if isinstance(formulated, RequestProblem):
            return formulated
        rest: Fleet | None = formulated[0]
        while rest is not None:
            last, fleet = rest, with_policy_margins(rest)
            problem = await asyncio.to_thread(formulate, fleet)
            solution = await self._solve(problem, found.request, ignored)
            rest = await asyncio.to_thread(restraint.rest_of, last, problem, solution.decision)
        free = restraint.without_margins(last)
        if free is not None:
            await self._offer(free, found.request, restraint)
        return await self._planned(found, fleet, problem, solution)

    async def _offer(self, free: Fleet, request: OptimizeRequest, restraint: PlanRestraint) -> None:
        """Tell a restraint what is on offer: near the best is enough, because nobody takes it."""
        gap = max(request.gap or self._settings.gap, ANSWER_GAP)
        problem = await asyncio.to_thread(formulate, free)
        asked = request.model_copy(update={"gap": gap})
        solution = await self._solve(problem, asked, ignored, remember=False)
        await asyncio.to_thread(restraint.offered, free, problem, solution.decision)

    async def restore(self, restored: RestoredPlan, *, name_others: bool) -> Plan | RequestProblem:
        """Observe, read, formulate, check the recorded decision, plan."""
        namespace = restored.request.namespace
        observation = await observe(self._kube, namespace, self._now(), named=name_others)
        restored = restored.on(observation)
        request = restored.request
        if unknown := unknown_names(observation, request, request.score_names):
            return not_allowed(restored, unknown.errors)
        objects = await self._read_objects(observation, request)
        reader = await retry_when_gone(lambda: self._read_scores(objects, restored.lenient_request))
        if isinstance(reader, RequestProblem):
            return reader
        read = with_recorded_policies(reader.snapshot(), restored.content)
        formulated = await self._formulate(read, request)
        if isinstance(formulated, RequestProblem):
            return formulated
        solution = await asyncio.to_thread(restored_solution, restored, *formulated)
        if isinstance(solution, RequestProblem):
            return solution
        found = FleetReading(observation, request, objects, reader, read)
        return await self._planned(found, *formulated, solution, restored.content.unplaced)

    async def _formulate(
        self, read: FleetSnapshot, request: OptimizeRequest
    ) -> tuple[Fleet, Problem] | RequestProblem:
        """Generate candidates, and formulate the problem unless it is too large."""
        fleet = await asyncio.to_thread(
            with_candidates, read.fleet, read.pools, mig_rules(request), read.enforced
        )
        refused = too_large(fleet, self._settings.max_places)
        return refused or (fleet, await asyncio.to_thread(formulate, fleet))

    async def _planned(
        self,
        found: FleetReading,
        fleet: Fleet,
        problem: Problem,
        solution: Solution,
        recorded: Iterable[Unplaced] = (),
    ) -> Plan | RequestProblem:
        observation, request, read = found.observation, found.request, found.snapshot
        made = await asyncio.to_thread(
            lambda: plan(
                observation,
                request,
                basis=found.objects.basis,
                fleet=fleet,
                problem=problem,
                solution=solution,
                settings=self._settings,
                recorded=recorded,
            )
        )
        if isinstance(made, RequestProblem):
            return made
        made = replace(made, score_versions=read.score_versions, oldest_score=read.oldest_score)
        if request.rollout == "AllAtOnce" or not made.changes:
            return made
        steps = await self._steps(made, observation, fleet, problem)
        if isinstance(steps, RequestProblem):
            return steps
        return replace(made, rollout=steps, moves=uncovered_by_steps(made.moves, steps.actions))

    async def _steps(
        self, made: Plan, observation: Observation, fleet: Fleet, problem: Problem
    ) -> RolloutPlan | RequestProblem:
        """Return the steps of a plan; ordering them may take as long as solving."""
        until = monotonic() + self._settings.time_limit_seconds
        pace = RolloutPace(
            progress_deadline_seconds=made.request.progress_deadline_seconds,
            min_ready_seconds=made.request.min_ready_seconds,
        )
        return await asyncio.to_thread(
            rollout_plan,
            observation,
            fleet,
            problem,
            made.solution.decision,
            made.manifests,
            kept=kept_objects(
                observation, made.request, own_decisions(observation, made.request, self._settings)
            ),
            uncovers=made.uncovers,
            pace=pace,
            settings=self._settings,
            time_left=lambda: monotonic() < until,
        )

    async def _solve(
        self,
        problem: Problem,
        request: OptimizeRequest,
        report: Callable[[Solution], None],
        *,
        remember: bool = True,
    ) -> Solution:
        key = request.namespace, request.optimization
        solution = await self._solver(
            problem,
            solver=self._settings.solver,
            time_limit_seconds=self._settings.time_limit_seconds,
            gap=self._settings.gap if request.gap is None else request.gap,
            seed=self._settings.seed,
            memory_mib=self._settings.memory_mib,
            previous=self._solved.get(key),
            report=report,
        )
        solved = kept_for_next(problem, solution) if remember else None
        if solved and not isinstance(self._kube, HypotheticalHub):
            self._solved.put(key, solved)
        return solution

    async def _explain(self, case: Case) -> Explained:
        return await explain(
            case, solver=self._settings.solver, time_limit_seconds=self._settings.time_limit_seconds
        )

    async def _read(
        self, observation: Observation, request: OptimizeRequest, last: FleetReading | None
    ) -> FleetReading | RequestProblem:
        """Read the fleet of a request; scores are read page by page and only one page is kept."""
        unknown = unknown_names(observation, request, request.score_names)
        if unknown:
            return unknown_names(observation, request, await self._existing(request)) or unknown
        objects = await self._read_objects(observation, request, last)
        reader = await self._read_scores(objects, request, last)
        if isinstance(reader, RequestProblem):
            return reader
        if not request.score_names <= reader.seen:
            unknown = unknown_names(observation, request, await self._existing(request))
            if unknown is not None:
                return unknown
        snapshot = await asyncio.to_thread(reader.snapshot)
        return FleetReading(observation, request, objects, reader, snapshot)

    async def _read_objects(
        self, observation: Observation, request: OptimizeRequest, last: FleetReading | None = None
    ) -> ObjectsReading:
        known = last.objects if last else None
        return await asyncio.to_thread(objects_reading, observation, request, self._settings, known)

    async def _read_scores(
        self, objects: ObjectsReading, request: OptimizeRequest, last: FleetReading | None = None
    ) -> FleetReader | RequestProblem:
        unscored = objects.snapshot
        most, wanted = self._settings.max_places, unscored.score_index
        refused = too_large(unscored.fleet, most) or too_many_scores(
            len(wanted.apps), len(wanted.places), len(request.read_scores), most
        )
        if refused:
            return refused
        reader = FleetReader(
            unscored,
            request,
            settings=self._settings,
            now=self._now(),
            last=last.scores if last else None,
        )
        async for page in score_pages(self._kube, request.score_names):
            await asyncio.to_thread(reader.add, page)
        return reader

    async def _existing(self, request: OptimizeRequest) -> frozenset[str]:
        """Return the names of all scores that clusters of the request have."""
        scores = await score_names(self._kube)
        return frozenset(item.name for item in scores if item.cluster in request.cluster_names)
