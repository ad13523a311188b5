"""The workloads that a plan removes from their clusters, in words."""

from collections.abc import Iterable, Iterator

from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.changes import Change
from optimizer.domain.issue import Issue
from optimizer.plan.generated_objects import selects_nothing
from optimizer.snapshot.current_decisions import CurrentDecisions
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.kept_objects import workloads_by_placement
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Removal


def removals(
    changes: Iterable[Change],
    observation: Observation,
    request: OptimizeRequest,
    running: CurrentDecisions,
) -> Iterator[Removal]:
    """Yield each workload whose generated Placement will select nothing, with its clusters."""
    referring = workloads_by_placement(observation.workloads)
    named = {item.name for item in request.target_workloads}
    for change in changes:
        if not selects_nothing(change):
            continue
        for workload in referring.get(change.name, ()):
            clusters = running.placements.get(change.name, ())
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


def _why(named: bool, request: OptimizeRequest) -> str:
    if named:
        return "the plan has no place for it"
    return f"the request of {request.owner} does not name it; `prune: false` would keep it"
