"""What was applied for each user, so that a repeated apply_plan says so instead of failing."""

from collections import OrderedDict

from mcp_server.results.result_views import AppliedView
from optimizer.access.shown_plans import Owner

MOST_APPLIED = 64
"""Results kept in all, the latest: a repeat comes soon after the call."""


class AppliedPlans:
    """The latest results of apply_plan, by owner and digest, in the memory of this process."""

    def __init__(self, most: int = MOST_APPLIED) -> None:
        self._results: OrderedDict[tuple[Owner, str], AppliedView] = OrderedDict()
        self._most = most

    def add(self, owner: Owner, result: AppliedView) -> None:
        """Keep the result of a plan that was applied without a failure."""
        self._results[owner, result.digest] = result
        self._results.move_to_end((owner, result.digest))
        while len(self._results) > self._most:
            self._results.popitem(last=False)

    def get(self, owner: Owner, digest: str) -> AppliedView | None:
        """Return the result of the owner's plan with this digest; None if it is not kept."""
        return self._results.get((owner, digest))
