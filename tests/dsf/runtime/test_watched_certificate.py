"""TLS over real sockets; a changed certificate is used for the next connection."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from dsf.kube.embedded import EmbeddedHub
from dsf.runtime.watched_certificate import BadCertificate, WatchedCertificate
from optimizer.api.app import create_app
from optimizer.api.serving import listen, serve, url
from optimizer.service.optimizer import Optimizer
from tests.optimizer.build import NOW

HANGS_SECONDS = 60


class Files:
    """The certificate and the key as files, as a mounted Secret has them."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"

    def write(self, authority: trustme.CA) -> None:
        issued = authority.issue_cert("127.0.0.1", "localhost")
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        self.replace(self.certificate, chain)
        self.replace(self.key, issued.private_key_pem.bytes())

    def replace(self, file: Path, text: bytes) -> None:
        """Replace a file as a whole: it has another inode then."""
        new = file.with_suffix(".new")
        new.write_bytes(text)
        new.replace(file)


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def status(port: int, authority: trustme.CA, name: str | None = "127.0.0.1") -> str:
    """The status line of GET /healthz; raises SSLError for a certificate of others."""
    context = trusting(authority)
    context.check_hostname = bool(name)
    async with asyncio.timeout(HANGS_SECONDS):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=name or ""
        )
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        line = await reader.readline()
        writer.close()
    return line.decode().strip()


@asynccontextmanager
async def served(files: Files) -> AsyncIterator[int]:
    certificate = WatchedCertificate(files.certificate, files.key)
    app = create_app(Optimizer(EmbeddedHub(now=lambda: NOW), now=lambda: NOW), read_only=False)
    with listen("127.0.0.1", 0) as listener:
        assert url(listener, tls=True).startswith("https://127.0.0.1:")
        running = asyncio.create_task(serve(app, listener, certificate))
        yield listener.getsockname()[1]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", None])
async def test_it_serves_over_tls(files: Files, name: str | None) -> None:
    authority = trustme.CA()
    files.write(authority)
    async with served(files) as port:
        assert await status(port, authority, name) == "HTTP/1.1 200 OK"
        with pytest.raises(ssl.SSLCertVerificationError):
            await status(port, trustme.CA())


async def test_the_next_connection_after_a_change_has_the_new_certificate(files: Files) -> None:
    authorities = [trustme.CA() for _ in range(3)]
    files.write(authorities[0])
    async with served(files) as port:
        for number, authority in enumerate(authorities):
            files.write(authority)
            assert await status(port, authority) == "HTTP/1.1 200 OK"
            with pytest.raises(ssl.SSLCertVerificationError):
                await status(port, authorities[number - 1])


@pytest.mark.parametrize("broken", [b"", b"no certificate", None])
async def test_a_broken_certificate_leaves_the_last_one_in_place(
    files: Files, broken: bytes | None
) -> None:
    authority, later = trustme.CA(), trustme.CA()
    files.write(authority)
    async with served(files) as port:
        if broken is None:
            files.certificate.unlink()
        else:
            files.replace(files.certificate, broken)
        assert await status(port, authority) == "HTTP/1.1 200 OK"
        files.write(later)
        assert await status(port, later) == "HTTP/1.1 200 OK"


async def test_a_certificate_without_its_key_waits_for_it(files: Files) -> None:
    """The two files are written one after the other, so a handshake may fall in between."""
    authority, later = trustme.CA(), trustme.CA()
    files.write(authority)
    issued = later.issue_cert("127.0.0.1")
    async with served(files) as port:
        files.replace(files.certificate, issued.cert_chain_pems[0].bytes())
        assert await status(port, authority) == "HTTP/1.1 200 OK"
        files.replace(files.key, issued.private_key_pem.bytes())
        assert await status(port, later) == "HTTP/1.1 200 OK"


def test_an_unusable_certificate_is_an_error_at_the_start(files: Files) -> None:
    files.certificate.write_text("no certificate")
    files.key.write_text("no key")
    with pytest.raises(BadCertificate, match=r"tls\.crt with the key .*tls\.key can't be used: "):
        WatchedCertificate(files.certificate, files.key)
