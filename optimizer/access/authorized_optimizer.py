"""The optimizer as one caller may use it: checks of rights, impersonation, an audit log."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from prometheus_client import CollectorRegistry

from dsf.kube.access_reviews import UserInfo, impersonated, right
from dsf.kube.changes import Change
from dsf.kube.errors import KubeError
from dsf.kube.kinds import MANIFEST_WORK_REPLICA_SET, NAMESPACE
from dsf.kube.port import Kube
from dsf.runtime.logs import NOT_AUTHENTICATED, audit_log
from optimizer.access.delegated_auth import DelegatedAuth
from optimizer.access.protected_resource import ProtectedResource
from optimizer.access.rights import (
    Rights,
    changing_rights,
    describing_rights,
    fleet_rights,
    listing_rights,
    naming_rights,
    planning_rights,
    record_rights,
    resetting_rights,
    rollout_rights,
    scraping_rights,
    status_rights,
    uncovering_rights,
    writing_rights,
)
from optimizer.domain.issue import Issue
from optimizer.history.score_history import ScoreHistory
from optimizer.overview.fleet_facts import FleetFacts
from optimizer.overview.fleet_matrix import FleetMatrix
from optimizer.overview.plan_request import PlanningWish, settled_wish
from optimizer.overview.planning_request import (
    PlanningQuestion,
    complete_question,
    whole_request,
)
from optimizer.overview.what_if import PretendedObjects
from optimizer.plan.plan import Plan
from optimizer.plan_writer import PlannedReset, Writer
from optimizer.record.plan_history import PlanInForce, requests_in_force
from optimizer.record.recorded_plan import RecordedPlan
from optimizer.service import Optimizer, RepeatedPlan
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.request_problem import FORBIDDEN, UNAUTHORIZED, RequestProblem
from optimizer.wire.result import Applied, ResetResult, ScoreObject
from optimizer.wire.rollout import RolloutCommand, RolloutList, RolloutStatus

T = TypeVar("T")
Written = TypeVar("Written", Applied, ResetResult, RolloutStatus)


@dataclass(frozen=True, slots=True)
class Access:
    """How callers are authorized, and how to act as one of them, if writes are impersonated.

    `resource`: where callers get tokens, if an OAuth issuer makes them.
    """

    auth: DelegatedAuth
    impersonate: Callable[[UserInfo], Kube] | None = None
    resource: ProtectedResource | None = None


class AuthorizedOptimizer:
    """Does for a user what `Optimizer` does, if the user has the rights; otherwise a problem.

    Without `access` nobody is checked: the caller has the rights of this process. With it, a
    caller without a user is refused. Each attempt to write leaves one line in the audit log. If it
    is `read_only`, each of them is refused.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        user: UserInfo | None = None,
        access: Access | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self._optimizer = optimizer
        self._user = user
        self._access = access
        self._read_only = read_only

    @property
    def owner(self) -> tuple[str, str]:
        """Return whose plans these are: the name and the uid of the user."""
        return (self._user.name, self._user.uid) if self._user else ("", "")

    @property
    def user(self) -> UserInfo | None:
        """Return the user, with its groups; None where nobody is authenticated."""
        return self._user

    @property
    def writes_as_caller(self) -> bool:
        """Return whether generated objects are written with the rights of the user."""
        return self._access is not None and self._access.impersonate is not None

    async def scores(
        self, *, namespace: str | None = None, name: str | None = None
    ) -> tuple[ScoreObject, ...] | RequestProblem:
        """Return the AddOnPlacementScores of all clusters, or of one namespace or name.

        They are described for users who may list DynamicScorers, because these describe them.
        """
        if refused := await self._refusal(listing_rights(namespace)):
            return refused
        described = await self._refusal(describing_rights()) is None
        return await self._optimizer.scores(namespace=namespace, name=name, described=described)

    async def metrics(self) -> CollectorRegistry | RequestProblem:
        """Return the registry with the metrics of this process."""
        return await self._refusal(scraping_rights()) or self._optimizer.registry

    async def score_names(self) -> tuple[ScoreObject, ...]:
        """Return all AddOnPlacementScores without entries; none if the user may not list them."""
        if await self._refusal(listing_rights(None)):
            return ()
        return await self._optimizer.score_names()

    async def placement_status(
        self, namespace: str, optimization: str | None = None
    ) -> PlacementStatus | RequestProblem:
        """Return what OCM has made of the generated objects of a namespace or an optimization."""
        if refused := await self._refusal(status_rights(namespace)):
            return refused
        found = await self._optimizer.placement_status(namespace, optimization)
        return await self._of_namespace(namespace, found, empty=found.is_empty)

    async def fleet(self, namespace: str) -> FleetFacts | RequestProblem:
        """Return what answers about the fleet are made of; refused for a namespace that is none.

        Scorers are in it for users who may list DynamicScorers.
        """
        if refused := await self._refusal(fleet_rights(namespace)):
            return refused
        described = await self._refusal(describing_rights()) is None
        facts = await self._optimizer.fleet(namespace, described=described)
        if not facts.is_empty:
            return facts
        known = await self._refusal((right("list", MANIFEST_WORK_REPLICA_SET),)) is None
        others = await self._optimizer.namespaces_with_workloads() if known else ()
        missing = await self._optimizer.missing_namespace(namespace, others)
        return missing or replace(facts, with_workloads=others)

    async def question(
        self, wish: PlanningWish, facts: FleetFacts | None = None
    ) -> PlanningQuestion | RequestProblem:
        """Return the request that a wish means; `facts`: of its namespace, if they are known.

        An objective that it does not say is that of the plan in force, for users who may list
        recorded plans.
        """
        settled = settled_wish(wish)
        if isinstance(settled, RequestProblem):
            return settled
        if settled.is_whole_request:
            return whole_request(settled)
        known = facts or await self.fleet(settled.namespace)
        if isinstance(known, RequestProblem):
            return known
        taken = await self._plan_in_force(settled) if settled.needs_objective else None
        if isinstance(taken, RequestProblem):
            return taken
        return complete_question(known, settled, taken)

    async def fleet_matrix(self, namespace: str) -> FleetMatrix | RequestProblem:
        """Return the fleet as a matrix; scorers are in it as in `fleet`."""
        if refused := await self._refusal(fleet_rights(namespace)):
            return refused
        described = await self._refusal(describing_rights()) is None
        found = await self._optimizer.fleet_matrix(namespace, described=described)
        return await self._of_namespace(
            namespace, found, empty=not (found.workloads or found.policies)
        )

    async def score_history(
        self, score: str, cluster: str, hours: int
    ) -> ScoreHistory | RequestProblem:
        """Return how a score changed, if the caller may list the scores of its cluster."""
        refused = await self._refusal(listing_rights(cluster))
        return refused or await self._optimizer.score_history(score, cluster, hours)

    async def rollouts(self, namespace: str) -> RolloutList | RequestProblem:
        """Return the newest rollout of each optimization of a namespace."""
        if refused := await self._refusal(record_rights(namespace)):
            return refused
        found = await self._optimizer.rollouts_of(namespace)
        return await self._of_namespace(namespace, found, empty=not found.items)

    async def rollout(self, namespace: str, optimization: str) -> RolloutStatus | RequestProblem:
        """Return the newest rollout of an optimization."""
        refused = await self._refusal(record_rights(namespace))
        return refused or await self._optimizer.rollout(namespace, optimization)

    async def rollout_changes(
        self, namespace: str, optimization: str
    ) -> AsyncGenerator[RolloutStatus] | RequestProblem:
        """Return the newest rollout of an optimization now and at each change, until it ends."""
        refused = await self._refusal(record_rights(namespace))
        return refused or await self._optimizer.rollout_changes(namespace, optimization)

    async def change_rollout(
        self, namespace: str, optimization: str, command: RolloutCommand
    ) -> RolloutStatus | RequestProblem:
        """Pause, resume, undo or cancel a rollout."""

        async def write() -> RolloutStatus | RequestProblem:
            refused = await self._refusal(rollout_rights(namespace), to_write=True)
            if refused:
                return refused
            return await self._optimizer.change_rollout(namespace, optimization, command)

        return await self._audited(f"rollout {command}", namespace, write)

    async def plan(
        self,
        request: OptimizeRequest,
        *,
        to_apply: bool = False,
        pretended: PretendedObjects | None = None,
    ) -> Plan | RequestProblem:
        """Make a plan; a caller that may not apply it is refused before it is made.

        `pretended`: what the hub is pretended to have; such a plan must not be applied.
        """
        rights = planning_rights(request.namespace)
        if to_apply:
            rights += writing_rights(request.namespace)
        refused = await self._refusal(rights, to_write=to_apply)
        if refused and to_apply:
            self._audit("apply", request.namespace, refused.reason)
        if refused:
            return refused
        named = await self._may_name_others()
        return await self._optimizer.plan(request, name_others=named, pretended=pretended)

    async def plan_rollback(
        self, asked: RollbackRequest, *, to_apply: bool = False
    ) -> Plan | RequestProblem:
        """Make a plan that restores a recorded one, if the caller may read both."""
        rights = planning_rights(asked.namespace) + record_rights(asked.namespace)
        if to_apply:
            rights += writing_rights(asked.namespace)
        refused = await self._refusal(rights, to_write=to_apply)
        if refused and to_apply:
            self._audit("rollback", asked.namespace, refused.reason)
        if refused:
            return refused
        named = await self._may_name_others()
        return await self._optimizer.plan_rollback(asked, name_others=named)

    async def plans(self, namespace: str) -> tuple[RecordedPlan, ...] | Issue | RequestProblem:
        """Return the recorded plans of a namespace, or why the hub has none."""
        if refused := await self._refusal(record_rights(namespace)):
            return refused
        found = await self._optimizer.plans(namespace)
        return await self._of_namespace(namespace, found, empty=found == ())

    async def applied_before(self, digest: str) -> RepeatedPlan | RequestProblem | None:
        """Return what a recorded plan wrote, if it is in force, or why it is not; None: unknown.

        A plan of a namespace whose records the caller may not read is unknown.
        """
        readable = [
            record
            for record in await self._optimizer.recorded(digest)
            if await self._refusal(record_rights(record.namespace)) is None
            and await self._refusal(status_rights(record.namespace)) is None
        ]
        own = [record for record in readable if record.problem is None] or readable
        if len({record.spec.digest for record in own}) != 1:
            return None
        newest = max(own, key=lambda record: record.spec.revision)
        return await self._optimizer.repeated(newest)

    async def apply(
        self, plan: Plan, *, wanted: Callable[[], bool] = lambda: True
    ) -> Applied | RequestProblem:
        """Apply exactly the changes of a plan; nothing if `wanted` returns False before it."""
        namespace = plan.request.namespace

        async def write() -> Applied | RequestProblem:
            rights = changing_rights(namespace, plan.changes)
            rights += uncovering_rights(plan.uncovers, namespace)
            refused = await self._refusal(rights, to_write=True)
            if refused:
                return refused
            writer = replace(self._writer(namespace), name_others=await self._may_name_others())
            return await self._optimizer.apply(plan, writer, wanted=wanted)

        action = "rollback" if plan.rollback else "apply"
        return await self._audited(action, namespace, write, digest=plan.digest)

    async def plan_reset(
        self, namespace: str, optimization: str | None, *, stop_workloads: bool = False
    ) -> PlannedReset | RequestProblem:
        """Return what a reset would write, to a caller who may write and see it."""
        if refused := await self._refusal(resetting_rights(namespace), to_write=True):
            return refused
        found = await self._optimizer.plan_reset(
            namespace,
            optimization,
            stop_workloads=stop_workloads,
            name_others=await self._may_name_others(),
        )
        return await self._of_namespace(namespace, found, empty=not found.writes)

    async def reset(
        self,
        namespace: str,
        *,
        optimization: str | None = None,
        stop_workloads: bool = False,
        digest: str = "",
        wanted: Callable[[], bool] = lambda: True,
    ) -> ResetResult | RequestProblem:
        """Delete what was generated in a namespace, or for one of its optimizations.

        Delete nothing if `wanted` returns False before it, or if it is not what the digest says.
        `stop_workloads`: OCM stops what it has placed, too.
        """

        async def write() -> ResetResult | RequestProblem:
            refused = await self._refusal(resetting_rights(namespace), to_write=True)
            if refused:
                return refused
            writer = replace(self._writer(namespace), name_others=await self._may_name_others())
            return await self._optimizer.reset(
                namespace,
                writer,
                optimization=optimization,
                stop_workloads=stop_workloads,
                digest=digest,
                wanted=wanted,
            )

        return await self._audited("reset", namespace, write, digest=digest)

    def audit_unconfirmed(
        self, action: str, namespace: str, reason: str, *, digest: str = ""
    ) -> None:
        """Write the line of an attempt that ended because no user confirmed it."""
        self._audit(action, namespace, reason, digest=digest)

    async def _of_namespace(self, namespace: str, found: T, *, empty: bool) -> T | RequestProblem:
        """Return an answer about a namespace, or that it does not exist, if the answer is empty.

        A user who may not read the namespace is not told that.
        """
        if not empty or await self._refusal((right("get", NAMESPACE, namespace),)):
            return found
        return await self._optimizer.missing_namespace(namespace) or found

    async def _plan_in_force(self, wish: PlanningWish) -> PlanInForce | RequestProblem | None:
        found = await self.plans(wish.namespace)
        records = () if isinstance(found, Issue | RequestProblem) else found
        found_in = requests_in_force(records, wish.optimization)
        return await asyncio.to_thread(next, found_in, None)

    async def _may_name_others(self) -> bool:
        """Return whether the user may list in all namespaces what others' parts are read from."""
        return await self._refusal(naming_rights()) is None

    def _writer(self, namespace: str) -> Writer:
        async def permit(changes: Sequence[Change]) -> RequestProblem | None:
            return await self._refusal(changing_rights(namespace, changes), to_write=True)

        if self._user is None or self._access is None:
            return Writer(permit=permit)
        impersonate = self._access.impersonate
        return Writer(permit, impersonate(self._user) if impersonate else None, self._user.name)

    async def _refusal(self, rights: Rights, *, to_write: bool = False) -> RequestProblem | None:
        if self._access and self._user is None:
            return unauthorized()
        if to_write and self._read_only:
            return READ_ONLY
        if self._access is None or self._user is None:
            return None
        user = impersonated(self._user) if to_write and self.writes_as_caller else self._user
        if user is None:
            return _not_impersonated(self._user)
        missing = await self._access.auth.missing(user, rights)
        return _forbidden(user, missing) if missing else None

    async def _audited(
        self,
        action: str,
        namespace: str,
        write: Callable[[], Awaitable[Written | RequestProblem]],
        *,
        digest: str = "",
    ) -> Written | RequestProblem:
        try:
            outcome = await write()
        except KubeError as error:
            self._audit(action, namespace, f"failed: {error}", digest=digest)
            raise
        except BaseException:
            self._audit(action, namespace, "interrupted", digest=digest)
            raise
        self._audit(action, namespace, _said(outcome), digest=digest)
        return outcome

    def _audit(self, action: str, namespace: str, outcome: str, *, digest: str = "") -> None:
        audit_log.info(
            "write",
            extra={
                "user": self._user.name if self._user else NOT_AUTHENTICATED,
                "action": action,
                "namespace": namespace,
                "digest": digest,
                "outcome": outcome,
            },
        )


READ_ONLY = RequestProblem(
    status=FORBIDDEN,
    reason="ReadOnly",
    title="This server is read-only",
    detail="ask it for a dry run, or start it with --allow-writes (chart: allowWrites=true)",
)


def audit_failed_login(*, token_sent: bool, address: str) -> None:
    """Write the line of a caller that is refused because nobody knows who it is."""
    audit_log.info(
        "authentication",
        extra={
            "user": NOT_AUTHENTICATED,
            "address": address,
            "outcome": "invalid token" if token_sent else "no token",
        },
    )


def unauthorized() -> RequestProblem:
    """Return the problem of a caller that did not say who it is, or whose token is not valid."""
    return RequestProblem(
        status=UNAUTHORIZED,
        reason="Unauthorized",
        title="The caller is not authenticated",
        detail="send a token for this server: Authorization: Bearer $(kubectl create token NAME"
        " --audience AUDIENCE); docs/reference/optimizer-access.md says which audience",
    )


def _not_impersonated(user: UserInfo) -> RequestProblem:
    return RequestProblem(
        status=FORBIDDEN,
        reason="Forbidden",
        title="The caller is not impersonated",
        detail=f"this server writes as its callers, and as no user of Kubernetes itself, such as"
        f" {user.name}: ask as a service account or as a person",
    )


def _forbidden(user: UserInfo, missing: Rights) -> RequestProblem:
    listed = "; ".join(map(str, missing))
    return RequestProblem(
        status=FORBIDDEN,
        reason="Forbidden",
        title="The caller lacks a right",
        detail=f"user {user.name} may not: {listed}",
    )


def _said(outcome: Applied | ResetResult | RolloutStatus | RequestProblem) -> str:
    match outcome:
        case RequestProblem():
            return outcome.reason
        case Applied():
            return f"applied {len(outcome.applied)}, failed {len(outcome.failed)}"
        case RolloutStatus():
            return f"rollout of {outcome.record}: {outcome.reason}"
        case ResetResult():
            return f"deleted {len(outcome.deleted)}, failed {len(outcome.failed)}"
