"""The rows of MCP: each method, tool and resource, and each question of the page in a chat."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from mcp_server.tools.chat_view import URI
from tests.access_table.answers import Answer, Asker
from tests.access_table.operations import Operation
from tests.access_table.rest_operations import KEPT, NAMED, WHERE
from tests.optimizer.build import body
from tests.optimizer.service.kept_fleet import WAITING

FLEET = "GET /fleet"
PLAN = "POST /plan"
DRY_RUN = "POST /optimize, a dry run"
PLANS = "GET /plans"
BACK = "POST /rollback, a dry run"
COMMAND = "POST /rollouts/{namespace}/{optimization}/pause"
SCORE = "scores://worker01/power"
GOAL = {"objective": "performance"}


def tool(name: str, /, **arguments: Any) -> Callable[[Asker], Awaitable[Answer]]:
    return lambda asker: asker.tool(name, **arguments)


def method(name: str, /, **params: Any) -> Callable[[Asker], Awaitable[Answer]]:
    return lambda asker: asker.mcp(name, **params)


async def shown(asker: Asker) -> str:
    """Let a plan be shown; return its digest."""
    return str((await asker.result_of("plan_placement", request=body()))["digest"])


async def applied(asker: Asker) -> Answer:
    digest = await shown(asker)
    return await asker.tool("apply_plan", digest=digest)


async def reset(asker: Asker) -> Answer:
    """Show what goes, then let it go."""
    planned = await asker.result_of("reset_placements", **NAMED)
    return await asker.tool("reset_placements", **NAMED, digest=planned["digest"])


def paged(of: str, **question: Any) -> Callable[[Asker], Awaitable[Answer]]:
    return tool("page_data", question={"of": of, **question})


async def shown_plan(asker: Asker) -> Answer:
    digest = await shown(asker)
    return await asker.tool("page_data", question={"of": "shownPlan", "digest": digest})


async def shown_resource(asker: Asker) -> Answer:
    digest = await shown(asker)
    return await asker.mcp("resources/read", uri=f"plan://{digest}")


async def recorded(asker: Asker) -> Answer:
    async with asker.client() as http:
        listed = await http.get(f"/plans{WHERE}")
    digest = listed.json()["items"][0]["digest"] if listed.is_success else "0" * 64
    return await asker.tool(
        "page_data", question={"of": "show_plan", "namespace": "default", "digest": digest}
    )


async def completed(asker: Asker) -> Answer:
    """Ask for the names of clusters."""
    answer = await asker.mcp(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "move_workload"},
        argument={"name": "cluster", "value": ""},
    )
    return replace(answer, shown=answer.shown and answer.shown["completion"]["values"])


TOOLS: dict[str, tuple[Operation, ...]] = {
    "fleet_overview": (Operation("fleet_overview", tool("fleet_overview"), like=FLEET),),
    "list_scores": (Operation("list_scores", tool("list_scores"), like=FLEET),),
    "describe_scorer": (
        Operation("describe_scorer", tool("describe_scorer", name="power"), like=FLEET),
    ),
    "describe_workload": (
        Operation("describe_workload", tool("describe_workload", name="app01"), like=FLEET),
    ),
    "plan_placement": (
        Operation("plan_placement in words", tool("plan_placement", **GOAL), like=PLAN),
        Operation(
            "plan_placement of a request", tool("plan_placement", request=body()), like=DRY_RUN
        ),
    ),
    "explain_placement": (
        Operation("explain_placement", tool("explain_placement", workload="app01"), like=PLAN),
    ),
    "compare_plans": (
        Operation("compare_plans", tool("compare_plans", objectives=["performance"]), like=PLAN),
    ),
    "follow_rollout": (
        Operation(
            "follow_rollout", tool("follow_rollout"), "paused", like="GET /placements/status"
        ),
    ),
    "plan_history": (
        Operation("plan_history", tool("plan_history"), like=PLANS),
        Operation("plan_history, YAML", tool("plan_history", objects="Placement")),
    ),
    "kept_placements": (
        Operation("kept_placements", tool("kept_placements"), "kept", like=f"GET {KEPT}"),
    ),
    "keep_constraints": (
        Operation(
            "keep_constraints",
            tool("keep_constraints", remember={"drain": ["worker02"]}),
            writes=True,
            like="POST /constraints",
        ),
    ),
    "diagnose": (Operation("diagnose", tool("diagnose"), like=FLEET),),
    "apply_plan": (Operation("apply_plan", applied, writes=True, like="POST /optimize"),),
    "approve_kept_plan": (
        Operation(
            "approve_kept_plan",
            tool("approve_kept_plan", name="kept", digest=WAITING),
            "kept",
            writes=True,
            like=f"POST {KEPT}/{{namespace}}/{{optimization}}/approve",
        ),
    ),
    "change_rollout": (
        Operation(
            "change_rollout",
            tool("change_rollout", action="pause"),
            "rolling",
            writes=True,
            like=COMMAND,
        ),
    ),
    "rollback": (
        Operation(
            "rollback, where the client can't ask: shows the plan", tool("rollback"), like=BACK
        ),
    ),
    "reset_placements": (Operation("reset_placements", reset, writes=True, like="POST /reset"),),
}
"""The rows of each tool but that of the page."""

PAGE: dict[str, Operation] = {
    "fleet": Operation("fleet", paged("fleet"), like=FLEET),
    "plan": Operation("plan", paged("plan", request={"objective": {"performance": 1}}), like=PLAN),
    "shownPlan": Operation("shownPlan", shown_plan, like=DRY_RUN),
    "explanation": Operation("explanation", paged("explanation", request=body()), like=DRY_RUN),
    "list_plans": Operation("plans", paged("list_plans", namespace="default"), like=PLANS),
    "show_plan": Operation("record", recorded, like="GET /plans/{digest}"),
    "rollback": Operation(
        "rollback", paged("rollback", request={**NAMED, "toRevision": 1}), like=BACK
    ),
    "list_rollouts": Operation(
        "rollouts", paged("list_rollouts", namespace="default"), "paused", like="GET /rollouts"
    ),
    "show_waiting_plan": Operation(
        "waiting",
        paged("show_waiting_plan", namespace="default", optimization="kept"),
        "kept",
        like=f"GET {KEPT}/{{namespace}}/{{optimization}}/plan",
    ),
    "list_optimizations": Operation(
        "kept", paged("list_optimizations", namespace="default"), "kept", like=f"GET {KEPT}"
    ),
}
"""The row of each question that the tool page_data answers."""


RESOURCES: dict[str, Operation] = {
    "fleet://default": Operation(
        "fleet://default", method("resources/read", uri="fleet://default"), like=FLEET
    ),
    "fleet://{namespace}{?offset}": Operation(
        "fleet://{namespace}{?offset}",
        method("resources/read", uri="fleet://default?offset=8"),
        like=FLEET,
    ),
    "scores://{cluster}/{name}": Operation(
        "scores://{cluster}/{name}",
        method("resources/read", uri=SCORE),
        like="GET /addonplacementscores of a cluster",
    ),
    "plans://{namespace}": Operation(
        "plans://{namespace}", method("resources/read", uri="plans://default"), like=PLANS
    ),
    "plan://{digest}": Operation("plan://{digest}", shown_resource, like=DRY_RUN),
    URI: Operation(URI, method("resources/read", uri=URI)),
    **{
        uri: Operation(uri, method("resources/read", uri=uri))
        for uri in (
            "docs://scoring-api",
            "docs://placement-status",
            "docs://troubleshooting-clusters",
            "docs://troubleshooting-scorers",
            "docs://troubleshooting-scores",
        )
    },
}
"""The row of each resource and of each template of resources."""

METHODS: dict[str, tuple[Operation, ...]] = {
    "tools/call": tuple(row for rows in TOOLS.values() for row in rows),
    "resources/read": tuple(RESOURCES.values()),
    "subscriptions/listen": (
        Operation("subscriptions/listen to a score", lambda asker: asker.subscription(SCORE)),
    ),
    "completion/complete": (Operation("completion/complete of a cluster", completed),),
    "prompts/get": (
        Operation("prompts/get", method("prompts/get", name="summarize_scores", arguments={})),
    ),
    **{
        name: (Operation(name, method(name)),)
        for name in (
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "tools/list",
            "ping",
        )
    },
}
"""The rows of each method of MCP."""

WITHOUT_ROWS = ("initialize", "server/discover", "logging/setLevel")
"""Methods that are about the connection alone."""

MCP = tuple(row for rows in METHODS.values() for row in rows)
