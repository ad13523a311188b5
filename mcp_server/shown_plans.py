"""The plans that were shown to a user, and that apply_plan accepts."""

from collections import OrderedDict

from optimizer.plan.plan import Plan


class ShownPlans:
    """The latest plans by digest, at most `capacity`; the oldest is dropped first.

    They are kept in memory: another replica, or this process after a restart, has none of them.
    """

    def __init__(self, capacity: int = 16) -> None:
        self._plans: OrderedDict[str, Plan] = OrderedDict()
        self._capacity = capacity

    def add(self, plan: Plan) -> None:
        """Keep a plan that is about to be shown."""
        self._plans[plan.digest] = plan
        self._plans.move_to_end(plan.digest)
        while len(self._plans) > self._capacity:
            self._plans.popitem(last=False)

    def get(self, digest: str) -> Plan | None:
        """Return the plan with this digest, or None."""
        return self._plans.get(digest)

    def forget(self, digest: str) -> None:
        """Drop a plan that was applied, or that the hub has changed since."""
        self._plans.pop(digest, None)

    def digests(self) -> tuple[str, ...]:
        """Return the digests of all plans, the latest first."""
        return tuple(reversed(self._plans))
