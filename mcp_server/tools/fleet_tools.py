"""Tools that see: the fleet, scores, a scorer, a workload, how far a plan is, what is broken."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from fastmcp.tools.base import ToolResult

from mcp_server.results import fleet_results, plan_results
from mcp_server.results.fleet_results import DiagnosisView, ScorerView, scores_view
from mcp_server.results.kept_results import KeptView, kept_text, kept_view
from mcp_server.results.plan_results import follow_view
from mcp_server.results.tool_result import LIST_LIMIT
from mcp_server.tools.arguments import (
    AnyName,
    Cluster,
    Kept,
    MeantOptimization,
    Namespace,
    Offset,
    Score,
    Scorer,
    SeenNamespace,
    Top,
    Workload,
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
    refuse_an_empty,
)
from optimizer.follow.overview.capacity import NO_CAPACITY
from optimizer.follow.overview.findings.fleet_findings import findings, findings_about
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.fleet_overview import describe_workload, fleet_overview
from optimizer.follow.overview.name_search import find_name
from optimizer.follow.overview.score_overview import score_overviews
from optimizer.follow.record.plan_history import history_of, meant_optimization, optimizations_of
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.fleet import fleet_facts, placement_status, with_namespaces
from optimizer.operations.kept_placements import list_optimizations, show_waiting_plan
from optimizer.operations.scores import scores
from optimizer.wire.placement_optimization import KeptOptimization
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.rollout import RolloutStatus

OVERVIEW_ITEMS = 12
"""Items of each list on one page of an overview."""

SCORES_SHOWN = 20
"""Scores, and entries of a cluster, on one page; a fleet has about ten scores."""

KEPT_SHOWN = 12
"""PlacementOptimizations of one page: a namespace has a few."""

PLACES_SHOWN = 8
"""Places, policies and findings of a workload on one page."""

FINDINGS_SHOWN = 8
"""Findings of one page: more than a person mends before asking again."""


class FleetTools:
    """The tools that see; they write nothing."""

    def __init__(self, caller: CallerRights) -> None:
        self._caller = caller

    async def fleet_overview(
        self, namespace: SeenNamespace = "default", *, offset: Offset
    ) -> ToolResult:
        """See clusters, free and idle GPUs, workloads, scores, faults.

        Call it first: tools take its names.
        """
        view = fleet_overview(await self._facts(namespace))
        if offset:
            view = view.model_copy(update={"capacity": NO_CAPACITY})
        cut = any(item.names_cut for item in view.findings)
        text = partial(fleet_results.overview_text, now=self._now(), cut=cut)
        return paged(text, view, OVERVIEW_ITEMS, offset)

    async def list_scores(
        self,
        score: Score = "",
        cluster: Cluster = "",
        top: Top = 3,
        namespace: Namespace = "default",
        *,
        offset: Offset,
    ) -> ToolResult:
        """Rank clusters by score, best first by its direction: "which is greenest?"."""
        facts = await self._facts(namespace)
        name = _meant(score, facts.scores, "score", "score") if score else ""
        wanted = {name: facts.scores[name]} if name else facts.scores
        found = score_overviews(wanted, facts.scorers, shown=top)
        view = scores_view(found)
        if cluster:
            where = _meant(cluster, facts.hub.clusters, "cluster", "cluster")
            view = scores_view(found, await asked(scores(self._caller(), where, name or None)))
        text = partial(fleet_results.scores_text, now=self._now())
        return paged(text, view, SCORES_SHOWN, offset)

    async def describe_scorer(self, name: Scorer, namespace: Namespace = "default") -> ToolResult:
        """Say what a scorer's score means, where it comes from, on which clusters it fails."""
        facts = await self._facts(namespace)
        by_name = {item.name: item for item in facts.scorers}
        said = _meant_scorer(name, facts)
        scorer = by_name.get(said) or facts.scorer_of(said)
        score = scorer.score if scorer else said
        found = score_overviews(
            {score: facts.scores[score]} if score in facts.scores else {}, facts.scorers, shown=3
        )
        view = ScorerView(
            scorer=scorer,
            score=found[0] if found else None,
            findings=findings_about(findings(facts), {said, score, *by_name} & {said, score}),
        )
        return answer(fleet_results.scorer_text(view, self._now()), view, brief=True)

    async def describe_workload(
        self, name: Workload, namespace: Namespace = "default", *, offset: Offset
    ) -> ToolResult:
        """Say where a workload runs, since when, what it asks for and what it waits for."""
        facts = await self._facts(namespace)
        found = find_name(name, facts.workloads, field="name", what="workload")
        meant = await asked(with_namespaces(self._caller(), found, (name,), namespace))
        view = describe_workload(facts, meant)
        return paged(fleet_results.workload_text, view, PLACES_SHOWN, offset)

    async def diagnose(
        self, name: AnyName = "", namespace: Namespace = "default", *, offset: Offset
    ) -> ToolResult:
        """Find what is broken between scorer and landed workload, and the next steps."""
        facts = await self._facts(namespace)
        related = _related(facts, name) if name else set[str]()
        if facts.asked_scores is not None:
            facts = replace(facts, asked_scores={*facts.asked_scores, *related})
        found = findings(facts)
        if name:
            found = findings_about(found, related)
        checked = {
            "scorers": len(facts.scorers),
            "scores": len(facts.scores),
            "clusters": len(facts.hub.clusters),
            "placements": len(facts.status.workloads),
        }
        cut = [item for item in found if item.names_cut]
        about = (i for item in cut if item.name in related for i in item.names if i != item.name)
        names = tuple(dict.fromkeys(about))
        view = DiagnosisView(findings=found, names=names, total=len(found), checked=checked)
        text = partial(fleet_results.diagnosis_text, name=name, cut=bool(cut))
        return paged(text, view, LIST_LIMIT if names else FINDINGS_SHOWN, offset)

    async def follow_rollout(
        self,
        namespace: Namespace = "default",
        optimization: MeantOptimization = None,
        *,
        offset: Offset,
    ) -> ToolResult:
        """Say how far an applied plan is: steps, compliance, what each workload waits for."""
        return await followed(self._caller(), namespace, optimization, offset=offset)

    async def kept_placements(
        self, name: Kept = "", namespace: Namespace = "default", *, offset: Offset
    ) -> ToolResult:
        """Say what is kept placed by itself, why nothing moves, which plan waits for approval."""
        caller = self._caller()
        if name:
            kept: tuple[KeptOptimization, ...] = (await meant_kept(caller, namespace, name),)
        else:
            kept = (await asked(list_optimizations(caller, namespace))).items
        by_name = {item.name: item for item in sorted(kept, key=lambda item: item.fine)}
        waiting = None
        if name and kept[0].waiting and not kept[0].approved:
            waiting = await answered(show_waiting_plan(caller, namespace, kept[0].name))
        view = kept_view([*by_name.values()], waiting, whole=bool(name))

        def text(page: KeptView) -> str:
            shown = [by_name[item["name"]] for item in page.items]
            return kept_text(shown, waiting, page.moves)

        return paged(text, view, KEPT_SHOWN, offset)

    def _now(self) -> datetime:
        return self._caller().service.now()

    async def _facts(self, namespace: str) -> FleetFacts:
        return await asked(fleet_facts(self._caller(), namespace))


def _meant(
    said: str, names: Iterable[str], what: str, argument: str = "name", same: Mapping[str, str] = {}
) -> str:
    return granted(find_name(said, names, field=argument, what=what, same=same))


def _meant_scorer(said: str, facts: FleetFacts) -> str:
    """Return the scorer that is meant, rather than a score; else the score."""
    scorers, filled = [item.name for item in facts.scorers], _filled(facts)
    found = find_name(said, scorers, field="name", what="scorer")
    if isinstance(found, str) and (found == said or said not in facts.scores):
        return found
    return _meant(said, (*scorers, *facts.scores, *filled), "scorer", same=filled)


def _filled(facts: FleetFacts) -> dict[str, str]:
    """Return the scorer that fills each score."""
    return {item.score: item.name for item in reversed(facts.scorers) if item.score}


def _related(facts: FleetFacts, said: str) -> set[str]:
    """Return the object that is meant, and those on its way: its score, clusters or workloads."""
    scorers = {item.name: item for item in facts.scorers}
    names = (*scorers, *facts.scores, *facts.hub.clusters, *facts.workloads)
    name = _meant(said, names, "object", same=_filled(facts))
    related = {name, *(item.cluster for item in facts.landings.get(name, ()))}
    related |= {item.workload for item in facts.running.get(name, ())}
    if name in scorers:
        related.add(scorers[name].score)
    scorer = facts.scorer_of(name)
    return related | ({scorer.name} if scorer else set())


async def meant_kept(caller: AuthorizedOptimizer, namespace: str, said: str) -> KeptOptimization:
    """Return the PlacementOptimization that is meant; ToolError if that is not exactly one."""
    kept = {i.name: i for i in (await asked(list_optimizations(caller, namespace))).items}
    found = find_name(said, kept, field="name", what="PlacementOptimization")
    if isinstance(found, RequestProblem) and found.reason == "UnknownName":
        found = replace(found, reason="NoPlacementOptimization")
    return kept[granted(found)]


async def followed(
    caller: AuthorizedOptimizer,
    namespace: str,
    optimization: str | None,
    rollout: RolloutStatus | None = None,
    *,
    offset: int = 0,
) -> ToolResult:
    """Return how far an optimization is; its newest rollout is read unless it is given.

    None: `default` if that has plans, or else the only one that has.
    """
    records = await asked(recorded_plans(caller, namespace))
    names = optimizations_of(records)
    optimization = optimization or granted(meant_optimization(namespace, names))
    status = await asked(placement_status(caller, namespace, optimization))
    if rollout is None:
        rollouts = await asked(recorded_rollouts(caller, namespace))
        rollout = next((item for item in rollouts if item.optimization == optimization), None)
    history = history_of(records, optimization)
    if rollout and history and rollout.record != history[0].name:
        rollout = None
    view = follow_view(status, rollout, history, offset)
    if offset:
        refuse_an_empty(view.status)
    others = sorted(names - {optimization})
    return answer(plan_results.follow_text(view, optimization, offset, others), view)
