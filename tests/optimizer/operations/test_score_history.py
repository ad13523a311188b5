"""GET /scores/history: from a Prometheus, without one, and for whom."""

import httpx
import pytest

from dsf.kube.embedded import EmbeddedHub
from optimizer.api.app import create_app
from optimizer.domain.settings import OptimizerSettings
from optimizer.operations.access.rights import listing_rights
from optimizer.service.optimizer import Optimizer
from tests.dsf.agent.servers import matrix, replying, serving
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.optimizer.api.test_app import problem
from tests.optimizer.build import NOW
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import READER, TOKENS
from tests.optimizer.operations.test_recorded_plans import client

WHICH = {"score": "power", "cluster": "worker01"}


async def test_a_history_is_read_from_prometheus() -> None:
    labels = {"ds_app": "app01", "ds_device": "all"}
    async with serving(replying(matrix((labels, [[NOW.timestamp() - 60, "7"]])))) as server:
        settings = OptimizerSettings(prometheus_url=server.url)
        app = create_app(Optimizer(EmbeddedHub(), settings, now=lambda: NOW))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            found = (await http.get("/scores/history", params={**WHICH, "hours": 2})).json()
    (series,) = found["series"]
    assert (series["name"], series["points"]) == ("app01;all", [[NOW.timestamp() - 60, 7.0]])


async def test_without_a_prometheus_the_answer_names_the_flag() -> None:
    async with client(EmbeddedHub()) as http:
        missing = problem(
            await http.get("/scores/history", params=WHICH), 404, "HistoryNotConfigured"
        )
    assert "--prometheus-url" in missing["detail"]


@pytest.mark.parametrize(
    "wrong",
    [{"hours": 0}, {"hours": 169}, {"score": 'a"}'}, {"cluster": "a|b"}, {"dimension": "x"}],
)
async def test_what_could_change_the_query_is_refused(wrong: dict[str, object]) -> None:
    async with client(EmbeddedHub()) as http:
        problem(
            await http.get("/scores/history", params={**WHICH, **wrong}),  # type: ignore[arg-type]
            422,
            "InvalidField",
        )


async def test_who_sees_a_history_may_list_the_scores_of_its_cluster() -> None:
    rights = {READER.name: [*listing_rights("worker01")]}
    hub = await hub_of(access=AccessTable(TOKENS, rights))
    bearer = {"Authorization": "Bearer token-of-reader"}
    async with client(hub, checked=True) as http:
        allowed = await http.get("/scores/history", params=WHICH, headers=bearer)
        other = {**WHICH, "cluster": "worker02"}
        refused = await http.get("/scores/history", params=other, headers=bearer)
        nobody = await http.get("/scores/history", params=WHICH)
    problem(allowed, 404, "HistoryNotConfigured")
    problem(refused, 403, "Forbidden")
    problem(nobody, 401, "Unauthorized")
