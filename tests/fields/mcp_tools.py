"""The arguments of each MCP tool, and the questions of the page in a chat."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from typing import Any

from fastmcp import Client
from fastmcp.exceptions import ToolError
from mcp_types import TextContent

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import PLACEMENT_PLAN
from mcp_server.server import create_mcp
from mcp_server.tools.chat_view import QUESTIONS
from optimizer.domain.settings import OptimizerSettings
from optimizer.service.optimizer import Optimizer
from tests.fields.door import Case, Door, Fields, leaves, with_values
from tests.fields.optimize_request import hub_in, on_hub, seen
from tests.fields.rest_routes import CASES as ROUTE_CASES
from tests.optimizer.build import NOW, body
from tests.optimizer.cli.test_simulate import prometheus
from tests.optimizer.service.kept_fleet import WAITING
from tests.optimizer.twin.recorded_fleet import ONE_HOUR, recorded_hub

TAG = "the tag of a fleet that was read before"
NEWEST = "the digest of the newest recorded plan"
SHOWN = "the digest of the plan that was shown before"
OBJECTIVE = {"objective": "performance"}
WORKLOAD = {"workload": "app01"}
COMPARED = {"objectives": ["performance", "power"]}
GAIN = {"settings": {"gain": "1"}}
PAUSE = {"action": "pause"}
APPROVED = {"name": "kept", "digest": WAITING}
CASES: dict[str, dict[str, Case]] = {
    "fleet_overview": {"namespace": Case("worker01"), "offset": Case(1)},
    "list_scores": {
        "score": Case("power"),
        "cluster": Case("worker01"),
        "top": Case(1),
        "offset": Case(1),
        "namespace": Case("nope"),
    },
    "describe_scorer": {
        "name": Case("power", {"name": "performance"}),
        "namespace": Case("nope", {"name": "performance"}),
    },
    "describe_workload": {
        "name": Case("app02", {"name": "app01"}),
        "namespace": Case("worker01", {"name": "app01"}),
        "offset": Case(1, {"name": "app01"}),
    },
    "plan_placement": {
        "objective": Case("performance", on="applied"),
        "namespace": Case("worker01", OBJECTIVE),
        "clusters": Case(["worker01"], OBJECTIVE),
        "workloads": Case(["app01"], OBJECTIVE),
        "what_if": Case({"lose": ["worker02"]}, OBJECTIVE),
        "request": Case({"targetWorkloads": [{"name": "mwrs-app01"}]}, OBJECTIVE),
        "objects": Case(True, OBJECTIVE),
    },
    "explain_placement": {
        "workload": Case("app02", WORKLOAD, "applied"),
        "cluster": Case("worker02", WORKLOAD, "applied"),
        "digest": Case(SHOWN, WORKLOAD, "applied"),
        "objective": Case("performance", WORKLOAD, "applied"),
        "namespace": Case("worker01", WORKLOAD, "applied"),
        "optimization": Case("team-b", {**WORKLOAD, **OBJECTIVE}, "applied"),
    },
    "compare_plans": {
        "objectives": Case(["power"], COMPARED),
        "digests": Case([SHOWN], COMPARED),
        "trade_offs": Case(True, COMPARED),
        "what_if": Case({"lose": ["worker02"]}, COMPARED),
        "namespace": Case("worker01", COMPARED),
        "optimization": Case("team-b", COMPARED),
    },
    "follow_rollout": {
        "namespace": Case("worker01", on="rolling"),
        "optimization": Case("team-b", on="rolling"),
        "offset": Case(1, on="rolling"),
    },
    "plan_history": {
        "plan": Case("1", on="replaced"),
        "prove": Case(True, on="replaced"),
        "objects": Case("Policy", on="replaced"),
        "namespace": Case("worker01", on="replaced"),
        "optimization": Case("team-b", on="replaced"),
        "offset": Case(1, on="replaced"),
    },
    "simulate_settings": {
        "settings": Case({"gain": "200"}, GAIN),
        "hours": Case(1, GAIN),
        "namespace": Case("worker01", GAIN),
        "optimization": Case("team-b", GAIN),
    },
    "kept_placements": {
        "name": Case("other", on="waiting"),
        "namespace": Case("worker01", on="waiting"),
        "offset": Case(1, on="waiting"),
    },
    "keep_constraints": {
        "remember": Case({"drain": ["worker01"]}),
        "forget": Case({"worker01": ["drain"]}),
        "namespace": Case("worker01", {"remember": {"pin": {"app01": "worker02"}}}),
    },
    "diagnose": {
        "name": Case("worker01"),
        "namespace": Case("worker01", on="applied"),
        "offset": Case(1),
    },
    "apply_plan": {"digest": Case("abc", {"digest": SHOWN})},
    "approve_kept_plan": {
        "name": Case("other", APPROVED, "waiting"),
        "digest": Case("b" * 64, APPROVED, "waiting"),
        "namespace": Case("worker01", APPROVED, "waiting"),
    },
    "change_rollout": {
        "action": Case("cancel", PAUSE, "rolling"),
        "namespace": Case("worker01", PAUSE, "rolling"),
        "optimization": Case("team-b", PAUSE, "rolling"),
    },
    "rollback": {
        "namespace": Case("worker01", on="replaced"),
        "optimization": Case("team-b", on="replaced"),
        "revision": Case(2, on="replaced"),
        "workload": Case("app02", on="replaced"),
    },
    "reset_placements": {
        "namespace": Case("worker01", {"namespace": "default"}, "applied"),
        "optimization": Case("team-b", {"namespace": "default"}, "applied"),
        "stop_workloads": Case(True, {"namespace": "default"}, "applied"),
        "digest": Case("f" * 64, {"namespace": "default"}, "applied"),
        "offset": Case(1, {"namespace": "default"}, "applied"),
    },
}


@cache
def schemas() -> dict[str, Fields]:
    """The input schema of each tool."""

    async def listed() -> dict[str, Fields]:
        known = OptimizerSettings(prometheus_url="http://any")
        optimizer = Optimizer(EmbeddedHub(), known, now=lambda: NOW)
        async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
            return {tool.name: tool.input_schema for tool in await client.list_tools()}

    return asyncio.run(listed())


def _of_route(route: str) -> dict[str, Case]:
    """The cases of a question that has the fields of a route."""

    def fields(said: Fields) -> Fields:
        newest = {"path:digest": NEWEST} if "path:digest" in said else {}
        return {name.partition(":")[2]: value for name, value in {**said, **newest}.items()}

    return {
        name.partition(":")[2]: Case(case.value, fields(case.given), case.on)
        for name, case in ROUTE_CASES[route].items()
    }


QUESTION_CASES: dict[str, tuple[Fields, dict[str, Case]]] = {
    "fleet": ({"of": "fleet"}, {"namespace": Case("worker01"), "tag": Case(TAG)}),
    "plan": (
        {"of": "plan"},
        {
            f"request.{name.removeprefix('body:')}": Case(
                case.value,
                {
                    f"request.{key.removeprefix('body:')}": value
                    for key, value in case.given.items()
                },
                case.on or "replaced",
            )
            for name, case in ROUTE_CASES["post /plan"].items()
        },
    ),
    "shownPlan": ({"of": "shownPlan"}, {"digest": Case("abc", {"digest": SHOWN})}),
    "explanation": (
        {"of": "explanation"},
        {"request": Case({**body(), "explain": True}, {"request": body()})},
    ),
    "list_plans": ({"of": "list_plans"}, _of_route("get /plans")),
    "show_plan": ({"of": "show_plan"}, _of_route("get /plans/{digest}")),
    "rollback": (
        {"of": "rollback"},
        {
            f"request.{name.removeprefix('body:')}": Case(
                name != "body:dryRun" and case.value, {"request.namespace": "default"}, case.on
            )
            for name, case in ROUTE_CASES["post /rollback"].items()
            if name.startswith("body:")
        },
    ),
    "list_rollouts": ({"of": "list_rollouts"}, _of_route("get /rollouts")),
    "show_waiting_plan": (
        {"of": "show_waiting_plan"},
        _of_route("get /placementoptimizations/{namespace}/{optimization}/plan"),
    ),
    "list_optimizations": ({"of": "list_optimizations"}, _of_route("get /placementoptimizations")),
}
"""What the page asks: what tells the question, and a case for each of its fields."""


def question_fields(of: str) -> Callable[[], Iterable[str]]:
    schema = QUESTIONS[of].model_json_schema()
    return lambda: (name for name in leaves(schema, schema) if name != "of")


def ask_page(of: Fields) -> Callable[[Fields, str], Awaitable[Any]]:
    asked = ask_by("page_data")

    async def ask(values: Fields, on: str) -> Any:
        question = {**of, **values}
        return await asked({f"question.{name}": value for name, value in question.items()}, on)

    return ask


def fields_of(tool: str) -> Callable[[], Iterable[str]]:
    return lambda: leaves(schemas()[tool], schemas()[tool])


async def ask_of_recording(values: Fields, _on: str) -> Any:
    """Return the answer about a recording, and the seconds that each query of it covered."""
    async with prometheus(ONE_HOUR) as (url, ranges):
        known = OptimizerSettings(prometheus_url=url)
        optimizer = Optimizer(await recorded_hub(), known, now=lambda: NOW)
        async with Client(create_mcp(lambda: optimizer)) as client:
            try:
                told = (await client.call_tool("simulate_settings", values)).structured_content
            except ToolError as error:
                told = str(error)
    return told, [round(float(one["end"]) - float(one["start"])) for one in ranges]


def ask_by(tool: str) -> Callable[[Fields, str], Awaitable[Any]]:
    if tool == "simulate_settings":
        return ask_of_recording

    async def ask(values: Fields, on: str) -> Any:
        hub = await hub_in(on)
        optimizer = Optimizer(hub, now=lambda: NOW)
        async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
            arguments = with_values({}, values)
            if SHOWN in str(arguments):
                shown = await client.call_tool("plan_placement", OBJECTIVE)
                arguments = _named(arguments, SHOWN, shown.structured_content["digest"])
            if NEWEST in str(arguments):
                (record,) = (await hub.list(PLACEMENT_PLAN, "default")).items
                digest = record["spec"]["digest"]
                arguments = _named(arguments, NEWEST, digest)
            if TAG in str(arguments):
                read = await client.call_tool(tool, {"question": {"of": "fleet"}})
                arguments = _named(arguments, TAG, read.structured_content["tag"])
            try:
                told = await client.call_tool(tool, arguments)
            except ToolError as error:
                return str(error), await on_hub(hub)
        (text,) = told.content
        assert isinstance(text, TextContent)
        digest = (told.structured_content or {}).get("digest") or "no digest"
        said = text.text.replace(digest, "a digest")
        return said, seen(told.structured_content), await on_hub(hub)

    return ask


def _named(part: Any, placeholder: str, name: str) -> Any:
    match part:
        case str():
            return name if part == placeholder else part
        case dict():
            return {key: _named(value, placeholder, name) for key, value in part.items()}
        case list():
            return [_named(item, placeholder, name) for item in part]
        case _:
            return part


assert QUESTION_CASES.keys() == QUESTIONS.keys(), "a question without cases"
PAGE = [
    Door(f"page_data: {name}", question_fields(name), cases, ask_page(of))
    for name, (of, cases) in QUESTION_CASES.items()
]
TOOLS = [Door(tool, fields_of(tool), CASES.get(tool, {}), ask_by(tool)) for tool in schemas()]
