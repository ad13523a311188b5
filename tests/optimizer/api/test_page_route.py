"""The page at /: served with a strict policy, without a token, and what else / answers."""

import base64
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from optimizer.api.page_route import add_page_route
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.optimizer.api.test_app import problem
from tests.optimizer.hubs import hub_of
from tests.optimizer.operations.access.callers import TOKENS
from tests.optimizer.operations.test_recorded_plans import client

SCRIPT = 'document.title = "<style>no style</style> & more"'
STYLE = "body > p { color: red }"
PAGE = f"""<!doctype html><html><head><script type="module">{SCRIPT}</script>
<style>{STYLE}</style></head><body><p>ü</p></body></html>"""


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


async def served(page: Path, **headers: str) -> httpx.Response:
    app = FastAPI()
    add_page_route(app, page)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        return await http.get("/", headers=headers)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "index.html"
    path.write_text(PAGE, encoding="utf-8")
    path.with_name("other.html").write_text(PAGE.replace("red", "blue"), encoding="utf-8")
    return path


async def test_the_page_runs_its_own_scripts_and_styles_alone(page: Path) -> None:
    found = await served(page)
    policy = dict(
        item.split(" ", 1) for item in found.headers["content-security-policy"].split("; ")
    )
    assert found.text == PAGE
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert policy["script-src"] == hashed(SCRIPT)
    assert policy["style-src"] == hashed(STYLE)
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'none'")
    assert policy["connect-src"] == "'self'"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["referrer-policy"] == "no-referrer"


async def test_a_browser_that_has_the_page_keeps_it(page: Path) -> None:
    tag = (await served(page)).headers["etag"]
    assert (await served(page, **{"If-None-Match": tag})).status_code == 304
    other = page.with_name("other.html")
    assert (await served(other, **{"If-None-Match": tag})).status_code == 200


async def test_without_a_build_the_answer_says_how_to_get_one(tmp_path: Path) -> None:
    missing = problem(await served(tmp_path / "index.html"), 404, "PageNotBuilt")
    assert "make page" in missing["detail"]


async def test_a_program_is_told_where_the_api_is(page: Path) -> None:
    found = await served(page, Accept="application/json")
    assert found.json()["openapi"] == "/openapi.json"


async def test_the_page_needs_no_token_and_its_data_does() -> None:
    hub = await hub_of(access=AccessTable(TOKENS, {}))
    async with client(hub, checked=True) as http:
        assert (await http.get("/")).status_code != 401
        problem(await http.get("/fleet"), 401, "Unauthorized")


@pytest.mark.parametrize("path", ["/", "/docs", "/redoc", "/docs/oauth2-redirect"])
async def test_no_page_of_the_server_can_be_framed(path: str) -> None:
    async with client(await hub_of()) as http:
        found = await http.get(path, headers={"Accept": "text/html"})
    if path == "/" and found.status_code == 404:  # the page was not built
        return
    assert found.headers["content-type"].startswith("text/html")
    policy = found.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
    assert found.headers["x-content-type-options"] == "nosniff"


async def test_answers_that_are_no_pages_keep_their_headers() -> None:
    async with client(await hub_of()) as http:
        found = await http.get("/openapi.json")
    assert "content-security-policy" not in found.headers
