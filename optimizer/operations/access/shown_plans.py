"""The plans that were shown to each user, and that may be applied for that user alone."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from optimizer.plan.plan import Plan
from optimizer.wire.request_problem import ProblemKind, RequestProblem

Owner = tuple[str, str]
"""Name and uid of a user; both are empty where nobody is authenticated."""

MOST_OF_OWNER = 16
"""Plans kept for one user: more than a conversation compares."""
MOST_PLANS = 64
"""Plans kept in all, which bounds the memory that callers can make the server take."""
SHORTEST_DIGEST = 8
"""Characters of a digest that name a plan: nobody has two plans that begin alike by chance."""
APPROVAL_SECONDS = 900.0
"""How long a plan may be applied after it was shown: a person has forgotten an older one."""


@dataclass(slots=True, eq=False)
class ShownPlans:
    """The latest plans by owner and digest.

    If there are too many, the owner with the most plans loses its oldest, so nobody can drop
    the plans of others by asking for many. They are kept in memory: another replica, or this
    process after a restart, has none of them. A plan expires after `seconds` of a clock.
    """

    most_of_owner: int = MOST_OF_OWNER
    most: int = MOST_PLANS
    seconds: float = APPROVAL_SECONDS
    clock: Callable[[], float] = time.monotonic
    _plans: OrderedDict[tuple[Owner, str], tuple[Plan, float]] = field(
        default_factory=OrderedDict, init=False
    )

    def add(self, owner: Owner, plan: Plan) -> None:
        """Keep a plan that is about to be shown to its owner; showing it again renews it."""
        self._plans[owner, plan.digest] = plan, self.clock()
        self._plans.move_to_end((owner, plan.digest))
        counts = Counter(whose for whose, _ in self._plans)
        most_of = owner if counts[owner] > self.most_of_owner else None
        if most_of is None and len(self._plans) > self.most:
            ((most_of, _),) = counts.most_common(1)
        if most_of is not None:
            self.forget(most_of, self._digests(most_of)[0])

    def get(self, owner: Owner, digest: str) -> Plan | None:
        """Return the owner's plan with this digest; None if there is none, or it has expired."""
        shown = self._plans.get((owner, digest))
        return shown[0] if shown and not self.is_expired(owner, digest) else None

    def is_expired(self, owner: Owner, digest: str) -> bool:
        """Return whether the owner was shown this plan, but too long ago."""
        shown = self._plans.get((owner, digest))
        return shown is not None and self.clock() - shown[1] > self.seconds

    def in_full(self, owner: Owner, digest: str) -> str:
        """Return the digest of the owner's only plan whose digest begins so, or what was said."""
        found = [known for known in self._digests(owner) if known.startswith(digest)]
        return found[0] if len(digest) >= SHORTEST_DIGEST and len(found) == 1 else digest

    def forget(self, owner: Owner, digest: str) -> None:
        """Drop a plan that was applied, or that the hub has changed since."""
        self._plans.pop((owner, digest), None)

    def digests(self, owner: Owner) -> tuple[str, ...]:
        """Return the digests of the owner's plans that have not expired, the latest first."""
        own = reversed(self._digests(owner))
        return tuple(digest for digest in own if not self.is_expired(owner, digest))

    def _digests(self, owner: Owner) -> list[str]:
        """Return the digests of the owner's plans, the oldest first."""
        return [digest for whose, digest in self._plans if whose == owner]


def not_as_shown(made: Plan, expected: str) -> RequestProblem | None:
    """Return why a plan that was made again can't be applied; None if it is the expected one."""
    if expected in ("", made.digest):
        return None
    return ProblemKind.PLAN_CHANGED.because(
        "the plan with the expected digest was shown by another process, too long ago, or is"
        " applied already; made again, it has another digest, because scores or objects on the hub"
        " have changed: look at a new dry run, and confirm that"
    )
