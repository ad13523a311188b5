"""What is kept of a namespace, beside its facts: scores that are asked for, plans that wait."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dsf.api.names import score_object_name
from dsf.api.times import read_time
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.follow.optimization.kept_optimization import kept_optimization
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import claims
from optimizer.follow.record.plan_history import RequestInForce, requests_in_force
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.snapshot.object_readers import name_of
from optimizer.wire.placement_optimization import (
    KeptOptimization,
    PlacementOptimizationSpec,
    read_spec,
)
from optimizer.wire.request_problem import RequestProblem


def with_what_is_kept(
    facts: FleetFacts, kept: Sequence[Object], records: Sequence[RecordedPlan] | Issue
) -> FleetFacts:
    """Return the facts with the scores that something asks for, and with the plans that wait.

    `kept`: the PlacementOptimizations of the namespace, `records`: its plans.
    """
    plans = () if isinstance(records, Issue) else records
    return replace(facts, asked_scores=_asked_scores(kept, plans), waiting=_waiting(kept, facts))


def all_asked(fleets: Iterable[FleetFacts]) -> frozenset[str] | None:
    """Return the scores that something in any of the namespaces asks for; None: any may be."""
    asked = [facts.asked_scores for facts in fleets]
    known = [names for names in asked if names is not None]
    return frozenset[str]().union(*known) if known and len(known) == len(asked) else None


def _asked_scores(kept: Sequence[Object], records: Sequence[RecordedPlan]) -> frozenset[str] | None:
    """Return the scores that plans in force and PlacementOptimizations ask for; None: any may be.

    That is so where nothing asks for one yet, or not all that asks can be read.
    """
    names = set[str]()
    for item in [*map(read_spec, kept), *requests_in_force(records)]:
        if isinstance(item, RequestProblem):
            return None
        request = item.request if isinstance(item, RequestInForce) else item
        names |= request.score_names
        for timed in item.schedules if isinstance(item, PlacementOptimizationSpec) else ():
            names |= {score.score_name for score in (timed.preference, *timed.objectives)}
    return frozenset(map(score_object_name, names)) or None


def _waiting(kept: Sequence[Object], facts: FleetFacts) -> Mapping[str, KeptOptimization]:
    """Return by workload what has a plan that waits and surely places it.

    Such a plan leaves none without a place, is of the spec as it is, and younger than the workload.
    """
    now = facts.observation.observed_at
    items = {name_of(obj): kept_optimization(obj, now) for obj in kept}
    if not any(item.waiting for item in items.values()):
        return {}
    objects, waiting = {name_of(obj): obj for obj in kept}, dict[str, KeptOptimization]()
    for name, owner in claims(kept, facts.workloads).items():
        item = items[owner]
        plan = item.status.plan if item.waiting else None
        made = read_time(plan.time) if plan and not plan.unplaced else None
        created = read_time(facts.workloads[name]["metadata"].get("creationTimestamp"))
        newest = objects[owner]["metadata"].get("generation") == item.status.observed_generation
        if newest and made and created and created <= made:
            waiting[name] = item
    return waiting
