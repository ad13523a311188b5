"""What an assistant pays: definitions, answers, calls, and imports before the first answer."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fastmcp import Client
from fastmcp.client.logging import LogMessage
from fastmcp.exceptions import ToolError

from dsf.api.names import HUB_NAMESPACE
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT_OPTIMIZATION,
    Kind,
)
from dsf.kube.port import ObjectList
from mcp_server.server import create_mcp
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from tests.evals.fleets import wide
from tests.kube_wrappers.slow_scores import REPORT_SECONDS, SlowScores
from tests.mcp_server.service import POWER, generated, put, request, scenario_hub
from tests.mcp_server.tokens import definition_tokens, result_tokens

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOST_DEFINITION_TOKENS = 2_700
MOST_OVERVIEW_TOKENS = 2_000
MOST_ANSWER_TOKENS = 1_500
MOST_CHARACTERS = 6_000
MOST_CALLS = 2


async def test_the_definitions_of_the_read_only_tools_fit() -> None:
    hub = await scenario_hub()
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        tools = await client.list_tools()
    shown = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert definition_tokens(shown) < MOST_DEFINITION_TOKENS
    for tool in shown:
        assert tool["title"]
        assert tool["outputSchema"]["properties"]
        assert set(tool["annotations"]) >= {
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }


class _LargeHub:
    """1,000 clusters with 10 scores each; every other kind is empty."""

    clusters = tuple(
        {
            "metadata": {"name": f"cluster-{number:04}", "labels": {}},
            "spec": {"hubAcceptsClient": True},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"}},
        }
        for number in range(1000)
    )
    scores = tuple(
        {
            "metadata": {"name": f"score-{score}", "namespace": cluster["metadata"]["name"]},
            "status": {
                "scores": [{"name": f"app-{n};all", "value": (score * n) % 100} for n in range(10)],
                "validUntil": "2020-01-01T00:00:00Z" if score == 9 else "2099-01-01T00:00:00Z",
            },
        }
        for cluster in clusters
        for score in range(10)
    )

    async def get(self, *_: Any) -> Any:
        raise Forbidden("no")

    watch = get

    async def list(self, kind: Kind, _: str | None = None, **__: Any) -> ObjectList:
        items: Iterable[Any] = ()
        if kind is MANAGED_CLUSTER:
            items = self.clusters
        elif kind is ADD_ON_PLACEMENT_SCORE:
            items = self.scores
        return ObjectList(tuple(items), "1")


async def test_the_overview_of_a_large_fleet_fits_and_says_what_it_left_out() -> None:
    hub: Any = _LargeHub()
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        result = await client.call_tool("fleet_overview", {})
        following = await client.call_tool("fleet_overview", {"offset": 12})
    assert result_tokens(result) < MOST_OVERVIEW_TOKENS
    view = result.structured_content
    for name, total in (("clusters", view["total_clusters"]), ("scores", 10)):
        assert len(view[name]) + view["omitted"][name] == total
    assert "Left out: 988 clusters. Next page: offset 12" in result.content[0].text
    assert re.search(r"\nScore score-9 .*; expired on 1000", result.content[0].text)
    assert (
        "All objects and clusters of a finding: diagnose with its name." in result.content[0].text
    )
    assert following.structured_content["clusters"][0]["name"] == "cluster-0012"
    assert view["total_clusters"] == 1000


async def test_the_clusters_of_an_expired_score_are_all_on_its_pages() -> None:
    hub: Any = _LargeHub()
    found, following = list[str](), 0
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        first = (await client.call_tool("diagnose", {})).structured_content
        (score, *_) = (item["name"] for item in first["findings"] if item["stage"] == "score")
        while True:
            page = await client.call_tool("diagnose", {"name": score, "offset": following})
            text = page.content[0].text
            about = re.search(r"They are about (.*)\.", text)
            assert about
            found += about[1].split(", ")
            if not (left := re.search(r"Next page: offset (\d+)", text)):
                break
            following = int(left[1])
    assert sorted(found) == sorted(item["metadata"]["name"] for item in hub.clusters)


DEFAULT_ANSWERS: dict[str, dict[str, Any]] = {
    "fleet_overview": {},
    "list_scores": {},
    "describe_scorer": {"name": "carbon"},
    "describe_workload": {"name": "mwrs-app01"},
    "plan_placement": {},
    "explain_placement": {"workload": "mwrs-app01"},
    "compare_plans": {"objectives": ["performance", "power"]},
    "follow_rollout": {},
    "plan_history": {},
    "kept_placements": {},
    "diagnose": {},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at_large() -> AsyncIterator[Client[Any]]:
    """A client of 42 clusters, 120 workloads and 42 scorers, of which 40 fail each by a cause."""
    hub = await wide()
    scorer = await hub.get(DYNAMIC_SCORER, "carbon", HUB_NAMESPACE)
    for number in range(40):
        metadata = {"name": f"scorer-{number:02}", "namespace": HUB_NAMESPACE}
        made = DYNAMIC_SCORER.object(metadata=metadata, spec=scorer["spec"])
        why = {"type": "Ready", "status": "False", "reason": f"Cause{number}", "message": "no"}
        why["lastTransitionTime"] = "2026-11-01T00:00:00Z"
        await put(hub, {**made, "status": {"healthStatus": "Inactive", "conditions": [why]}})
    like = await hub.get(MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default")
    for number in range(118):
        name = f"train-{number:03}"
        labels = like["metadata"]["labels"]
        metadata = {"name": name, "namespace": "default", "labels": labels}
        spec = {**like["spec"], "placementRefs": [{"name": f"{name}-placement"}]}
        await put(hub, {**MANIFEST_WORK_REPLICA_SET.object(metadata=metadata, spec=spec)})
    for number in range(40):
        metadata = {"name": f"kept-{number:02}", "namespace": "default"}
        spec = {"preference": request()["preference"]}
        await put(hub, PLACEMENT_OPTIMIZATION.object(metadata=metadata, spec=spec))
        metadata = {"name": f"score-{number:02}", "namespace": "worker02"}
        await put(hub, ADD_ON_PLACEMENT_SCORE.object(metadata=metadata))
    entries = [{"name": f"app-{number}", "value": 1} for number in range(100)]
    metadata = {"name": "score-00", "namespace": "worker01"}
    many = ADD_ON_PLACEMENT_SCORE.object(metadata=metadata)
    await put(hub, {**many, "status": {"scores": entries, "validUntil": "2099-01-01T00:00:00Z"}})
    optimizer = Optimizer(hub, now=utc_now)
    asked = request()
    asked["targetWorkloads"] += [{"name": f"train-{number:03}"} for number in range(118)]
    plan = await optimizer.plan(OptimizeRequest(**asked))
    assert isinstance(plan, Plan)
    await optimizer.apply(plan)
    async with Client(create_mcp(lambda: optimizer)) as client:
        yield client


async def test_each_read_only_tool_has_a_default_answer_that_is_checked(
    at_large: Client[Any],
) -> None:
    assert {tool.name for tool in await at_large.list_tools()} - {"page_data"} == {*DEFAULT_ANSWERS}


@pytest.mark.parametrize("tool", DEFAULT_ANSWERS)
async def test_no_default_answer_exceeds_6000_characters(at_large: Client[Any], tool: str) -> None:
    told = await at_large.call_tool(tool, DEFAULT_ANSWERS[tool])
    assert len(told.content[0].text + json.dumps(told.structured_content)) <= MOST_CHARACTERS


@pytest.mark.parametrize(
    ("tool", "arguments", "item", "of", "field"),
    [
        ("fleet_overview", {}, r"^Not placed: (.*)", "clusters", "name"),
        ("fleet_overview", {}, r"^Not placed: (.*)", "workloads", "name"),
        ("diagnose", {}, r"^scorer (scorer-\S+): ", "findings", "name"),
        ("list_scores", {}, r"^Score (score-\S+) ", "scores", "name"),
        ("list_scores", {"cluster": "worker01"}, r"(app-\d+)\"?=", "entries", "scores"),
        ("kept_placements", {}, r"^(kept-\S+), mode ", "items", "name"),
    ],
)
async def test_pages_name_each_item_once(
    at_large: Client[Any], tool: str, arguments: dict[str, Any], item: str, of: str, field: str
) -> None:
    named, listed = list[str](), list[str]()
    async for told in pages(at_large, tool, arguments):
        for found in re.findall(item, told.content[0].text, re.MULTILINE):
            named += found.split(", ")
        for one in told.structured_content[of]:
            of_one = one[field] if field == "scores" else [one]
            listed += [f"{one['name']} {each['name']}" for each in of_one]
    assert len(named) == len({*named}) >= 40
    assert len(listed) == len({*listed}) > 10  # the structured content is cut to the rest


async def pages(client: Client[Any], tool: str, arguments: dict[str, Any]) -> AsyncIterator[Any]:
    """Each page of an answer, by the call that the page before names."""
    offset = 0
    while True:
        told = await client.call_tool(tool, {**arguments, "offset": offset})
        assert len(told.content[0].text + json.dumps(told.structured_content)) <= MOST_CHARACTERS
        yield told
        following = re.search(r"Next page: offset (\d+)", told.content[0].text)
        if following is None:
            break
        offset = int(following[1])
    with pytest.raises(ToolError, match="nothing left to list"):
        await client.call_tool(tool, {**arguments, "offset": offset + 100})


@pytest.mark.parametrize(
    "what_if", [{}, {"scores": [{"score": "power", "cluster": "worker01", "value": 5}]}]
)
async def test_a_plan_that_is_cut_is_told_in_full_by_the_call_that_it_names(
    at_large: Client[Any], what_if: dict[str, Any]
) -> None:
    told = await at_large.call_tool("plan_placement", {"objective": "power", "what_if": what_if})
    [digest] = re.findall(r"\nAll of it: plan_history with plan (\w+)\.\n", told.content[0].text)
    moves, changes = list[str](), list[str]()
    async for page in pages(at_large, "plan_history", {"plan": digest}):
        text = page.content[0].text
        assert text.startswith(f"Plan {told.structured_content['digest']} is not applied.\n")
        moves += re.findall(r"^(\S+) (?:st|moves|has no place)", text, re.MULTILINE)
        changes += re.findall(r"Placement(?:Binding)? \S+", text)
    assert len(moves) == len({*moves}) == 120
    assert len(changes) == len({*changes}) == sum(told.structured_content["writes"].values())


async def test_pages_of_a_recorded_plan_name_each_workload_once(at_large: Client[Any]) -> None:
    texts = [page.content[0].text async for page in pages(at_large, "plan_history", {})]
    left_out = re.findall(r"^(\S+) got too few", "\n".join(texts), re.MULTILINE)
    assert len(left_out) == len({*left_out}) == 118
    assert sum("Now: not proven" in text for text in texts) == 1


async def test_the_lists_of_the_protocol_do_not_grow_with_the_fleet(at_large: Client[Any]) -> None:
    small = create_mcp(lambda: Optimizer(EmbeddedHub(), now=utc_now))
    async with Client(small) as client:
        for name in ("list_resources", "list_resource_templates", "list_tools", "list_prompts"):
            assert await getattr(at_large, name)() == await getattr(client, name)()


async def test_pages_of_the_overview_name_each_cluster_once(at_large: Client[Any]) -> None:
    names = list[str]()
    async for page in pages(at_large, "fleet_overview", {}):
        for found in re.findall(r"^Clusters: (.*)\.$", page.content[0].text, re.MULTILINE):
            names += found.split(", ")
    assert len(names) == len({*names}) == 42


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client[Any]]:
    """A client of a server that may write, with the guide's power plan in force."""
    hub = await scenario_hub()
    optimizer = Optimizer(hub, now=utc_now)
    async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
        plan = await client.call_tool("plan_placement", {"objective": "power"})
        await client.call_tool("apply_plan", {"digest": plan.structured_content["digest"]})
        assert len(await generated(hub)) == 6
        yield client


Calls = list[tuple[str, dict[str, Any]]]

REQUESTS: dict[str, tuple[Calls, list[str]]] = {
    "Which scores are there, and which cluster is greenest?": (
        [("list_scores", {})],
        [POWER, "best worker01 47.5"],
    ),
    "Optimise for performance, show me first": (
        [("plan_placement", {"objective": "performance"})],
        ["mwrs-app01 moves from 2g.24gb on worker01 to 3g.48gb on", "uncovered at least 2 minutes"],
    ),
    "Why is app01 not on worker02?": (
        [("explain_placement", {"workload": "app01", "cluster": "worker02"})],
        ["mwrs-app01 on cluster worker02: a solution with it is worth as much"],
    ),
    "What if worker02 goes down?": (
        [("plan_placement", {"objective": "power", "what_if": {"lose": ["worker02"]}})],
        ["mwrs-app01 stops on 2g.24gb on worker01: NoCapacityLeft", "moves from"],
    ),
    "Is it compliant yet?": ([("follow_rollout", {})], ["0 of 2 placements", "OCM has not"]),
    "Apply": (
        [("plan_placement", {"objective": "performance"}), ("apply_plan", {})],
        ["Applied 8 changes"],
    ),
    "Roll back": ([("rollback", {}), ("apply_plan", {})], ["Applied 8 changes"]),
}
"""Seven ordinary requests to an assistant: the calls that answer each, and what the answer says."""


async def test_an_explained_plan_is_none_that_was_shown(client: Client[Any]) -> None:
    asked = {"workload": "app01", "objective": "performance: 2, power: 1"}
    told = await client.call_tool("explain_placement", asked)
    digest = told.structured_content["digest"]
    with pytest.raises(ToolError, match="no plan with digest"):
        await client.call_tool("apply_plan", {"digest": digest})


@pytest.mark.parametrize("request_", REQUESTS)
async def test_each_ordinary_request_takes_two_calls_and_1500_tokens(
    client: Client[Any], request_: str
) -> None:
    calls, said = REQUESTS[request_]
    assert len(calls) <= MOST_CALLS
    spent, digest, text = 0.0, "", ""
    for tool, arguments in calls:
        told = {"digest": digest} if tool == "apply_plan" else arguments
        result = await client.call_tool(tool, told)
        spent += result_tokens(result)
        shown = result.structured_content.get("plan") or result.structured_content
        digest = shown.get("digest", digest)
        text += result.content[0].text
    assert spent < MOST_ANSWER_TOKENS
    for part in said:
        assert part in text


@pytest.mark.exhaustive
async def test_of_fifty_calls_at_once_each_is_answered_or_told_to_come_again() -> None:
    optimizer = Optimizer(await scenario_hub(), now=utc_now)
    async with Client(create_mcp(lambda: optimizer)) as client:
        asked = [{"objective": "power", "what_if": {"run": [{"amount": n}]}} for n in range(1, 51)]
        told = await asyncio.gather(
            *(client.call_tool("plan_placement", each, raise_on_error=False) for each in asked)
        )
    refused = [item.content[0].text for item in told if item.is_error]
    assert len(refused) < len(told)
    assert all("try again later" in text for text in refused)


LATE = ("numpy", "highspy", "pulp", "fastapi", "kubernetes", "optimizer.service", "optimizer.plan")
"""What `initialize` needs none of: importing these takes as long as all the rest of a start."""


@pytest.mark.exhaustive
async def test_nothing_that_only_tools_need_is_imported_before_the_first_of_them(
    tmp_path: Path,
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "a", "user": {"token": "t"}}],
            }
        )
    )
    program = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(gc.isenabled(), *sorted(sys.modules), file=sys.stderr))\n"
        f"sys.argv = ['dsf', 'mcp', '--kubeconfig', {str(kubeconfig)!r}]\n"
        "from dsf.cli import main\n"
        "main()\n"
    )
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program],
        input=json.dumps(initialize) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert json.loads(ended.stdout.splitlines()[0])["result"]["serverInfo"]["name"]
    collects, *imported = ended.stderr.splitlines()[-1].split()
    assert collects == "True"
    assert "mcp_server.server" in imported
    assert [name for name in LATE if name in imported] == []


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_plan_that_takes_its_time_tells_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, era: Any
) -> None:
    monkeypatch.setattr("optimizer.operations.access.caller.TOLD_EVERY_SECONDS", REPORT_SECONDS)
    told = list[tuple[float, str | None]]()

    async def hear(progress: float, _: float | None, message: str | None) -> None:
        told.append((progress, message))

    slow = SlowScores(await scenario_hub())
    server = create_mcp(lambda: Optimizer(slow, now=utc_now))
    logged = list[tuple[str, str]]()

    async def log(message: LogMessage) -> None:
        logged.append((message.level, message.data["msg"]))

    async with Client(server, mode=era, progress_handler=hear, log_handler=log) as client:
        await client.call_tool("plan_placement", {"objective": "performance"})
        with pytest.raises(ToolError):
            await client.call_tool("plan_placement", {"objective": "nothing"})
    assert logged[0] == ("debug", "Planning: 0 s")
    assert re.fullmatch(r"Planning: done after \d+\.\d s", logged[-2][1])
    assert logged[-1][0] == "warning"
    assert re.match(r'"plan_placement": .*no score is named nothing', logged[-1][1])
    assert told[0][1] == "Planning: 0 s"
    assert [seconds for seconds, _ in told] == sorted({seconds for seconds, _ in told})
