"""Shows a plan or applies it: exactly the one that was shown, if the caller says which."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from fastapi import Request

from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.access.shown_plans import ShownPlans, not_as_shown
from optimizer.api.caller import caller_of
from optimizer.plan.plan import Plan, refused_writes
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied


class PlanOutcome(NamedTuple):
    """A plan, and what was applied of it; None after a dry run."""

    plan: Plan
    applied: Applied | None


class PlanApplication(NamedTuple):
    """A caller who wants a plan shown or applied.

    `shown` keeps the plans of dry runs. `expected`: the digest of the plan that the caller saw;
    empty if it applies whatever is best.
    """

    optimizer: AuthorizedOptimizer
    shown: ShownPlans
    connection: Request
    dry_run: bool
    expected: str = ""

    async def run(
        self,
        make: Callable[[], Coroutine[Any, Any, Plan | RequestProblem]],
        is_asked: Callable[[Plan], bool],
    ) -> PlanOutcome | RequestProblem:
        """Return the plan and what was applied of it, or why nothing was.

        `make` plans; `is_asked` says whether a plan that was shown is one that the caller asks for.
        """
        async with caller_of(self.connection.receive) as caller:
            seen = self._seen(is_asked)
            plan = await caller.wait(make()) if seen is None else seen
            if isinstance(plan, RequestProblem):
                return plan
            if self.dry_run:
                self.shown.add(self.optimizer.owner, plan)
                return PlanOutcome(plan, None)
            if changed := not_as_shown(plan, self.expected):
                return changed
            applied = await self.optimizer.apply(plan, wanted=caller.is_connected)
        if isinstance(applied, RequestProblem):
            return applied
        self.shown.forget(self.optimizer.owner, plan.digest)
        failed = refused_writes(applied.failed, as_caller=self.optimizer.writes_as_caller)
        return failed or PlanOutcome(plan, applied)

    def _seen(self, is_asked: Callable[[Plan], bool]) -> Plan | None:
        """Return the plan of the expected digest that the caller was shown; None without one."""
        if self.dry_run or not self.expected:
            return None
        found = self.shown.get(self.optimizer.owner, self.expected)
        return found if found and is_asked(found) else None
