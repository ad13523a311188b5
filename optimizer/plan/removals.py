"""The workloads that a plan removes from their clusters, in words."""

from collections.abc import Iterable, Iterator

from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.changes import Change, Create
from optimizer.domain.issue import Issue
from optimizer.plan.generated_objects import selects_nothing
from optimizer.snapshot.object_readers import name_of, placement_of
from optimizer.snapshot.observation import CurrentDecisions, Observation, workloads_by_placement
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Removal, WorkloadMove


def removals(
    changes: Iterable[Change],
    observation: Observation,
    request: OptimizeRequest,
    running: CurrentDecisions,
) -> Iterator[Removal]:
    """Yield each workload whose generated Placement will select nothing, with its clusters.

    One that runs although its Placement is gone is stopped by a new one.
    """
    referring = workloads_by_placement(observation.workloads)
    named = {item.name for item in request.target_workloads}
    for change in changes:
        if not selects_nothing(change):
            continue
        for workload in referring.get(change.name, ()):
            clusters = running.placements.get(change.name, ())
            if isinstance(change, Create) and not clusters:
                continue
            yield Removal(
                workload=workload,
                clusters=clusters,
                message=f"removes {UntrustedName(workload)} from"
                f" {listed(clusters) or 'no cluster'}: {_why(workload in named, request)}",
            )


def removal_issues(removed: Iterable[Removal]) -> Iterator[Issue]:
    """Yield an issue of each removal."""
    for item in removed:
        yield Issue(reason="RemovesWorkload", message=item.message, workload=item.workload)


def staying_issues(moves: Iterable[WorkloadMove], observation: Observation) -> Iterator[Issue]:
    """Yield an issue of each workload that stays because a plan without places writes nothing.

    `moves`: those of such a plan.
    """
    placements = {name_of(obj): placement_of(obj) for obj in observation.workloads}
    there = set(map(name_of, observation.placements))
    for item in moves:
        if item.before:
            where = listed([place.cluster for place in item.before])
            placement = f"Placement {UntrustedName(placements[item.workload])}"
            by = f"as {placement} says, and OCM decides that again whenever its clusters change"
            if placements[item.workload] not in there:
                by = f"although {placement} is gone"
            yield Issue(
                reason="StaysInForce",
                message="the plan has no place for any workload, so nothing is written:"
                f" {item.workload} stays on {where} {by}",
                workload=item.workload,
            )


def _why(named: bool, request: OptimizeRequest) -> str:
    if named:
        return "the plan has no place for it"
    return f"the request of {request.owner} does not name it; `prune: false` would keep it"
