"""Fleets whose problem would not fit into memory."""

from optimizer.fleet import Fleet
from optimizer.ground import Ground
from optimizer.refusal import UNPROCESSABLE, RequestProblem


def too_large(fleet: Fleet, most: int) -> RequestProblem | None:
    """Refuse a fleet of more places than `most`: each takes eight bytes, several times."""
    workloads, slots = len(fleet.workloads), len(Ground(fleet).slots)
    if workloads * slots <= most:
        return None
    return RequestProblem(
        status=UNPROCESSABLE,
        reason="TooManyPlaces",
        title="The request is too large to solve at once",
        detail=f"{workloads} workloads on {slots} devices and kinds of clusters are"
        f" {workloads * slots} places, and at most {most} are solved at once; name fewer clusters"
        " or workloads",
    )
