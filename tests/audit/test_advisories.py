"""The question about advisories, to a service on loopback that speaks OSV's API."""

import asyncio

import pytest
from aiohttp import web

from tests.audit.advisories import FOUND, NOT_ASKED, main

ID = "TEST-2026-1"
WHEN = {"modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z"}


async def exit_code(vulnerable: str, *arguments: str) -> int:
    """Ask a service that knows one vulnerable package; an empty name is a service that fails."""

    async def batch(request: web.Request) -> web.Response:
        names = [query["package"]["name"] for query in (await request.json())["queries"]]
        assert {"aiohttp", "pydantic"} <= set(names)
        known = {"vulns": [{"id": ID, "modified": WHEN["modified"]}]}
        results = [known if name == vulnerable else {} for name in names]
        return web.json_response({"results": results}, status=200 if vulnerable else 400)

    async def one(_: web.Request) -> web.Response:
        return web.json_response({"id": ID, "summary": "reads too much", "affected": [], **WHEN})

    app = web.Application()
    app.add_routes([web.post("/v1/querybatch", batch), web.get(f"/v1/vulns/{ID}", one)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        return await asyncio.to_thread(main, ["--service-url", url, *arguments])
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("vulnerable", "arguments", "code", "said"),
    [
        ("aiohttp", (), FOUND, f"{ID}: reads too much"),
        pytest.param("a-package-of-others", (), 0, "", marks=pytest.mark.exhaustive),
        pytest.param("", (), 0, "NOT ASKED", marks=pytest.mark.exhaustive),
        pytest.param(
            "", ("--require-answer",), NOT_ASKED, "NOT ASKED", marks=pytest.mark.exhaustive
        ),
    ],
)
async def test_advisories_are_found_absent_or_not_asked_for(
    vulnerable: str,
    arguments: tuple[str, ...],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await exit_code(vulnerable, *arguments) == code
    out = capsys.readouterr().out
    assert said in out
    assert ("NOT ASKED" in out) == (not vulnerable)
