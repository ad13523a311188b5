"""Fleets whose problem would not fit into memory."""

from collections.abc import Iterable

from optimizer.domain.fleet import Fleet, FleetLimit, Workload
from optimizer.model.resource_index import ResourceIndex
from optimizer.snapshot.fleet_snapshot import FleetSnapshot
from optimizer.snapshot.scores.score_index import ScoreIndex
from optimizer.wire.request_problem import UNPROCESSABLE, RequestProblem

_SCORES_PER_PLACE = 8
_PLACES_PER_ENTRY = 4
"""An assignment in a row of a rule beyond capacity takes as much memory as four without any."""


def too_large_to_read(unscored: FleetSnapshot, scores: int, most: int) -> RequestProblem | None:
    """Refuse a fleet of too many places, or of too many scores, before its scores are read."""
    return too_large(unscored.fleet, most) or too_many_scores(unscored.score_index, scores, most)


def too_large(fleet: Fleet, most: int) -> RequestProblem | None:
    """Refuse a fleet of more assignments than `most`.

    An assignment of a workload to which limits, spread and the like apply counts more often.
    """
    workloads, resources = len(fleet.workloads), len(ResourceIndex(fleet).resources)
    ruled = (
        _PLACES_PER_ENTRY * resources * sum(_rows(item, fleet.limits) for item in fleet.workloads)
    )
    assignments = workloads * resources
    if assignments + ruled <= most:
        return None
    count = f"{assignments} places"
    if ruled:
        count += (
            f", which count as {assignments + ruled} for limits, spread, replicas, affinity to"
            " workloads and further requests"
        )
    return _refusal(
        f"{workloads} workloads on {resources} devices and kinds of clusters are {count},"
        f" and at most {most} are solved at once"
    )


def _rows(workload: Workload, limits: Iterable[FleetLimit]) -> int:
    """Return in how many rows of rules beyond capacity each assignment of a workload is."""
    uses = dict(workload.uses)
    counted = sum(bool(limit.score) or bool(uses.get(limit.uses)) for limit in limits)
    ruled = (*workload.spread, *workload.workload_selectors, *workload.requests)
    return counted + len(ruled) + (workload.replicas > 1)


def too_many_scores(wanted: ScoreIndex, scores: int, most: int) -> RequestProblem | None:
    """Refuse to read more scores than fit besides `most` assignments: each takes at least 2 bytes.

    GPUs may be offered for many more devices than anybody scores, each of which is an assignment
    then.
    """
    apps, devices, allowed = len(wanted.apps), len(wanted.places), _SCORES_PER_PLACE * most
    if apps * devices * scores <= allowed:
        return None
    return _refusal(
        f"{scores} scores of {apps} apps on {devices} devices that clusters supply or could supply"
        f" are {apps * devices * scores}, and at most {allowed} are read at once"
    )


def _refusal(why: str) -> RequestProblem:
    return RequestProblem(
        status=UNPROCESSABLE,
        reason="TooManyPlaces",
        title="The request is too large to solve at once",
        detail=f"{why}; name fewer clusters or workloads",
    )
