"""What is kept placed, asked by an assistant over a socket: why nothing moves, and an approval."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, PLACEMENT_OPTIMIZATION
from mcp_server.server import create_mcp
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer
from tests.evals.fleets import guide, kept
from tests.eventually import eventually
from tests.mcp_server.service import PERFORMANCE, Service, generated, request, scenario_hub, serving

NAMED = {"name": "inference"}


async def declare(service: Service, mode: str) -> None:
    """Declare what is kept; the service looks at it by itself."""
    spec = {key: value for key, value in request().items() if key != "namespace"}
    kept = {"metadata": {**NAMED, "namespace": "default"}, "spec": {**spec, "mode": mode}}
    await service.hub.create(PLACEMENT_OPTIMIZATION, kept)


async def told(client: Client[Any], tool: str = "kept_placements", **said: Any) -> tuple[str, Any]:
    found = await client.call_tool(tool, said)
    assert found.structured_content is not None
    return found.content[0].text, found.structured_content


async def told_of(client: Client[Any], reason: str) -> tuple[str, Any]:
    """Ask until a look has come to this."""

    async def found() -> tuple[str, Any] | None:
        text, view = await told(client)
        items = [item for item in view["items"] if item["reason"] == reason]
        return (text, items[0]) if items else None

    return await eventually(found)


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_plan_that_waits_is_told_and_approved_after_a_yes(era: Any) -> None:
    questions: list[str] = []

    async def yes(message: str, *_: object) -> ElicitResult[Any]:
        questions.append(message)
        return ElicitResult(action="accept", content={"confirm": True})

    async with serving(read_only=False) as service:
        await declare(service, "Approve")
        async with Client(service.mcp, mode=era, elicitation_handler=yes) as client:
            text, kept = await told_of(client, "AwaitingApproval")
            assert text.startswith("inference, mode Approve, is not fine: AwaitingApproval: ")
            assert (
                f"Plan {kept['waiting']} waits for an approval: it moves, starts or stops 2 of"
                in text
            )
            assert "has to gain more than the largest of: its move cost, 10 points" in text
            assert "kept_placements with name inference lists its moves." in text
            text, view = await told(client, name="infer")
            assert "mwrs-app01 starts on " in text
            assert [item["action"] for item in view["moves"]] == ["starts", "starts"]
            for said in ({"optimization": "inference"}, {"plan": kept["waiting"][:12]}):
                with pytest.raises(ToolError, match=r"waits for an approval.*lists its moves"):
                    await told(client, "plan_history", **said)
            with pytest.raises(ToolError, match=r"does not wait.*\n?Next: call kept_placements"):
                await told(client, "approve_kept_plan", **NAMED, digest="0" * 64)
            with pytest.raises(ToolError, match="Next: kept_placements lists them"):
                await told(client, "approve_kept_plan", name="none", digest=kept["waiting"])
            text, view = await told(
                client, "approve_kept_plan", **NAMED, digest=kept["waiting"], namespace="default"
            )
            assert "is fine: Approved: " in text
            assert "was approved: the optimizer applies it when it sees that" in text
            assert "kubectl annotate" not in text
            assert view["items"][0]["approved"] is True
            text, _ = await told_of(client, "Planned")
            assert '"0 of 2 replicas landed' in text
            assert (await told(client, name="infer"))[1]["items"][0]["status"]["gain"] == 0
        assert "app01-placement" in await generated(service.hub)
    if era == "legacy":  # over HTTP such a client can't be asked, and names the digest itself
        assert questions == []
    else:
        (question,) = questions
        assert question.startswith("Let the plan that waits be applied on the hub, namespace")
        assert "It moves, starts or stops 2 of 2 workloads, gains " in question


async def kept_hub(
    **rules: float,
) -> tuple[EmbeddedHub, Optimizer, Callable[[], Awaitable[object]]]:
    """The guide's fleet, which `prod` keeps with these rules, and what looks at it once more."""
    hub = await guide()
    hysteresis = {"stabilizationWindowSeconds": 0, "variationMultiple": 0, **rules}
    spec = {"preference": request()["preference"], "mode": "Apply", "hysteresis": hysteresis}
    metadata = {"name": "prod", "namespace": "default"}
    await hub.create(PLACEMENT_OPTIMIZATION, {"metadata": metadata, "spec": spec})
    optimizer = Optimizer(hub, now=utc_now)
    controller = OptimizationController(optimizer, read_only=False)

    async def look() -> None:
        await controller.look("default", "prod")

    await look()
    return hub, optimizer, look


async def rescore(hub: EmbeddedHub, cluster: str, **values: int) -> None:
    """Give entries other values: `app01_3g` is that of app01 on 3g.48gb."""
    name = PERFORMANCE
    score = await hub.get(ADD_ON_PLACEMENT_SCORE, name, cluster)
    for item in score["status"]["scores"]:
        app, device = item["name"].split(";")
        item["value"] = values.get(f"{app}_{device[:2]}", item["value"])
    await hub.patch(
        ADD_ON_PLACEMENT_SCORE, name, {"status": score["status"]}, cluster, subresource="status"
    )


async def test_what_is_on_offer_is_told_as_the_sum_of_moves_that_each_gain_too_little() -> None:
    hub, optimizer, look = await kept_hub(leastGain=10)
    await rescore(hub, "worker02", app01_3g=69)
    await rescore(hub, "worker01", app02_3g=64)
    await look()
    async with Client(create_mcp(lambda: optimizer, read_only=True)) as client:
        text, _ = await told(client)
    assert "leastGain 10 points" in text
    assert 'on offer: 18 for 2 moves". Gain on offer, of all moves together: 18.0.' in text
    assert "Rule: each move for a better score has to gain more than the largest of: its" in text


async def test_a_look_that_is_overdue_is_told_instead_of_that_all_is_fine() -> None:
    hub = await kept()
    later = Optimizer(hub, now=lambda: utc_now() + timedelta(hours=1))
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now), read_only=True)) as client:
        text, _ = await told(client, name="inference")
    async with Client(create_mcp(lambda: later, read_only=True)) as client:
        overdue, _ = await told(client, name="inference")
    assert text.startswith("inference, mode Approve, is not fine: AwaitingApproval: ")
    assert "Next look, if nothing changes: 2" in text
    assert overdue.startswith(
        'inference, mode Approve, is not fine: Overdue: "its next look was due at 2'
    )
    assert "so no optimizer seems to keep it. Told last: AwaitingApproval: " in overdue
    assert "Next look" not in overdue


async def test_a_reset_says_that_what_is_kept_is_placed_again() -> None:
    hub, optimizer, look = await kept_hub()
    again = "PlacementOptimization prod places again at its next look, unless it is suspended or"
    async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
        text, view = await told(client, "reset_placements", namespace="default")
        assert again in text
        other, _ = await told(
            client, "reset_placements", namespace="default", optimization="default"
        )
        text, _ = await told(client, "reset_placements", namespace="default", digest=view["digest"])
        assert again in text
        assert await generated(hub) == []
        await look()
        assert "app01-placement" in await generated(hub)
        await hub.patch(PLACEMENT_OPTIMIZATION, "prod", {"spec": {"suspend": True}}, "default")
        await look()
        resting, _ = await told(client, "reset_placements", namespace="default")
    assert again not in other + resting


async def test_an_approval_takes_a_part_of_a_name_that_only_one_has() -> None:
    hub = await kept()
    for name in ("infer", "inference-b"):
        spec = {"preference": request()["preference"], "mode": "Plan"}
        metadata = {"name": name, "namespace": "default"}
        await hub.create(PLACEMENT_OPTIMIZATION, {"metadata": metadata, "spec": spec})
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now), read_only=False)) as client:
        _, view = await told(client, name="inference")
        digest = view["items"][0]["waiting"]

        async def approved(name: str) -> str:
            return (await told(client, "approve_kept_plan", name=name, digest=digest[:12]))[0]

        with pytest.raises(ToolError, match=r"ambiguous; .* infer, inference, inference-b"):
            await approved("inf")
        with pytest.raises(ToolError, match="PlacementOptimization infer has mode Plan"):
            await approved("infer")
        with pytest.raises(ToolError, match=r"near names: training.*\nNext: kept_placements"):
            await approved("trainings")
        assert (await approved("inference")).startswith("inference, mode Approve, is fine")
        await hub.delete(PLACEMENT_OPTIMIZATION, "infer", "default")
        await hub.delete(PLACEMENT_OPTIMIZATION, "inference-b", "default")
        text = await approved("ference")
    assert text.startswith("inference, mode Approve, is fine: Approved: ")


async def test_plans_are_compared_for_the_optimization_that_is_meant() -> None:
    _, optimizer, _ = await kept_hub()
    async with Client(create_mcp(lambda: optimizer)) as client:
        asked = {"objectives": ["performance"]}
        _, alone = await told(client, "compare_plans", **asked)
        _, named = await told(client, "compare_plans", **asked, optimization="prod")
        _, other = await told(client, "plan_placement", objective="performance")
    assert alone["plans"] == named["plans"]
    assert alone["plans"][0]["digest"] == other["digest"]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("compare_plans", {"objectives": ["power"]}),
        ("explain_placement", {"workload": "app01", "objective": "power"}),
    ],
)
async def test_of_several_optimizations_one_has_to_be_named(tool: str, said: Any) -> None:
    hub = await kept()
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        with pytest.raises(ToolError, match=r'^"optimization: .* inference, training: name one"'):
            await client.call_tool(tool, said)
        for name in ("inference", "training"):
            found = await client.call_tool(
                tool, {**said, "optimization": name}, raise_on_error=False
            )
            assert "name one" not in found.content[0].text


async def test_what_is_kept_elsewhere_is_planned_only_if_it_is_named() -> None:
    hub = await kept()
    asks = {"objective": "performance", "request": {"optimization": "training"}}
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        left, view = await told(client, "plan_placement", **asks)
        named, _ = await told(client, "plan_placement", **asks, workloads=["app01", "app02"])
        about = {"workload": "app01", "objective": "performance", "optimization": "training"}
        explained, _ = await told(client, "explain_placement", **about)
        objectives = {"objectives": ["performance"], "optimization": "training"}
        compared, _ = await told(client, "compare_plans", **objectives)
    assert "not planned: mwrs-app01, which PlacementOptimization inference keeps; named" in compared
    assert [move["workload"] for move in view["moves"]] == ["mwrs-app02"]
    assert "not planned: mwrs-app01, which PlacementOptimization inference keeps; named" in left
    assert "PlacementOptimization inference keeps mwrs-app01 too, and plans it again" in named
    assert "mwrs-app01" in explained


async def test_a_workload_without_a_place_says_which_plan_that_waits_would_place_it() -> None:
    hub = await kept()
    waits = "of PlacementOptimization inference waits for approval"
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now), read_only=False)) as client:
        digest = (await told(client, name="inference"))[1]["items"][0]["waiting"]
        said = f"mwrs-app01 (2 gpu) has no place yet: plan {digest[:12]} {waits}"
        for tool, names in (
            ("describe_workload", {"name": "app01"}),
            ("diagnose", {"name": "app01"}),
            ("fleet_overview", {}),
        ):
            text, _ = await told(client, tool, **names)
            assert "mwrs-app01: AwaitingApproval since " in text
            assert said in text
            assert "plan_placement" not in text
            assert "kept_placements with name inference shows it; approve_kept_plan, or" in text
        await told(client, "approve_kept_plan", name="inference", digest=digest)
        text, _ = await told(client, "describe_workload", name="app01")
        assert "inference was approved, but is not applied yet, and would place it" in text
        await hub.patch(PLACEMENT_OPTIMIZATION, "inference", {"spec": {"mode": "Plan"}}, "default")
        text, _ = await told(client, "describe_workload", name="app01")
        assert "no plan in force was asked to place it" in text


async def test_a_move_that_is_undone_where_it_is_kept_says_that_it_may_be_made_again() -> None:
    hub, optimizer, look = await kept_hub(leastGain=0)
    await rescore(hub, "worker01", app01_2g=99)
    await look()
    again = "PlacementOptimization prod plans again at its next look, and may move this back"
    questions: list[str] = []

    async def yes(message: str, *_: object) -> ElicitResult[Any]:
        questions.append(message)
        return ElicitResult(action="accept", content={"confirm": True})

    server = create_mcp(lambda: optimizer, read_only=False)
    async with Client(server) as client:
        undone, view = await told(client, "rollback", workload="app01")
        applied, _ = await told(client, "apply_plan", digest=view["plan"]["digest"])
    await look()
    async with Client(server, elicitation_handler=yes) as client:
        text, _ = await told(client, "rollback", workload="app01")
    assert "Puts mwrs-app01 back" in text
    for shown in (undone, applied, text, *questions):
        assert again in shown
    assert len(questions) == 1


async def test_a_read_only_server_says_so_and_has_no_tool_that_approves() -> None:
    async with serving() as service, Client(service.mcp) as client:
        text, _ = await told(client)
        assert "so nothing moves until somebody plans and applies. Next: plan_placement" in text
        await declare(service, "Approve")
        text, _ = await told_of(client, "ReadOnly")
        assert "allow writes (the chart's allowWrites)" in text
        with pytest.raises(ToolError, match="Unknown tool"):
            await told(client, "approve_kept_plan", **NAMED, digest="0" * 64)


async def test_an_answer_says_how_old_it_is_if_a_watch_told_it() -> None:
    async with serving() as service, Client(service.mcp) as client:

        async def aged() -> Any:
            found = await client.call_tool("fleet_overview", {})
            return found if "age_seconds" in found.structured_content else None

        found = await eventually(aged)  # once the hub is watched
        age = found.structured_content["age_seconds"]
        assert found.content[-1].text == f"Read from the hub at most {age} s ago."
    hub = await scenario_hub()
    unwatched = create_mcp(lambda: Optimizer(hub, now=utc_now))
    async with Client(unwatched) as client:
        found = await client.call_tool("fleet_overview", {})
        assert "age_seconds" not in found.structured_content
        assert len(found.content) == 1
