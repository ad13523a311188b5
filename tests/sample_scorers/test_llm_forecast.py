"""The LLM forecast scorer: the words of a server that knows a token, and the README's servers."""

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from sample_scorers.llm_forecast.fake_model import FakeModel, Server
from sample_scorers.llm_forecast.shared_model.app import create_app
from sample_scorers.llm_forecast.shared_model.model_client import ForecastSettings
from sample_scorers.llm_forecast.shared_model.test_shared_model import data, scorer
from sample_scorers.scoring_service.testing import client, served
from tests.sample_scorers.serving import SCORERS
from tests.spellings import SPELLINGS, spelled_pieces


@pytest.fixture
def model() -> Iterator[FakeModel]:
    server = Server()
    with served(server.app()) as url:
        server.model.url = f"{url}/v1"
        yield server.model


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_model_that_was_sent_a_token_is_not_quoted(
    model: FakeModel, caplog: pytest.LogCaptureFixture, spelling: str
) -> None:
    token, post = "canary-3f9a.77b1~c0d2", scorer(model.url)
    words = f"you said {SPELLINGS[spelling](token)}"
    model.replies = [(500, "the disk is full")]
    assert "the disk is full" in post(data()).json()["detail"]
    refusal = {"choices": [{"message": {"refusal": words}}]}
    for reply in ((500, words), (400, f"content_filter {words}"), (200, json.dumps(refusal))):
        for headers in ({"Authorization": f"Bearer {token}"}, {}):  # the server may remember it
            model.replies = [reply, reply]
            answer = post(data(), **headers)
            assert answer.status_code == 502
            assert "not repeated, because its server was sent a token" in answer.json()["detail"]
            assert spelled_pieces(token, answer.text + caplog.text) == []


LOCAL = re.findall(
    r"^\| \[.*\| `(http://localhost:\d+\S*)` \| `(\S+)` \|$",
    (SCORERS / "llm_forecast/README.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.parametrize(("url", "name"), LOCAL)
def test_the_addresses_of_local_servers_work(model: FakeModel, url: str, name: str) -> None:
    """Only the port of the README is replaced by that of the scripted server."""
    base = model.url.removesuffix("/v1") + urlsplit(url).path
    app = create_app(ForecastSettings(base, name))
    with client(app) as http:
        assert http.get("/healthz").status_code == 200
        assert http.post("/scoring", json=data()).json()["results"]
    assert model.asked[0]["model"] == name


def test_the_readme_has_three_local_servers() -> None:
    assert len(LOCAL) == 3
