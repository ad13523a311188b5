"""Plans in force and before: who asked for what, proof, what changed, YAML, one move undone."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
import yaml
from fastmcp import Client

from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from mcp_server.results.history_results import now_text
from mcp_server.server import create_mcp
from optimizer.follow.record.content import RecordContent, packed, unpacked
from optimizer.follow.record.recorded_plan import record_digest
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from tests.evals import fleets
from tests.evals.fleets import moved
from tests.mcp_server import service
from tests.mcp_server.service import PERFORMANCE, POWER, generated
from tests.mcp_server.test_repeats import failed_plan, server
from tests.optimizer.build import NOW, body, guide, request, workload
from tests.optimizer.hubs import hub_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub() -> EmbeddedHub:
    """The guide's fleet: placed for performance by ada, then for power by grace."""
    return await moved()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(hub: EmbeddedHub) -> AsyncIterator[Client[Any]]:
    optimizer = Optimizer(hub, now=utc_now)
    async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
        yield client


async def said(client: Client[Any], tool: str = "plan_history", **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments, raise_on_error=False)
    return str(result.content[0].text)


async def test_the_last_plan_is_told_with_its_author_proof_and_changes(
    hub: EmbeddedHub, client: Client[Any]
) -> None:
    told = await client.call_tool("plan_history", {})
    text, view = told.content[0].text, told.structured_content
    records = {item["spec"]["revision"]: item for item in await _records(hub)}
    for part in (
        f"plan {records[2]['spec']['digest'][:12]}",
        "asked for by grace, Applied",
        f"Objective: {POWER} x 1. Then: proven best, worth 170.",
        "mwrs-app02 moves from 3g.48gb on worker02 to 2g.24gb on worker02.",
        "Objects, delete: PlacementBinding ",
        'asked for by ada, Superseded, "revision 2 was applied"',
        "Now: not proven, because nobody planned again",
    ):
        assert part in text
    assert [item["requested_by"] for item in view["plans"]] == ["grace", "ada"]
    assert len(view["moved"]) == 2
    first = await said(client, plan="1")
    assert "mwrs-app01 starts on 3g.48gb on worker01." in first
    assert first == await said(client, plan=records[1]["spec"]["digest"][:8])
    assert first == await said(client, plan=records[1]["spec"]["digest"], optimization="other")


async def test_proof_now_is_made_by_planning_again(hub: EmbeddedHub, client: Client[Any]) -> None:
    assert "Now: it is proven best: planned again for the same" in await said(client, prove=True)
    score = await hub.get(kinds.ADD_ON_PLACEMENT_SCORE, POWER, "worker01")
    other = [{**item, "value": 1} for item in score["status"]["scores"] if "2g" in item["name"]]
    rest = [item for item in score["status"]["scores"] if "2g" not in item["name"]]
    changed = {"status": {"scores": [*other, *rest]}}
    await hub.patch(kinds.ADD_ON_PLACEMENT_SCORE, POWER, changed, "worker01", subresource="status")
    assert "Now: it is not the best any more: a plan for the same" in await said(client, prove=True)
    await hub.patch(
        kinds.ADD_ON_PLACEMENT_SCORE, POWER, {"status": score["status"]}, "worker01",
        subresource="status",
    )  # fmt: skip
    assert "Now" not in await said(client, plan="1", prove=True)


async def test_the_plan_in_force_is_proven_where_a_newer_one_failed() -> None:
    async with server(await failed_plan(kinds.PLACEMENT, kinds.PLACEMENT_BINDING)) as client:
        lines = (await said(client, prove=True)).splitlines()
        failed = await said(client, plan="2", prove=True)
    told = lines[0].split(" (plan ")[0], lines[1].split(" of ")[0], lines[-1].split(":")[1]
    assert told == ('In force: "revision 1', "Revision 1", " it is proven best")
    assert '; nothing of a later plan was written: revision 2 is Failed: \\"the hub' in lines[0]
    assert "mwrs-app01 starts on 3g.48gb on worker01." in lines
    assert "\nmwrs-app02 was to move from 3g.48gb on worker02 to 2g.24gb on worker02." in failed
    assert "\nObjects it was to create: Placement" in failed
    assert "Now: " not in failed


async def test_a_plan_that_was_never_proven_best_and_counts_less_as_better_is_told_so() -> None:
    hub = await fleets.guide()
    optimizer = Optimizer(hub, now=utc_now)
    ends = {"invert": True, "minimum": 0, "maximum": 100}
    asked = {**service.request(), "preference": {"addonPlacementScore": POWER, **ends}}
    asked["preference"]["scoreDimensionFormat"] = "${app};${device}"
    plan = await optimizer.plan(OptimizeRequest(**asked))
    assert isinstance(plan, Plan)
    bound = plan.solution.objective_value * 2.5
    unproven = replace(plan.solution, status="Feasible", bound=bound)
    await optimizer.apply(replace(plan, solution=unproven))
    score = await hub.get(kinds.ADD_ON_PLACEMENT_SCORE, POWER, "worker01")
    turned = [{**item, "value": 99 - item["value"]} for item in score["status"]["scores"]]
    await hub.patch(
        kinds.ADD_ON_PLACEMENT_SCORE, POWER, {"status": {"scores": turned}}, "worker01",
        subresource="status",
    )  # fmt: skip
    async with server(hub) as client:
        told = await said(client, prove=True)
    assert f"Lower values of {POWER} are better: 0 counts as 100, and 100 as 0." in told
    assert "Then: not proven best (at most 150% more is possible), worth" in told
    assert "Now: it is not the best: a plan for the same, worth" in told


async def test_what_waits_as_before_is_no_change() -> None:
    third = workload("mwrs-app03", "app03", 1)
    hub = await hub_of(replace(guide(), workloads=(*guide().workloads, third)))
    service = Optimizer(hub, now=lambda: NOW)
    asked = request(targetWorkloads=[*body()["targetWorkloads"], {"name": "mwrs-app03"}])
    first = await service.plan(asked)
    assert isinstance(first, Plan)
    await service.apply(first)
    assert now_text(await service.plan(asked)).startswith("Now: it is proven best")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            {"plan": "9"},
            [
                "revision or digest 9; there are revision 2 of optimization default of 20",
                "revision 1 of",
            ],
        ),
        (
            {"plan": "2020-01-01T00:00:00Z"},
            ["no plan that is kept", "revision 2 of optimization default of 20"],
        ),
        (
            {"plan": "abc"},
            ["no plan that is kept", "Next: plan_history without plan lists recorded ones"],
        ),
        (
            {"optimization": "team-b"},
            ["team-b of namespace default has no recorded plan; these have: default"],
        ),
        (
            {"namespace": "worker01"},
            ["namespace worker01 has no recorded plan; other namespaces with workloads: default"],
        ),
        ({"namespace": "Not a name"}, ["namespace: "]),
        ({"objects": "Secret"}, ["No object that you may list", "Placement, PlacementBinding"]),
    ],
)
async def test_what_is_not_kept_is_told_with_what_is(
    client: Client[Any], arguments: dict[str, Any], parts: list[str]
) -> None:
    text = await said(client, **arguments)
    assert [part for part in parts if part not in text] == []


async def test_an_optimization_with_another_name_is_meant_where_it_is_the_only_one() -> None:
    hub = await fleets.guide()
    optimizer = Optimizer(hub, now=utc_now)
    await placed(optimizer, "nightly", "mwrs-app01")
    async with Client(create_mcp(lambda: optimizer, read_only=True)) as client:
        assert "Revision 1 of optimization nightly" in await said(client, plan="1")
        assert "there are revision 1 of optimization nightly" in await said(client, plan="2222")
        assert "placements of optimization nightly" in await said(client, "follow_rollout")
        values = {"app01;2g.24gb": 99, "app02;2g.24gb": 9}
        entries = [{"name": name, "value": value} for name, value in values.items()]
        better = {"status": {"scores": entries}}
        for cluster in ("worker01", "worker02"):
            await hub.patch(
                kinds.ADD_ON_PLACEMENT_SCORE, PERFORMANCE, better, cluster, subresource="status"
            )
        proof = await said(client, prove=True)
        following = "plan_placement with namespace default and request.optimization nightly"
        assert f"Next: {following} shows one." in proof
        await placed(optimizer, "weekly", "mwrs-app02")
        named = "optimization: namespace default has the optimizations nightly, weekly: name one"
        for tool in ("plan_history", "follow_rollout"):
            assert named in await said(client, tool)
        await optimizer.reset("default", optimization="weekly")
        empty = await said(client, "follow_rollout", optimization="weekly")
        assert "Other optimizations there have plans: nightly." in empty
    await optimizer.reset("default")
    none = "no rollout is in progress in namespace default"
    async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
        assert (await said(client, "change_rollout", action="pause")).startswith(f'"{none}"\n')
        await placed(optimizer, "nightly", "mwrs-app01", rollout="Stepwise")
        paused = await said(client, "change_rollout", action="pause")
        assert "optimization nightly" in paused
        await said(client, "change_rollout", action="cancel")
        ended = await said(client, "change_rollout", action="pause")
        assert f"{none}; the last one, nightly-" in ended
        assert " of optimization nightly, ended: Cancelled" in ended


async def placed(optimizer: Optimizer, name: str, workload: str, **further: str) -> None:
    asked = {**service.request(), "optimization": name, **further}
    asked["targetWorkloads"] = [{"name": workload}]
    plan = await optimizer.plan(OptimizeRequest(**asked))
    assert isinstance(plan, Plan)
    await optimizer.apply(plan)


async def test_objects_are_shown_as_the_hub_has_them(hub: EmbeddedHub, client: Client[Any]) -> None:
    one = yaml.safe_load(await said(client, objects="Placement app01"))
    there = await hub.get(kinds.PLACEMENT, "app01-placement", "default")
    assert one["spec"] == there["spec"]
    assert one["metadata"]["uid"] == there["metadata"]["uid"]
    text = await said(client, objects="plan")
    [*shown] = yaml.safe_load_all(text)
    left = re.findall(r"Placement \S+", text.splitlines()[-1])
    assert len(text) < 5_200
    assert len(shown) + len(left) == 6
    gone = (await said(client, objects="plan", plan="1")).splitlines()[0]
    assert "gone, or not yours to list, so as it was recorded: Placement placement-worker01" in gone
    record = yaml.safe_load(await said(client, objects="placementplans default-1"))
    assert record["spec"]["content"] == "(packed)"


async def test_one_move_is_undone_by_a_plan_that_waits_for_its_digest(
    hub: EmbeddedHub, client: Client[Any]
) -> None:
    before = await generated(hub)
    shown = await client.call_tool("rollback", {"workload": "app02"})
    plan = shown.structured_content["plan"]
    assert {item["workload"]: item["action"] for item in plan["moves"]} == {
        "mwrs-app02": "moves",
        "mwrs-app01": "stays",
    }
    assert await generated(hub) == before
    assert "app is ambiguous; workloads that match: " in await said(
        client, "rollback", workload="app"
    )
    await client.call_tool("apply_plan", {"digest": plan["digest"]})
    told = await said(client)
    assert "Revision 3" in told
    assert "mwrs-app02 moves from 2g.24gb on worker02 to 3g.48gb on worker02." in told
    assert "mwrs-app01 " not in told
    assert "restored workload mwrs-app02 of revision 1" in told


@pytest.mark.parametrize("forged", [False, True])
async def test_a_record_that_somebody_edited_or_made_says_nothing(*, forged: bool) -> None:
    other = await moved()
    [record, *_] = [item for item in await _records(other) if item["spec"]["revision"] == 2]
    await other.delete(kinds.PLACEMENT_PLAN, "default-2", "default")
    metadata = {"name": "default-2", "namespace": "default"}
    spec = {**record["spec"], "requestedBy": "eve"}
    if forged:
        content = unpacked(spec["content"], RecordContent)
        assert isinstance(content, RecordContent)
        spec["content"] = packed(content.model_copy(update={"request": {"preference": 5}}))
        spec["recordDigest"] = record_digest(spec)
    forgery = {**record, "metadata": metadata, "spec": spec}
    await other.create(kinds.PLACEMENT_PLAN, forgery)
    status = {"status": record["status"]}
    await other.patch(kinds.PLACEMENT_PLAN, "default-2", status, "default", subresource="status")
    optimizer = Optimizer(other, now=utc_now)
    async with Client(create_mcp(lambda: optimizer)) as client:
        told, named = await said(client), await said(client, plan="2")
        objects = await said(client, plan="2", objects="plan")
    assert "Revision 1" in told
    assert "not as it was written" in told
    assert "is not as the optimizer wrote it" in named
    assert "eve" not in told + named
    assert "no object of its own" in objects


async def _records(hub: EmbeddedHub) -> list[dict[str, Any]]:
    return [*(await hub.list(kinds.PLACEMENT_PLAN, "default")).items]
