"""A score of which lower values are better is never maximised by accident."""

from typing import Any

import pytest
from fastmcp import Client

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden
from dsf.kube.port import Object
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call
from tests.optimizer.api.test_app import client, problem
from tests.optimizer.build import body, obj
from tests.optimizer.hubs import hub_of


async def hub_with(direction: str | None, **meaning: Any) -> EmbeddedHub:
    """The guide's hub, whose controller says something about the score power."""
    hub = await hub_of()
    spec = {"description": "watts", "configURL": "http://scorer/config"}
    spec |= {"scoreDimensionFormat": "${app};${device}"}
    scorer = obj(kinds.DYNAMIC_SCORER, "energy", HUB_NAMESPACE, spec=spec)
    await hub.create(kinds.DYNAMIC_SCORER, scorer)
    said = {**meaning, **({"direction": direction} if direction else {})}
    status = {"status": {"scoreName": "power", "meaning": said}}
    await hub.patch(kinds.DYNAMIC_SCORER, "energy", status, HUB_NAMESPACE, subresource="status")
    return hub


def asked(*, first: str = "power", invert: bool = False, **more: Any) -> dict[str, Any]:
    found = {**body(first), "dryRun": True, **more}
    found["preference"] = {**found["preference"], "invert": invert}
    return found


def reasons(answer: Object) -> set[str]:
    return {gap["reason"] for gap in answer["gaps"]}


async def test_it_is_refused_with_what_to_do() -> None:
    async with client(await hub_with("LowerIsBetter")) as http:
        answer = await http.post("/optimize", json=asked())
    found = problem(answer, 422, "LowerIsBetter")
    assert [error["field"] for error in found["errors"]] == ["preference.invert"]
    assert "set invert to true to prefer them, with minimum -100 and maximum 101" in found["detail"]


async def test_the_advice_is_what_the_request_needs_to_prefer_lower_values() -> None:
    async with client(await hub_with("LowerIsBetter", range={"min": 0, "max": 100})) as http:
        refused = problem(await http.post("/optimize", json=asked()), 422, "LowerIsBetter")
        assert "with minimum 0 and maximum 101" in refused["detail"]
        advised = asked(invert=True)
        advised["preference"] |= {"minimum": 0, "maximum": 101}
        answer = (await http.post("/optimize", json=advised)).json()
    # Two workloads of two devices each fit on 3g.48gb, with the powers 30 and 55.
    assert (answer["objective_value"], reasons(answer)) == (
        pytest.approx(100 * (71 + 46) / 101),
        set(),
    )


@pytest.mark.parametrize("objective", [{"power": 1}, {"performance": 0.5, "power": 2}])
@pytest.mark.parametrize("value", [None, 100])
async def test_a_question_prefers_lower_values_and_still_places(
    objective: dict[str, float], value: int | None
) -> None:
    hub = await hub_with("LowerIsBetter")
    for cluster in ("worker01", "worker02") if value else ():
        score = await hub.get(kinds.ADD_ON_PLACEMENT_SCORE, "power", cluster)
        scores = [{**item, "value": value} for item in score["status"]["scores"]]
        changed = {"status": {**score["status"], "scores": scores}}
        await hub.patch(
            kinds.ADD_ON_PLACEMENT_SCORE, "power", changed, cluster, subresource="status"
        )
    async with client(hub) as http:
        answer = (await http.post("/plan", json={"objective": objective})).json()
    assert {item["action"] for item in answer["moves"]} == {"starts"}
    counted = [answer["request"]["preference"], *answer["request"].get("objectives", [])][-1]
    ends = {name: counted[name] for name in ("invert", "minimum", "maximum")}
    assert ends == {"invert": True, "minimum": -100, "maximum": 101}


async def test_a_further_objective_is_refused_too_unless_it_has_no_weight() -> None:
    power = {"addonPlacementScore": "power"}
    async with client(await hub_with("LowerIsBetter")) as http:
        more = asked(first="performance", objectives=[power])
        found = problem(await http.post("/optimize", json=more), 422, "LowerIsBetter")
        assert [error["field"] for error in found["errors"]] == ["objectives[0].invert"]
        unweighted = asked(first="performance", objectives=[{**power, "weight": 0}])
        assert (await http.post("/optimize", json=unweighted)).status_code == 200


async def test_it_may_be_limited() -> None:
    limit = {"name": "watts", "maximum": 500, "score": {"addonPlacementScore": "power"}}
    async with client(await hub_with("LowerIsBetter")) as http:
        answer = await http.post("/optimize", json=asked(first="performance", limits=[limit]))
    assert answer.status_code == 200


@pytest.mark.parametrize("direction", [None, "HigherIsBetter"])
async def test_requests_of_the_contract_keep_their_meaning(direction: str | None) -> None:
    async with client(await hub_with(direction)) as http:
        answer = (await http.post("/optimize", json=asked())).json()
    assert (answer["objective_value"], reasons(answer)) == (170.0, set())


async def test_a_score_that_is_inverted_twice_is_an_issue() -> None:
    async with client(await hub_with("HigherIsBetter")) as http:
        answer = (await http.post("/optimize", json=asked(invert=True))).json()
    assert reasons(answer) == {"InvertedAgainstDirection"}


async def test_an_optimizer_that_may_not_list_scorers_says_so() -> None:
    def forbid(call: Call) -> Fault | None:
        hidden = call.kind == kinds.DYNAMIC_SCORER
        return Fault(Forbidden("no right to list them")) if hidden else None

    async with client(Faulty(await hub_of(), forbid)) as http:
        answer = await http.post("/optimize", json=asked(first="performance"))
    assert reasons(answer.json()) == {"DirectionsUnknown"}


async def test_the_list_of_scores_says_what_they_mean() -> None:
    hub = await hub_with("LowerIsBetter", unit="W", displayName="Power draw")
    async with client(hub) as http:
        items = (await http.get("/addonplacementscores?name=power")).json()["items"]
        others = (await http.get("/addonplacementscores?name=performance")).json()["items"]
    assert {(item["display_name"], item["unit"], item["direction"]) for item in items} == {
        ("Power draw", "W", "LowerIsBetter")
    }
    assert {item["direction"] for item in others} == {None}


async def test_a_comparison_says_of_which_score_lower_values_are_better() -> None:
    hub = await hub_with("LowerIsBetter")
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as mcp:
        found = await mcp.call_tool("compare_plans", {"objectives": ["power", "performance"]})
    assert found.content[0].text.startswith(
        "Lower values of power are better: -100 counts as 100, and 101 as 0.\n"
    )
