"""Refusals speak of tools and of their arguments, not of HTTP, of JSON bodies or of commands."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from fastmcp import Client

from dsf.kube.clock import utc_now
from mcp_server.server import create_mcp
from optimizer.domain.solution import (
    Decision,
    FailureCause,
    ProcessFailure,
    Solution,
    solver_issues,
)
from optimizer.service.optimizer import Optimizer
from tests.evals.fleets import FLEETS
from tests.mcp_server.service import request

FOREIGN = re.compile(r"\b(GET|POST|PUT|DELETE) /|(?<![\w-])--[a-z]|\bbody\b|Content-Type|`dsf ")
"""Words of HTTP and of command lines."""

FIELD = re.compile(r'^"?([A-Za-z]\w*)[\w.\[\]]*: ', re.MULTILINE)
"""What a line says is wrong; `Next: ` names a tool."""

POWER = {"objective": "power"}
WHOLE = request()
BY_BODY: tuple[dict[str, Any], ...] = (
    {"dryRun": False},
    {"clusters": []},
    {"clusters": [{"name": "w9"}]},
    {"clusters": [{"name": "worker01", "availablePolicies": [{"name": "zz"}]}]},
    {"targetWorkloads": [{"name": "x"}]},
    {"targetWorkloads": [{"name": "mwrs-app01", "replicas": 0}]},
    {"limits": [{"name": "p", "maximum": 50}]},
    {"objectives": [{"addonPlacementScore": "x"}]},
    {"mig": []},
    {"gap": 5},
    {"missingScore": "a"},
    {"rollout": "No"},
    {"optimization": "Bad_Name"},
    {"unknown": 1},
    {"namespace": "Bad_Name"},
)
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"lose": ["z"]},
    {"drain": ["z"]},
    {"budget": {"z": 1}},
    {"run": [{"amount": 4, "like": "z"}]},
    {"scores": [{"score": "power", "value": 5}]},
    {"atLeast": 1},
)
NAMED = ("describe_scorer", "describe_workload", "diagnose", "kept_placements")


def wrong_calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield wrong calls of each tool, by what is wrong."""
    for fields in BY_BODY:
        yield "plan_placement", {**POWER, "request": fields}
        yield "plan_placement", {"request": {**WHOLE, **fields}}
    for asked in QUESTIONS:
        yield "plan_placement", {**POWER, "what_if": asked}
        yield "compare_plans", {"objectives": ["power"], "what_if": asked}
        yield "keep_constraints", {"remember": asked}
    for said in ("power:-1", "power:x", "z", "p"):
        yield "plan_placement", {"objective": said}
    for tool in NAMED:
        yield tool, {"name": "z"}
    yield from (
        ("plan_placement", {**POWER, "clusters": ["z"]}),
        ("plan_placement", {**POWER, "workloads": ["z"]}),
        ("list_scores", {"score": "z"}),
        ("list_scores", {"cluster": "z"}),
        ("explain_placement", {"workload": "z", **POWER}),
        ("approve_kept_plan", {"name": "z", "digest": "zzzzzzzz"}),
        ("rollback", {"workload": "z"}),
        ("rollback", {"revision": 99}),
        ("change_rollout", {"action": "x"}),
        ("keep_constraints", {"forget": {"z": ["drain"]}}),
        ("reset_placements", {"namespace": "nope"}),
    )


@pytest.mark.parametrize("fleet", ["guide", "kept"])
async def test_a_refusal_names_arguments_of_the_tool_and_no_words_of_another_door(
    fleet: str,
) -> None:
    hub, wrong = await FLEETS[fleet](), list[str]()
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now), read_only=False)) as client:
        tools = {
            tool.name: {*tool.input_schema["properties"]} for tool in await client.list_tools()
        }
        for name, arguments in wrong_calls():
            result = await client.call_tool(name, arguments, raise_on_error=False)
            text = result.content[0].text if result.is_error else ""
            said = {*FIELD.findall(text)} - {"Next"}
            if FOREIGN.search(text) or not said <= tools[name]:
                wrong.append(f"{name} {arguments}: {text}")
    assert wrong == []


@pytest.mark.parametrize("cause", get_args(FailureCause))
def test_what_to_do_about_a_solver_that_failed_is_the_same_at_each_door(
    cause: FailureCause,
) -> None:
    failure = ProcessFailure(cause, "it died")
    solution = Solution("NotSolved", Decision(), 0.0, None, 0.1, "highs", failure=failure)
    (issue,) = solver_issues(solution)
    assert not FOREIGN.search(issue.message)
