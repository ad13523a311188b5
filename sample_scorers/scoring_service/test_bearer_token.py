# SPDX-License-Identifier: Apache-2.0
"""A scorer with a token file answers a POST only with that token."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .application import bare_app
from .bearer_token import require_token
from .testing import client
from .wire import ScoringRequest

TOKEN = "dummy-token-1234"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.fixture
def http(file: Path) -> Iterator[httpx.Client]:
    app = bare_app("token")
    require_token(app, file)

    @app.get("/config")
    @app.post("/scoring")
    def scoring(_request: ScoringRequest | None = None) -> None: ...

    with client(app) as found:
        yield found


def asked(http: httpx.Client, authorization: str | None) -> httpx.Response:
    headers = {} if authorization is None else {"Authorization": authorization}
    return http.post("/scoring", json={"data": []}, headers=headers)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (None, "send the token"),
        ("Bearer", "send the token"),
        (f"Basic {TOKEN}", "send the token"),
        (TOKEN, "send the token"),
        ("Bearer wrong-token", "not that of this scorer"),
        (f"Bearer {TOKEN}x", "not that of this scorer"),
    ],
)
def test_a_missing_or_wrong_token_is_refused_with_what_to_do(
    http: httpx.Client, header: str | None, told: str
) -> None:
    answer = asked(http, header)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert told in answer.json()["detail"]
    assert TOKEN not in answer.text


def test_the_body_of_a_refused_request_is_read_to_its_end(http: httpx.Client) -> None:
    answer = http.post("/scoring", content=b"[" * (4 << 20))
    assert answer.status_code == 401


def test_health_and_config_need_no_token(http: httpx.Client) -> None:
    assert [http.get(path).status_code for path in ("/healthz", "/config")] == [200, 200]


def test_a_rotated_token_counts_at_once_and_a_lost_one_closes_the_door(
    http: httpx.Client, file: Path
) -> None:
    assert asked(http, f"bearer {TOKEN}").status_code == 200
    file.write_text("dummy-token-5678")
    assert asked(http, f"Bearer {TOKEN}").status_code == 401
    assert asked(http, "Bearer dummy-token-5678").status_code == 200
    file.unlink()
    assert asked(http, "Bearer dummy-token-5678").status_code == 503


def test_refusals_are_counted(http: httpx.Client) -> None:
    asked(http, None)
    assert 'scorer_requests_total{code="401",path="/scoring"}' in http.get("/metrics").text
