"""Why a plan is out of date: what changed on the hub since it was made."""

from collections.abc import Iterable, Iterator, Sequence

from dsf.api.untrusted_text import UntrustedName, joined
from dsf.kube.changes import Change
from optimizer.domain.fleet import Fleet
from optimizer.domain.issue import OTHERS_REASONS
from optimizer.domain.mig.gpu_pools import GpuPools
from optimizer.domain.settings import OptimizerSettings
from optimizer.plan.basis import assumptions, basis_of, changed_facts
from optimizer.plan.generated_objects import after_changes, changes, describe, overwriting
from optimizer.plan.nodes_since import lacking_nodes
from optimizer.plan.plan import MAX_NAMED, Plan
from optimizer.plan.uncovered_others import losing_claims, uncovered_others
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.ineffective_input import unknown_names
from optimizer.snapshot.observation import Observation, kept_objects, own_decisions, with_works
from optimizer.wire.request_problem import FieldProblem, ProblemKind, RequestProblem

MAX_DIFFERENCES = 100
"""Differences that a refusal lists."""


def stale(
    made: Plan, observation: Observation, settings: OptimizerSettings
) -> RequestProblem | None:
    """Return why a plan is out of date; None if it can be applied.

    Scores are not compared: they change which plan is best, not which plans are possible. What no
    longer runs is not missed: a plan that left room for it has room.
    """
    observation = with_works(observation, made.unselected)
    scores = [score.score_name for _, score in made.request.read_scores]
    refused = unknown_names(observation, made.request, scores)
    if refused:
        return refused
    read = read_objects(observation, made.request, settings)
    if basis_of(read.fleet, read.pools) != made.basis:
        return _others_since(made, read.fleet) or _stale(
            "what it depends on has changed", _differences(made, read.fleet, read.pools)
        )
    lacking = list(lacking_nodes(read.fleet, made.solution.decision, made.enforced))
    if lacking:
        return _stale("nodes no longer have what it needs", lacking)
    kept = kept_objects(
        observation, made.request, own_decisions(observation, made.request, settings)
    )
    implied = changes(made.manifests, observation, made.request.optimization, kept)
    if made.manifests and implied != made.changes:
        return _stale(
            f"the generated objects of {made.request.owner} have changed",
            _other_changes(made.changes, implied),
        )
    more = _more_uncovered(made, observation, settings)
    if more:
        return _stale("it would uncover workloads of others that it did not announce", more)
    return overwriting(made.manifests, observation, made.request)


def _more_uncovered(
    made: Plan, observation: Observation, settings: OptimizerSettings
) -> list[FieldProblem]:
    """Return the workloads of others that a plan uncovers now, and did not when it was made."""
    request = made.request
    after = own_decisions(after_changes(observation, made.changes), request, settings)
    losing = losing_claims(observation, request, settings, after.policies, made.changes)
    now = uncovered_others(observation, request, settings, losing if made.manifests else ())
    announced = {(name, *i.key) for name, items in made.uncovers.items() for i in items}
    return [
        FieldProblem(
            f"managed cluster {name}",
            f"{UntrustedName(item.workload) if item.named else 'a workload'} of {item.owner}",
        )
        for name, items in now.items()
        for item in items
        if (name, *item.key) not in announced
    ]


def _others_since(made: Plan, fleet: Fleet) -> RequestProblem | None:
    """Return a refusal with both names if others have come to the plan's clusters since."""
    found = [
        item.message
        for item in fleet.issues
        if item.reason in OTHERS_REASONS and item not in made.issues
    ]
    if not found:
        return None
    return ProblemKind.HELD_BY_OTHERS.because(
        f"since {made.request.owner} was planned:"
        f" {joined(found, MAX_NAMED, separator='; ')}; plan again"
    )


def _differences(made: Plan, fleet: Fleet, pools: GpuPools) -> Iterator[FieldProblem]:
    """Yield what changed of what a plan rests on: first what it uses, as it was and as it is."""
    now = assumptions(fleet, made.solution.decision)
    for name, then in made.assumptions.items():
        if name in now and now[name] != then:
            yield FieldProblem(name, f"{now[name]} now; {then} when it was planned")
    for name, what in changed_facts(made.basis, fleet, pools):
        yield FieldProblem(name, what)


def _other_changes(then: Sequence[Change], now: Sequence[Change]) -> Iterator[FieldProblem]:
    """Yield the changes that the plan would not make as it was shown."""
    for said, ours, theirs in (("now also needed", now, then), ("no longer needed", then, now)):
        for change in ours:
            if change not in theirs:
                action = describe(change).action
                yield FieldProblem(f"{change.kind.kind} {change.name}", f"{said}: {action}")


def _stale(why: str, differences: Iterable[FieldProblem]) -> RequestProblem:
    every = tuple(differences)
    named = (f"{item.field}: {item.message}" for item in every)
    said = joined(named, MAX_NAMED, separator="; ")
    return ProblemKind.STALE_PLAN.because(
        f"{'; '.join(filter(None, (why, said)))}; plan again", every[:MAX_DIFFERENCES]
    )
