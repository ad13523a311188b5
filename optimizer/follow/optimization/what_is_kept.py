"""What is kept of a namespace, beside its facts: scores that are asked for, plans that wait."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain

from dsf.api.names import score_object_name
from dsf.api.times import read_time
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.follow.optimization.kept_optimization import kept_optimization
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import claims
from optimizer.follow.record.content import RecordContent, unpacked
from optimizer.follow.record.plan_history import plans_in_force
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.snapshot.object_readers import name_of
from optimizer.wire.placement_optimization import KeptOptimization, read_spec
from optimizer.wire.request_problem import RequestProblem, validated_request


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
    found = [*map(_asked_by_spec, kept)]
    found += [_asked_by_plan(item.spec.content) for item in plans_in_force(records) if item.intact]
    known = [names for names in found if names is not None]
    names = chain(*known) if len(known) == len(found) else ()
    return frozenset(map(score_object_name, names)) or None


def _asked_by_spec(obj: Object) -> frozenset[str] | None:
    spec = read_spec(obj)
    if isinstance(spec, RequestProblem):
        return None
    timed = (score for item in spec.schedules for score in (item.preference, *item.objectives))
    return frozenset((*spec.score_names, *(score.score_name for score in timed)))


@lru_cache(maxsize=32)
def _asked_by_plan(packed: str) -> frozenset[str] | None:
    """Return the scores of a recorded plan; kept, because to unpack a large one takes 0.4 s."""
    content = unpacked(packed, RecordContent)
    if not isinstance(content, RecordContent):
        return frozenset()
    request = validated_request({**content.request, "dryRun": True})
    return None if isinstance(request, RequestProblem) else frozenset(request.score_names)


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
