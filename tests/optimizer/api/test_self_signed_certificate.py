"""A server that signs its own certificate: who trusts its authority trusts what it renews."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography import x509

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import SECRET
from dsf.kube.port import Kube, Object
from optimizer.api.app import create_app
from optimizer.api.self_signed_certificate import SelfSignedCertificate
from optimizer.api.serving import listen, serve
from optimizer.service.optimizer import Optimizer
from tests.kube_wrappers.wrapper import Answer, Call, Wrapper
from tests.optimizer.build import NOW

NAMESPACE, NAME = "default", "optimizer-tls"
HOSTS = ("localhost", "127.0.0.1", "optimizer.dynamic-scoring.svc")
HANGS_SECONDS = 60
CHART_MADE: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"team": "a"}},
}


class Clock:
    """The machine's time, by which clients judge, and what a test adds to it."""

    def __init__(self) -> None:
        self.start, self.days = utc_now(), 0.0

    def __call__(self) -> datetime:
        return self.start + timedelta(days=self.days)


def certificate(hub: Kube, clock: Clock, hosts: tuple[str, ...] = HOSTS) -> SelfSignedCertificate:
    return SelfSignedCertificate(hub, (NAMESPACE, NAME), hosts, now=clock)


async def data(hub: EmbeddedHub) -> dict[str, bytes]:
    secret = await hub.get(SECRET, NAME, NAMESPACE)
    return {name: base64.b64decode(text) for name, text in secret["data"].items()}


async def served_to(current: SelfSignedCertificate, trusted: bytes, name: str) -> bytes:
    """The certificate that a client sees who trusts an authority; raises SSLError for another."""
    app = create_app(Optimizer(EmbeddedHub(now=lambda: NOW), now=lambda: NOW), read_only=False)
    context = ssl.create_default_context(cadata=trusted.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    async with listening(app, current) as port, asyncio.timeout(HANGS_SECONDS):
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=name
        )
        seen = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
    return bytes(seen)


@asynccontextmanager
async def listening(app: object, current: SelfSignedCertificate) -> AsyncIterator[int]:
    with listen("127.0.0.1", 0) as listener:
        running = asyncio.create_task(serve(app, listener, current))  # type: ignore[arg-type]
        yield listener.getsockname()[1]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def leaf(files: dict[str, bytes]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(files["tls.crt"])


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize("present", [True, False])
async def test_each_host_is_served_over_tls(clock: Clock, present: bool) -> None:
    """The chart makes the Secret without data, so that the optimizer may create none."""
    hub = EmbeddedHub(now=lambda: NOW)
    if present:
        await hub.create(SECRET, CHART_MADE)
    current = certificate(hub, clock)
    await current.renew()
    files = await data(hub)
    for host in HOSTS:
        assert await served_to(current, files["ca.crt"], host)
    with pytest.raises(ssl.SSLCertVerificationError):
        await served_to(current, files["ca.crt"], "elsewhere.example")
    secret = await hub.get(SECRET, NAME, NAMESPACE)
    assert secret["metadata"].get("labels") == ({"team": "a"} if present else None)


async def test_a_restart_serves_what_the_secret_has(clock: Clock) -> None:
    hub = EmbeddedHub(now=lambda: NOW)
    await certificate(hub, clock).renew()
    before = await data(hub)
    again = certificate(hub, clock)
    await again.renew()
    assert await data(hub) == before
    seen = await served_to(again, before["ca.crt"], "localhost")
    assert x509.load_der_x509_certificate(seen) == leaf(before)


async def test_it_is_renewed_30_days_before_its_end_by_the_same_authority(clock: Clock) -> None:
    hub = EmbeddedHub(now=lambda: NOW)
    clock.days -= 60
    current = certificate(hub, clock)
    await current.renew()
    first = await data(hub)
    clock.days += 59.9
    await current.renew()
    assert await data(hub) == first
    clock.days += 0.1
    await current.renew()
    second = await data(hub)
    assert second["ca.crt"] == first["ca.crt"]
    assert leaf(second) != leaf(first)
    seen = await served_to(current, first["ca.crt"], "localhost")
    assert x509.load_der_x509_certificate(seen) == leaf(second)


async def test_an_authority_that_ends_before_its_next_certificate_is_replaced(clock: Clock) -> None:
    hub = EmbeddedHub(now=lambda: NOW)
    current = certificate(hub, clock)
    await current.renew()
    first = await data(hub)
    clock.days += 3650 - 89
    await current.renew()
    assert (await data(hub))["ca.crt"] != first["ca.crt"]


@pytest.mark.parametrize(
    "changed",
    [
        {"tls.crt": b"no certificate"},
        {"tls.key": b"no key"},
        {"ca.key": b""},
        {"ca.crt": b"\xff"},
        None,
    ],
)
async def test_what_cannot_be_served_is_replaced(
    clock: Clock, changed: dict[str, bytes] | None
) -> None:
    hub = EmbeddedHub(now=lambda: NOW)
    await certificate(hub, clock).renew()
    secret = await hub.get(SECRET, NAME, NAMESPACE)
    for name in changed or secret["data"]:
        content = changed[name] if changed else b""
        secret["data"][name] = base64.b64encode(content).decode()
    await hub.update(SECRET, secret)
    current = certificate(hub, clock)
    await current.renew()
    assert await served_to(current, (await data(hub))["ca.crt"], "localhost")


async def test_another_key_or_another_host_makes_another_certificate(clock: Clock) -> None:
    hub = EmbeddedHub(now=lambda: NOW)
    await certificate(hub, clock).renew()
    first = await data(hub)
    more = certificate(hub, clock, (*HOSTS, "scores.example"))
    await more.renew()
    second = await data(hub)
    assert second["ca.crt"] == first["ca.crt"]
    assert await served_to(more, first["ca.crt"], "scores.example")
    secret = await hub.get(SECRET, NAME, NAMESPACE)
    secret["data"]["tls.key"] = base64.b64encode(first["tls.key"]).decode()
    await hub.update(SECRET, secret)
    await more.renew()
    assert await served_to(more, first["ca.crt"], "localhost")
    assert leaf(await data(hub)) != leaf(second)


class InTurns(Wrapper):
    """A hub that lets others ask after each answer."""

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        del call
        try:
            return await answering
        finally:
            await asyncio.sleep(0)


@pytest.mark.parametrize("present", [True, False])
async def test_two_that_start_at_once_serve_the_certificate_of_the_first(
    clock: Clock, present: bool
) -> None:
    """Pods overlap while a Deployment is rolled out."""
    hub = EmbeddedHub(now=lambda: NOW)
    if present:
        await hub.create(SECRET, CHART_MADE)
    both = [certificate(InTurns(hub), clock) for _ in range(2)]
    await asyncio.gather(*(each.renew() for each in both))
    files = await data(hub)
    for each in both:
        seen = await served_to(each, files["ca.crt"], "localhost")
        assert x509.load_der_x509_certificate(seen) == leaf(files)
