"""No answer of the server is a page that another page can frame."""

from typing import Any

import httpx
import pytest
from starlette.routing import Mount

from dsf.kube.embedded import EmbeddedHub
from mcp_server.app import create_service_app
from optimizer.service.optimizer import Optimizer
from tests.optimizer.build import NOW

ACCEPTS = ("text/html", "*/*", "application/json", "text/html;q=0.1, application/xhtml+xml", "")
HEADERS: tuple[dict[str, str], ...] = ({}, {"Origin": "https://evil.com"}, {"Host": "evil.com"})
NOWHERE = ("/nowhere", "/docs/", "/docs/x", "/static-offline-docs/<b>", "//docs", "/%00")
FRAMED = ("text/html", "application/xhtml+xml", "image/svg+xml", "text/xml", "application/xml")
"""What a browser shows in a frame and runs scripts of."""


@pytest.mark.exhaustive
@pytest.mark.fire(
    "no page of the server is shown in a frame",
    "each path with each method, with and without errors, over a socket",
)
def test_each_page_forbids_frames(optimizer_url: str, record_property: Any) -> None:
    routes = create_service_app(Optimizer(EmbeddedHub(), now=lambda: NOW)).routes
    paths = [route.path for route in routes if not isinstance(route, Mount)]  # type: ignore[attr-defined]  # each has one
    pages, count = set(), 0
    with httpx.Client(base_url=optimizer_url, trust_env=False, timeout=60) as http:
        for path in (*paths, *NOWHERE):
            for method in ("GET", "HEAD", "POST", "OPTIONS", "TRACE"):
                for accept in ACCEPTS:
                    for more in HEADERS:
                        headers = {"Accept": accept, **more}
                        with http.stream(method, path, headers=headers) as answer:
                            count += 1  # a stream of events has no end, and headers at once
                        if not answer.headers.get("content-type", "").startswith(FRAMED):
                            continue
                        pages.add(path)
                        policy = answer.headers.get("content-security-policy", "")
                        assert "frame-ancestors 'none'" in policy, (method, path, accept, more)
                        assert "default-src 'none'" in policy, (method, path, accept, more)
    record_property("count", count)
    assert pages >= {"/docs", "/redoc", "/docs/oauth2-redirect"}
