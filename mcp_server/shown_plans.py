"""The plans that were shown to each user, and that apply_plan accepts from that user alone."""

from collections import OrderedDict

from optimizer.plan.plan import Plan

Owner = tuple[str, str]
"""Name and uid of a user; both are empty where nobody is authenticated."""

MOST_OF_OWNER = 16
"""Plans kept for one user: more than a conversation compares."""
MOST_PLANS = 64
"""Plans kept in all, which bounds the memory that callers can make the server take."""


class ShownPlans:
    """The latest plans by owner and digest.

    If there are too many, the owner with the most plans loses its oldest, so nobody can drop
    the plans of others by asking for many. They are kept in memory: another replica, or this
    process after a restart, has none of them.
    """

    def __init__(self, most_of_owner: int = MOST_OF_OWNER, most: int = MOST_PLANS) -> None:
        self._plans: dict[Owner, OrderedDict[str, Plan]] = {}
        self._most_of_owner = most_of_owner
        self._most = most

    def add(self, owner: Owner, plan: Plan) -> None:
        """Keep a plan that is about to be shown to its owner."""
        own = self._plans.setdefault(owner, OrderedDict())
        own[plan.digest] = plan
        own.move_to_end(plan.digest)
        if len(own) > self._most_of_owner:
            own.popitem(last=False)
        if sum(map(len, self._plans.values())) > self._most:
            self._drop_oldest(max(self._plans, key=lambda other: len(self._plans[other])))

    def get(self, owner: Owner, digest: str) -> Plan | None:
        """Return the owner's plan with this digest, or None."""
        own = self._plans.get(owner)
        return own.get(digest) if own else None

    def forget(self, owner: Owner, digest: str) -> None:
        """Drop a plan that was applied, or that the hub has changed since."""
        own = self._plans.get(owner)
        if own is None:
            return
        own.pop(digest, None)
        if not own:
            del self._plans[owner]

    def digests(self, owner: Owner) -> tuple[str, ...]:
        """Return the digests of the owner's plans, the latest first."""
        return tuple(reversed(self._plans.get(owner, {})))

    def _drop_oldest(self, owner: Owner) -> None:
        self.forget(owner, next(iter(self._plans[owner])))
