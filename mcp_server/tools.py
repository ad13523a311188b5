"""The MCP tools: three read, two write.

A failure that the caller can correct is a ToolError with what was wrong and what exists instead.
The server hides the details of all other failures.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_http_request
from fastmcp.tools.base import ToolResult
from mcp_types import InputRequiredResult
from pydantic import ConfigDict, Field, ValidationError
from starlette.types import Message, Receive

from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, quoted
from dsf.kube.errors import KubeError
from mcp_server import result_text
from mcp_server.confirmation import Confirmation, WhenClientCannotAsk, ask
from mcp_server.result_views import (
    applied_view,
    plan_view,
    reset_view,
    score_page,
    status_view,
)
from mcp_server.shown_plans import APPROVAL_SECONDS, ShownPlans
from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.access.rights import lacking_own_right
from optimizer.api.caller import CallerGone, caller_of
from optimizer.plan.plan import Plan
from optimizer.wire.base import RequestPart
from optimizer.wire.request import (
    NamedCluster,
    NamedWorkload,
    Namespace,
    OptimizationName,
    OptimizeRequest,
    ScoreRef,
)
from optimizer.wire.request_problem import CALLER_GONE, RequestProblem

logger = logging.getLogger(__name__)

MAX_ENTRIES = 1000
"""Score entries on one page; more would fill the context of most models."""

Cluster = Annotated[
    str,
    Field(
        max_length=63,
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        description="Only the scores of this managed cluster.",
    ),
]
ScoreName = Annotated[
    str, Field(max_length=253, description="Only scores of this name, such as my-score.")
]
Digest = Annotated[
    str, Field(max_length=128, description="The digest that plan_placement returned.")
]


_MORE = (
    "optimization",
    "prune",
    "objectives",
    "limits",
    "missingScore",
    "gap",
    "mig",
    "whyNot",
    "pareto",
)


OnlyOptimization = Annotated[
    OptimizationName | None,
    Field(description="Only what this optimization generated; default: what any generated."),
]


Caller = Callable[[], AuthorizedOptimizer]
"""Returns the optimizer with the rights of the user of the current call."""


class TargetWorkload(NamedWorkload):
    """A ManifestWorkReplicaSet with its constraints and preferences.

    The further fields are those of POST /optimize; they are validated with the whole request.
    """

    model_config = ConfigDict(extra="allow")


class WeightedScoreRef(ScoreRef):
    """The score to maximise, and its weight, minimum, maximum and inversion."""

    model_config = ConfigDict(extra="allow")


class ReadTools:
    """The tools that write nothing."""

    def __init__(self, caller: Caller, shown: ShownPlans, *, read_only: bool) -> None:
        self._caller = caller
        self._shown = shown
        self._read_only = read_only

    async def list_scores(
        self,
        cluster: Cluster | None = None,
        name: ScoreName | None = None,
        offset: Annotated[int, Field(ge=0, description="Entries to skip.")] = 0,
        limit: Annotated[int, Field(ge=1, le=MAX_ENTRIES, description="Entries to return.")] = 200,
    ) -> ToolResult:
        """List the AddOnPlacementScores of the managed clusters.

        Entries are sorted by cluster, score and entry name. An expired score is not used.
        """
        with _hub_errors():
            async with caller_of(_http_messages()) as client:
                found = await client.wait(self._caller().scores(namespace=cluster, name=name))
            if isinstance(found, RequestProblem):
                raise _refused(result_text.refusal(found))
            if not found and (cluster or name):
                await self._none_found(cluster, name)
        page = score_page(found, offset=offset, limit=limit)
        return ToolResult(content=result_text.scores_text(page), structured_content=page)

    async def _none_found(self, cluster: str | None, name: str | None) -> NoReturn:
        everything = await self._caller().score_names()
        clusters = result_text.few(sorted({score.cluster for score in everything}))
        names = result_text.few(sorted({score.name for score in everything}))
        wanted = f"no score {UntrustedName(name)}" if name else "no scores"
        where = f" of cluster {UntrustedName(cluster)}" if cluster else ""
        raise _refused(f"{wanted}{where}; clusters with scores: {clusters}; score names: {names}")

    async def plan_placement(
        self,
        namespace: Namespace,
        clusters: Annotated[
            tuple[NamedCluster, ...],
            Field(min_length=1, max_length=1000, description="Clusters and candidate policies."),
        ],
        target_workloads: Annotated[
            tuple[TargetWorkload, ...],
            Field(
                alias="targetWorkloads",
                min_length=1,
                max_length=1000,
                description="The ManifestWorkReplicaSets to place. Optional besides the name:"
                " replicas, priority, requests, spread, clusters, excludedClusters, affinity,"
                " antiAffinity, workloadAffinity, workloadAntiAffinity, minimumScore, moveCost,"
                " uses.",
            ),
        ],
        preference: WeightedScoreRef,
        explain: Annotated[
            bool,
            Field(description="Also explain what keeps workloads out, and what would help."),
        ] = False,
        more: Annotated[
            dict[str, Any] | None,
            Field(
                description=f"Further fields of POST /optimize: {', '.join(_MORE)}, such as"
                ' {"limits": [{"name": "power", "maximum": 50, "score":'
                ' {"addonPlacementScore": "power"}}]}.'
            ),
        ] = None,
    ) -> ToolResult:
        """Choose a policy for each cluster and a cluster for each workload: the best total score.

        Writes nothing. Returns the plan, the changes that applying it would write, and its digest.
        Constraints and preferences are also read from the annotations of the objects.
        """
        request = _request(
            namespace=namespace,
            clusters=clusters,
            target_workloads=target_workloads,
            preference=preference,
            explain=explain,
            more=more or {},
        )
        with _hub_errors():
            caller = self._caller()
            async with caller_of(_http_messages()) as client:
                plan = await client.wait(caller.plan(request))
        if isinstance(plan, RequestProblem):
            raise _refused(result_text.refusal(plan))
        self._shown.add(caller.owner, plan)
        view = plan_view(plan, result_text.explanation(plan))
        text = (
            f"{view.explanation}\n{result_text.next_step(view, read_only=self._read_only)}".strip()
        )
        return ToolResult(content=text, structured_content=view)

    async def placement_status(
        self, namespace: Namespace, optimization: OnlyOptimization = None
    ) -> ToolResult:
        """Tell how far OCM is with each placed workload: what it waits for, or why it is refused.

        Also lists drift: generated objects that were edited, clusters that were lost.
        """
        with _hub_errors():
            async with caller_of(_http_messages()) as client:
                found = await client.wait(self._caller().placement_status(namespace, optimization))
        if isinstance(found, RequestProblem):
            raise _refused(result_text.refusal(found))
        view = status_view(found)
        return ToolResult(content=result_text.status_text(view), structured_content=view)


class WriteTools:
    """The tools that write: after the user's yes, or as `when_client_cannot_ask` says."""

    def __init__(
        self, caller: Caller, shown: ShownPlans, when_client_cannot_ask: WhenClientCannotAsk
    ) -> None:
        self._caller = caller
        self._shown = shown
        self._when_client_cannot_ask = when_client_cannot_ask

    async def apply_plan(
        self, digest: Digest, context: Context
    ) -> ToolResult | InputRequiredResult:
        """Apply exactly the plan with this digest, which plan_placement returned.

        Show the plan to the user first. Refused if the hub has changed since: plan again.
        """
        plan = self._known(digest)
        question = result_text.question(plan)
        asked = await self._confirm(context, question, about=f"apply_plan {digest}")
        if isinstance(asked, InputRequiredResult):
            return asked
        with _hub_errors():
            async with caller_of(_http_messages()) as client:
                outcome = await self._caller().apply(plan, wanted=client.is_connected)
        self._shown.forget(self._caller().owner, digest)
        if isinstance(outcome, RequestProblem):
            raise _refused(result_text.refusal(outcome))
        view = applied_view(outcome)
        return ToolResult(
            content=result_text.applied_text(view),
            structured_content=view,
            is_error=bool(view.failed),
        )

    def _known(self, digest: str) -> Plan:
        owner = self._caller().owner
        plan = self._shown.get(owner, digest)
        if self._shown.is_expired(owner, digest):
            raise _refused(
                f"the plan {UntrustedName(digest)} was shown over {APPROVAL_SECONDS / 60:g} minutes"
                " ago, so its approval has expired; call plan_placement again and show the plan"
            )
        if plan is None:
            raise _refused(
                f"no plan with digest {UntrustedName(digest)}: this server did not make it for you,"
                " it is too old, or it was applied already; call plan_placement again; plans that"
                f" can be applied: {result_text.few(self._shown.digests(owner))}"
            )
        return plan

    async def reset_placements(
        self, namespace: Namespace, context: Context, optimization: OnlyOptimization = None
    ) -> ToolResult | InputRequiredResult:
        """Delete every generated Placement, PlacementBinding and Policy of a namespace.

        With an optimization, only those that were generated for it.

        Their policies are no longer enforced. Workloads stay where they are until the next plan.
        """
        asked = await self._confirm(
            context,
            result_text.reset_question(namespace, optimization),
            about=f"reset_placements {namespace} {optimization or ''}".strip(),
        )
        if isinstance(asked, InputRequiredResult):
            return asked
        with _hub_errors():
            async with caller_of(_http_messages()) as client:
                result = await self._caller().reset(
                    namespace, optimization=optimization, wanted=client.is_connected
                )
        if isinstance(result, RequestProblem):
            raise _refused(result_text.refusal(result))
        view = reset_view(namespace, result)
        return ToolResult(
            content=result_text.reset_text(view),
            structured_content=view,
            is_error=bool(view.failed),
        )

    async def _confirm(
        self, context: Context, question: str, *, about: str
    ) -> InputRequiredResult | None:
        """Return None if the tool may write, or the question to return; ToolError if it may not."""
        answer = await ask(context, question, about=about)
        if isinstance(answer, InputRequiredResult):
            return answer
        if answer is Confirmation.YES:
            return None
        if answer is not Confirmation.CANNOT_ASK:
            raise _refused("the user did not confirm; nothing was written")
        if self._when_client_cannot_ask == "digest":
            return None
        raise _refused(
            "this client can't ask its user to confirm, and this server writes only what a user"
            " has confirmed; nothing was written"
        )


def _http_messages() -> Receive:
    """Return how to receive the messages of the HTTP request that a tool runs for.

    The last one is a disconnect. On standard input and output none ever comes: the client ends the
    process.
    """
    try:
        return get_http_request().receive
    except RuntimeError:
        return _no_message


async def _no_message() -> Message:
    message: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await message


def _refused(why: str) -> ToolError:
    return ToolError(why, log_level=logging.INFO)


def _request(
    *,
    namespace: str,
    clusters: Sequence[RequestPart],
    target_workloads: Sequence[RequestPart],
    preference: RequestPart,
    explain: bool,
    more: Mapping[str, Any],
) -> OptimizeRequest:
    """Return the request; raise ToolError if the arguments contradict each other."""
    unknown = [name for name in more if name not in _MORE]
    if unknown:
        raise _refused(f"more: {quoted(unknown[0])} is not one of {', '.join(_MORE)}")
    body = {
        **more,
        "namespace": namespace,
        "clusters": [item.model_dump() for item in clusters],
        "targetWorkloads": [item.model_dump() for item in target_workloads],
        "preference": preference.model_dump(),
        "explain": explain,
        "dry_run": True,
    }
    try:
        return OptimizeRequest.model_validate(body)
    except ValidationError as error:
        raise _refused(result_text.wrong_arguments(error)) from error


@contextmanager
def _hub_errors() -> Iterator[None]:
    try:
        yield
    except CallerGone as error:
        raise _refused(result_text.refusal(CALLER_GONE)) from error
    except KubeError as error:
        lacking = lacking_own_right(error)
        if lacking is not None:
            raise _refused(result_text.refusal(lacking)) from error
        message = quoted(str(error), MESSAGE_LIMIT)
        logger.warning("can't read the hub", extra={"error": str(error)})
        raise _refused(f"can't read the hub: {message}; nothing was written") from error
