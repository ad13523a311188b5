"""The optimizer as one caller may use it: checks of rights, impersonation, an audit log."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from dsf.kube.access_reviews import ResourceAttributes, UserInfo, impersonated, right
from dsf.kube.changes import Change
from dsf.kube.errors import KubeError
from dsf.kube.kinds import NAMESPACE
from dsf.kube.port import Kube
from dsf.runtime.logs import NOT_AUTHENTICATED, audit
from optimizer.follow.overview.plan_request import DEFAULT_NAMESPACE
from optimizer.operations.access.caller import Caller
from optimizer.operations.access.delegated_auth import DelegatedAuth, ProtectedResource
from optimizer.operations.access.rights import Rights, changing_rights, naming_rights
from optimizer.operations.access.shown_plans import ShownPlans
from optimizer.service.observe_fleet import own_rights
from optimizer.service.optimizer import Optimizer
from optimizer.service.plan_writer import Writer
from optimizer.wire.request_problem import ProblemKind, RequestProblem
from optimizer.wire.result import Applied, ResetResult
from optimizer.wire.rollout import RolloutStatus

T = TypeVar("T")

MOST_NAMESPACES = 20
"""Namespaces with workloads in which rights are looked for: each costs questions to the hub."""


@dataclass(frozen=True, slots=True)
class Access:
    """How callers are authorized, and how to act as one of them, if writes are impersonated.

    `resource`: where callers get tokens, if an OAuth issuer makes them.
    """

    auth: DelegatedAuth
    impersonate: Callable[[UserInfo], Kube] | None = None
    resource: ProtectedResource | None = None


class WriteAttempt(NamedTuple):
    """What the audit log says of a write, whatever becomes of it."""

    action: str
    namespace: str
    digest: str = ""


class AuthorizedOptimizer:
    """The optimizer, one of its callers, and what this caller may do; operations are asked of it.

    Without `access` nobody is checked: the caller has the rights of this process. With it, a
    caller without a user is refused. If it is `read_only`, each attempt to write is refused.
    `shown`: the plans that this door has shown. `caller` may disconnect; without one, nobody waits.
    """

    def __init__(
        self,
        service: Optimizer,
        user: UserInfo | None = None,
        access: Access | None = None,
        *,
        read_only: bool = False,
        shown: ShownPlans | None = None,
        caller: Caller | None = None,
    ) -> None:
        self.service = service
        self.user = user
        self.shown = shown or ShownPlans()
        self.caller = caller or Caller()
        self._access = access
        self._read_only = read_only

    @property
    def owner(self) -> tuple[str, str]:
        """Return whose plans these are: the name and the uid of the user."""
        return (self.user.name, self.user.uid) if self.user else ("", "")

    @property
    def writes_as_caller(self) -> bool:
        """Return whether generated objects are written with the rights of the user."""
        return self._access is not None and self._access.impersonate is not None

    async def may(self, rights: Rights) -> bool:
        """Return whether the caller has the rights."""
        return await self.refusal(rights) is None

    async def may_somewhere(self, rights: Callable[[str], Rights]) -> bool:
        """Return whether the caller has the rights of a namespace, in all or in one of the known.

        Known are `default` and those with workloads; True where these are more than are asked for.
        Without `access` they are our own rights. Those who lack them in all are asked about every
        known namespace at once.
        """

        async def has(namespace: str) -> bool:
            asked = rights(namespace)
            if self._access is not None:
                return await self.may(asked)
            resources = [item for item in asked if isinstance(item, ResourceAttributes)]
            return all((await own_rights(self.service.kube, resources)).values())

        if await has(""):
            return True
        known = await self.service.namespaces_with_workloads()
        own = await asyncio.gather(*map(has, (DEFAULT_NAMESPACE, *known[:MOST_NAMESPACES])))
        return any(own) or len(known) > MOST_NAMESPACES

    async def may_name_others(self) -> bool:
        """Return whether the user may list in all namespaces what others' parts are read from."""
        return await self.may(naming_rights())

    async def refusal(self, rights: Rights, *, to_write: bool = False) -> RequestProblem | None:
        """Return why the caller is refused; None if it has the rights."""
        if self._access and self.user is None:
            return UNAUTHENTICATED
        if to_write and self._read_only:
            return READ_ONLY
        if self._access is None or self.user is None:
            return None
        user = impersonated(self.user) if to_write and self.writes_as_caller else self.user
        if user is None:
            return ProblemKind.NOT_IMPERSONATED.because(
                "this server writes as its callers, and as no user of Kubernetes itself, such as"
                f" {self.user.name}: ask as a service account or as a person"
            )
        if missing := await self._access.auth.missing(user, rights):
            listed = "; ".join(map(str, missing))
            return ProblemKind.CALLER_LACKS_RIGHT.because(f"user {user.name} may not: {listed}")
        return None

    async def of_namespace(self, namespace: str, found: T, *, empty: bool) -> T | RequestProblem:
        """Return an answer about a namespace, or that it does not exist, if the answer is empty.

        A user who may not read the namespace is not told that.
        """
        if not empty or not await self.may((right("get", NAMESPACE, namespace),)):
            return found
        return await self.service.missing_namespace(namespace) or found

    async def writer(self, namespace: str) -> Writer:
        """Return with whose rights objects of a namespace are written."""

        async def permit(changes: Sequence[Change]) -> RequestProblem | None:
            return await self.refusal(changing_rights(namespace, changes), to_write=True)

        named = await self.may_name_others()
        if self.user is None or self._access is None:
            return Writer(permit, name_others=named)
        impersonate = self._access.impersonate
        kube = self.service.hub.noting(impersonate(self.user)) if impersonate else None
        return Writer(permit, kube, self.user.name, name_others=named)

    async def audited(self, attempt: WriteAttempt, work: Callable[[], Awaitable[T]]) -> T:
        """Return the outcome of the work; it is a line of the audit log unless it is None."""
        try:
            outcome = await work()
        except KubeError as error:
            self.audit(attempt, f"failed: {error}")
            raise
        except BaseException:
            self.audit(attempt, "interrupted")
            raise
        if outcome is not None:
            self.audit(attempt, _outcome_text(outcome))
        return outcome

    def audit(self, attempt: WriteAttempt, outcome: str) -> None:
        """Write the line of an attempt to write."""
        user = self.user.name if self.user else NOT_AUTHENTICATED
        audit("write", user=user, **attempt._asdict(), outcome=outcome)


READ_ONLY = ProblemKind.READ_ONLY.because(
    "ask it for a dry run, or start it with --allow-writes (chart: allowWrites=true)"
)


def audit_failed_login(*, token_sent: bool, address: str) -> None:
    """Write the line of a caller that is refused because nobody knows who it is."""
    outcome = "invalid token" if token_sent else "no token"
    audit("authentication", user=NOT_AUTHENTICATED, address=address, outcome=outcome)


UNAUTHENTICATED = ProblemKind.UNAUTHENTICATED.because(
    "send a token for this server: Authorization: Bearer $(kubectl create token NAME"
    " --audience AUDIENCE); docs/reference/optimizer-access.md says which audience"
)
"""The problem of a caller that did not say who it is, or whose token is not valid."""


def _outcome_text(outcome: object) -> str:
    match outcome:
        case RequestProblem():
            return outcome.reason
        case Applied():
            return f"applied {len(outcome.applied)}, failed {len(outcome.failed)}"
        case RolloutStatus():
            return f"rollout of {outcome.record}: {outcome.reason}"
        case ResetResult():
            return f"deleted {len(outcome.deleted)}, failed {len(outcome.failed)}"
        case _:
            return "done"
