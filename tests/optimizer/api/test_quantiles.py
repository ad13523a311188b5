"""A plan is good at a quantile of a forecast, and a score without it is refused."""

from typing import Any

import pytest

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from tests.optimizer.api.test_app import client, problem
from tests.optimizer.build import PERFORMANCE, body, obj, score
from tests.optimizer.hubs import hub_of

SEVERAL = "${app};${device};${meta}"
DEVICES = {"3g.48gb": "p50", "2g.24gb": "p90"}
"""Which device is the best at which quantile."""


async def _hub(
    form: str = "${app};${device}", forecast: dict[str, Any] | None = None
) -> EmbeddedHub:
    """The guide's hub with a score `load`, and its scorer."""
    hub = await hub_of()
    spec = {
        "description": "free GPUs",
        "configURL": "http://scorer/config",
        "scoreDimensionFormat": form,
    } | ({"forecast": forecast} if forecast else {})
    scorer = obj(kinds.DYNAMIC_SCORER, "load", HUB_NAMESPACE, spec=spec)
    await hub.create(kinds.DYNAMIC_SCORER, scorer)
    status = {"status": {"scoreName": "load"}}
    await hub.patch(kinds.DYNAMIC_SCORER, "load", status, HUB_NAMESPACE, subresource="status")
    entries = {f"{app};{device}": value for (app, device), value in PERFORMANCE.items()}
    if "meta" in form:
        entries = {
            f"{app};{device};{at}": 90 if DEVICES.get(device) == at else 5
            for app, device in PERFORMANCE
            for at in ("p50", "p90")
        }
    for name in ("worker01", "worker02"):
        published = score(name, "load", entries)
        await hub.create(kinds.ADD_ON_PLACEMENT_SCORE, published)
        await hub.patch(
            kinds.ADD_ON_PLACEMENT_SCORE,
            "load",
            {"status": published["status"]},
            name,
            subresource="status",
        )
    return hub


def _asked(at: str | None, **more: Any) -> dict[str, Any]:
    preference = {"addonPlacementScore": "load", **({"at": at} if at else {}), **more}
    return {**body(), "preference": preference, "dryRun": True}


@pytest.mark.parametrize(("at", "device"), [("p50", "3g.48gb"), ("p90", "2g.24gb")])
async def test_entries_of_the_quantile_count(at: str, device: str) -> None:
    async with client(await _hub(SEVERAL)) as http:
        answer = (await http.post("/optimize", json=_asked(at))).json()
    places = [place for move in answer["moves"] for place in move["after"]]
    assert {place["device"] for place in places} == {device}
    assert [place["scores"] for place in places] == 2 * [{f"load {at}": 90.0}]


async def test_a_quantile_that_no_entry_has_is_named() -> None:
    async with client(await _hub(SEVERAL)) as http:
        answer = (await http.post("/optimize", json=_asked("p99"))).json()
    assert answer["status"] == "Infeasible"
    assert {item["reason"] for item in answer["gaps"]} == {"WrongScoreFormat"}
    assert all("${app};${device};p99" in item["message"] for item in answer["gaps"])


@pytest.mark.parametrize("at", ["p90", None])
async def test_a_scorer_that_forecasts_the_quantile_is_read_as_it_is(at: str | None) -> None:
    forecast = {"horizon": 1800, "truth": {"query": "free"}, "quantile": 0.9}
    async with client(await _hub(forecast=forecast)) as http:
        answer = (await http.post("/optimize", json=_asked(at))).json()
    assert answer["objective_value"] == 115.0


@pytest.mark.parametrize(
    ("forecast", "said"),
    [
        (None, "no DynamicScorer says that it is a forecast"),
        ({"horizon": 60, "truth": {"query": "x"}}, "says that it forecasts p50"),
        ({"horizon": 60, "truth": {"query": "x"}, "quantile": 0.1}, "says that it forecasts p10"),
    ],
)
async def test_a_score_without_the_quantile_is_refused(
    forecast: dict[str, Any] | None, said: str
) -> None:
    async with client(await _hub(forecast=forecast)) as http:
        found = problem(await http.post("/optimize", json=_asked("p90")), 422, "NoSuchQuantile")
    assert [error["field"] for error in found["errors"]] == ["preference.at"]
    assert said in found["detail"]
    assert (
        "let the scorer return a result for each quantile, with the label meta" in found["detail"]
    )


@pytest.mark.parametrize("at", ["90", "p0", "p100", "p9.12345", "P90", ""])
async def test_what_is_no_quantile(at: str) -> None:
    async with client(await _hub()) as http:
        answer = await http.post("/optimize", json={**_asked("p90"), "preference": {
            "addonPlacementScore": "load", "at": at}})  # fmt: skip
    assert [error["field"] for error in problem(answer, 422, "InvalidField")["errors"]] == [
        "preference.at"
    ]
