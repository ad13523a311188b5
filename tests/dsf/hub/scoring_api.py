"""A scoring API on loopback that behaves as well or as badly as a test wants."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trustme
from aiohttp import web

from tests.dsf.hub.builders import api_config


@dataclass
class ScoringAPI:
    """What it answers, and how often it was asked; changed by the test while it runs.

    The next `lost` answers about its health are 503.
    """

    url: str = ""
    status: int = 200
    body: bytes = field(default_factory=lambda: json.dumps(api_config()).encode())
    headers: dict[str, str] = field(default_factory=dict)
    drip_seconds: float = 0.0
    health: int = 200
    lost: int = 0
    etag: str = ""
    asked: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    @property
    def config_url(self) -> str:
        return f"{self.url}/base/config"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        self.hosts.append(request.host)
        if request.path == "/healthz" and self.lost:
            self.lost -= 1
            return web.Response(status=503)
        if request.path == "/healthz":
            return web.Response(status=self.health)
        if request.path != "/base/config":
            return web.Response(status=404)
        if self.etag and request.headers.get("If-None-Match") == self.etag:
            return web.Response(status=304)
        self.sent.append(len(self.body))
        headers = {**self.headers, **({"ETag": self.etag} if self.etag else {})}
        response = web.StreamResponse(status=self.status, headers=headers)
        await response.prepare(request)
        for start in range(0, len(self.body), 1 if self.drip_seconds else 65536):
            await response.write(self.body[start : start + (1 if self.drip_seconds else 65536)])
            if self.drip_seconds:
                await asyncio.sleep(self.drip_seconds)
        return response


@asynccontextmanager
async def scoring_api(
    api: ScoringAPI | None = None, certificate: trustme.LeafCert | None = None
) -> AsyncIterator[ScoringAPI]:
    api = api or ScoringAPI()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if certificate else None
    if certificate and tls:
        certificate.configure_cert(tls)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    api.url = f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()
