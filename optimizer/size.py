"""Fleets whose problem would not fit into memory."""

from optimizer.fleet import Fleet
from optimizer.grid import Grid
from optimizer.ground import Ground
from optimizer.refusal import UNPROCESSABLE, RequestProblem

_SCORES_PER_PLACE = 8


def too_large(fleet: Fleet, most: int) -> RequestProblem | None:
    """Refuse a fleet of more places than `most`: each takes eight bytes, several times."""
    workloads, slots = len(fleet.workloads), len(Ground(fleet).slots)
    if workloads * slots <= most:
        return None
    return _refusal(
        f"{workloads} workloads on {slots} devices and kinds of clusters are"
        f" {workloads * slots} places, and at most {most} are solved at once"
    )


def too_many_scores(wanted: Grid, scores: int, most: int) -> RequestProblem | None:
    """Refuse to read more scores than fit beside `most` places: each takes two bytes or more.

    GPUs may be offered for many more devices than anybody scores, each of which is a place then.
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
