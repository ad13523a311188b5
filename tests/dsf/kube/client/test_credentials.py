"""Credentials: where they are found, how they are renewed, and that no message shows them."""

import asyncio
import gc
import json
import logging
import os
import socket
import ssl
import sys
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from dsf.kube.client.connect import BadKubeconfig, Transport, connect
from dsf.kube.client.credentials import find_source
from dsf.kube.client.kube_client import Client
from dsf.kube.errors import KubeError, Unauthorized, Unreachable
from dsf.kube.kinds import CONFIG_MAP
from tests.dsf.kube.client.api_server import ApiServer, serving, status
from tests.dsf.kube.client.kubeconfigs import kubeconfig, written


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with serving() as server:
        yield server


def tokens(server: ApiServer) -> list[str | None]:
    return [request.headers.get("Authorization") for request in server.requests]


async def called(config: Path) -> None:
    """Connect and make one call."""
    async with connect(config) as kube:
        await kube.list(CONFIG_MAP, "ns")


async def test_the_explicit_file_comes_first_then_the_environment_then_the_home(
    server: ApiServer, tmp_path: Path
) -> None:
    def config(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return written(path, kubeconfig(server.url, user={"token": path.parent.name}))

    explicit, listed = config("explicit/config"), config("listed/config")
    config("home/.kube/config")
    missing = tmp_path / "missing"
    environ = {"HOME": str(tmp_path / "home"), "KUBECONFIG": f"{missing}{os.pathsep}{listed}"}
    for path, variables in (
        (explicit, environ),
        (None, environ),
        (None, {"HOME": environ["HOME"]}),
    ):
        async with connect(path, environ=variables) as kube:
            await kube.list(CONFIG_MAP, "ns")
    assert tokens(server) == ["Bearer explicit", "Bearer listed", "Bearer .kube"]


async def test_without_any_kubeconfig_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadKubeconfig, match="--kubeconfig"):
        async with connect(environ={"HOME": str(tmp_path)}):
            pass


async def test_a_home_that_cannot_be_looked_into_has_no_kubeconfig() -> None:
    with pytest.raises(BadKubeconfig, match="--kubeconfig"):
        async with connect(environ={"HOME": f"/{'x' * 300}"}):
            pass


async def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadKubeconfig, match="missing: No such file or directory"):
        await called(tmp_path / "missing")
    environ = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "listed")}
    with pytest.raises(BadKubeconfig, match="listed: No such file or directory"):
        async with connect(environ=environ):
            pass


async def test_a_pipe_is_read_to_its_end_if_somebody_writes_to_it(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = written(tmp_path / "config", kubeconfig(server.url, user={"token": "t"})).read_text()
    reader, writer = os.pipe()
    os.write(writer, text[:9].encode())

    def write_the_rest() -> None:
        os.write(writer, text[9:].encode())
        os.close(writer)

    threading.Timer(0.1, write_the_rest).start()
    await called(Path(f"/dev/fd/{reader}"))  # As a shell passes <(command).
    os.close(reader)
    assert tokens(server) == ["Bearer t"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr("dsf.kube.client.credentials.PIPE_SECONDS", 0.2)
    with pytest.raises(BadKubeconfig, match=f"{pipe}: nothing came for 0.2 s"):
        await called(pipe)
    with pytest.raises(BadKubeconfig, match="/dev/zero: it has more than 16 MiB"):
        await called(Path("/dev/zero"))


async def test_a_pod_uses_its_service_account_whose_token_may_change(tmp_path: Path) -> None:
    authority = trustme.CA()
    async with serving(tls=server_context(authority)) as server:
        authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
        (tmp_path / "token").write_text("first\n")
        port = server.url.rpartition(":")[2]
        environ = {
            "HOME": str(tmp_path),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": port,
        }
        async with connect(environ=environ, service_account=tmp_path) as kube:
            await kube.list(CONFIG_MAP, "ns")
            (tmp_path / "token").write_text("second\n")
            await kube.list(CONFIG_MAP, "ns")
    assert tokens(server) == ["Bearer first", "Bearer second"]


async def test_a_kubeconfig_that_is_replaced_is_read_again(
    server: ApiServer, tmp_path: Path
) -> None:
    config = written(tmp_path / "config", kubeconfig(server.url, user={"token": "first"}))
    async with connect(config) as kube:
        await kube.list(CONFIG_MAP, "ns")
        new = written(tmp_path / "new", kubeconfig(server.url, user={"token": "other"}))
        new.rename(config)
        await kube.list(CONFIG_MAP, "ns")
    assert tokens(server) == ["Bearer first", "Bearer other"]


async def test_a_replacement_that_cannot_be_read_leaves_the_old_credentials(
    server: ApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = written(tmp_path / "config", kubeconfig(server.url, user={"token": "first"}))
    async with connect(config) as kube:
        config.write_text("half: [")
        await kube.list(CONFIG_MAP, "ns")
        config.unlink()
        await kube.list(CONFIG_MAP, "ns")
        written(config, kubeconfig(server.url, user={"token": "second"}))
        await kube.list(CONFIG_MAP, "ns")
    assert tokens(server) == ["Bearer first", "Bearer first", "Bearer second"]
    assert "it is not YAML" in vars(caplog.records[0])["error"]


async def test_a_watch_under_way_outlives_the_change_of_credentials(
    server: ApiServer, tmp_path: Path
) -> None:
    config = written(tmp_path / "config", kubeconfig(server.url, user={"token": "first"}))
    async with connect(config) as kube:
        server.put("a")
        watch = kube.watch(CONFIG_MAP, "ns", resource_version="1")
        await anext(watch)
        written(config, kubeconfig(server.url, user={"token": "second"}))
        await kube.list(CONFIG_MAP, "ns")
        server.put("b")
        assert (await anext(watch)).object["metadata"]["name"] == "b"
        await watch.aclose()  # type: ignore[attr-defined]  # an async generator
    assert tokens(server) == ["Bearer first", "Bearer second"]


PLUGIN = """
import json, os, pathlib
count = pathlib.Path(os.environ["COUNT"])
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
credential = {"token": f"t{number}"}
if os.environ.get("EXPIRES"):
    credential["expirationTimestamp"] = os.environ["EXPIRES"]
print(json.dumps({**info, "status": credential}))
"""


def exec_config(server: ApiServer, directory: Path, program: str, **env: str) -> Path:
    env = {"COUNT": str(directory / "count"), **env}
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", program],
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }
    return written(directory / "config", kubeconfig(server.url, user={"exec": plugin}))


async def test_an_exec_plugin_is_run_once_and_again_when_its_token_is_refused(
    server: ApiServer, tmp_path: Path
) -> None:
    async with connect(exec_config(server, tmp_path, PLUGIN)) as kube:
        await kube.list(CONFIG_MAP, "ns")
        await kube.list(CONFIG_MAP, "ns")
        server.lists.append(status(401, "Unauthorized"))
        await kube.list(CONFIG_MAP, "ns")
    assert tokens(server) == ["Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2"]


async def test_a_token_is_renewed_shortly_before_it_expires(
    server: ApiServer, tmp_path: Path
) -> None:
    now = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    config = exec_config(server, tmp_path, PLUGIN, EXPIRES="2026-01-01T13:00:00Z")
    transport = Transport(find_source(config), now=lambda: now)
    await Client(transport).list(CONFIG_MAP, "ns")
    now += timedelta(minutes=59)
    await Client(transport).list(CONFIG_MAP, "ns")
    now += timedelta(seconds=51)
    await Client(transport).list(CONFIG_MAP, "ns")
    await Client(transport).list(CONFIG_MAP, "ns")
    await transport.close()
    assert tokens(server) == ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2"]


async def test_a_call_is_sent_twice_at_most(server: ApiServer, tmp_path: Path) -> None:
    server.lists.extend([status(401, "Unauthorized")] * 3)
    async with connect(exec_config(server, tmp_path, PLUGIN)) as kube:
        with pytest.raises(Unauthorized):
            await kube.list(CONFIG_MAP, "ns")
    assert tokens(server) == ["Bearer t1", "Bearer t2"]


async def test_a_refused_call_is_not_repeated_with_the_same_credentials(
    server: ApiServer, tmp_path: Path
) -> None:
    server.lists.append(status(401, "Unauthorized"))
    config = written(tmp_path / "config", kubeconfig(server.url, user={"token": "t"}))
    with pytest.raises(Unauthorized):
        await called(config)
    assert tokens(server) == ["Bearer t"]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('hello')", "it printed no ExecCredential"),
        ("print('{\"status\": {}}')", "neither a token nor a certificate"),
        ('print(\'{"status": {"token": 1}}\')', "it printed no ExecCredential"),
        ("raise SystemExit('please log in')", "exit code 1: please log in"),
        (
            "import json; print(json.dumps({'status': {'token': 'canary 7f3a'}}))",
            "characters that no token can have",
        ),
    ],
)
async def test_a_plugin_that_fails_is_explained(
    server: ApiServer, tmp_path: Path, program: str, message: str
) -> None:
    with pytest.raises(BadKubeconfig, match=message) as raised:
        await called(exec_config(server, tmp_path, program))
    assert "canary" not in str(raised.value)


async def test_a_plugin_that_is_missing_is_explained_with_its_hint(
    server: ApiServer, tmp_path: Path
) -> None:
    plugin = {"command": "no-such-plugin-7f3a", "installHint": "install it\nso"}
    config = written(tmp_path / "config", kubeconfig(server.url, user={"exec": plugin}))
    with pytest.raises(BadKubeconfig, match=r"no-such-plugin-7f3a: No such file.*: install it so"):
        await called(config)


@pytest.mark.parametrize("token", ["canary\r\nX-Evil: 1", "canäry", "", " \n"])
async def test_a_malformed_token_is_refused_and_not_told(
    server: ApiServer, tmp_path: Path, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text(token)
    config = written(tmp_path / "config", kubeconfig(server.url, user={"tokenFile": "token"}))
    with caplog.at_level(logging.DEBUG), pytest.raises(BadKubeconfig, match="token in") as raised:
        await called(config)
    assert "can" not in str(raised.value).replace("can have", "")
    assert "canary" not in caplog.text


@pytest.mark.parametrize("failure", ["401", "away", "html"])
async def test_no_failure_shows_the_token(
    server: ApiServer, tmp_path: Path, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def html(_: ApiServer, __: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>")

    config = written(tmp_path / "config", kubeconfig(server.url, user={"token": "canary"}))
    server.lists.append(html if failure == "html" else status(401, "Unauthorized"))
    if failure == "away":
        await server.stop()
    with caplog.at_level(logging.DEBUG), pytest.raises(KubeError) as raised:
        await called(config)
    assert "canary" not in f"{raised.value!r} {raised.value.__cause__!r} {caplog.text}"


def server_context(
    authority: trustme.CA, *names: str, clients: trustme.CA | None = None
) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_a_watch_that_is_left_lets_go_of_a_server_that_says_no_goodbye(tmp_path: Path) -> None:
    authority, done = trustme.CA(), threading.Event()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    event = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"

    def serve() -> None:
        """Send one event, and then neither read nor close."""
        with server_context(authority).wrap_socket(listener.accept()[0], server_side=True) as tls:
            tls.recv(65_536)
            tls.sendall(head + event)
            done.wait()

    async def watched() -> None:
        config = kubeconfig(url, cluster={"certificate-authority": "ca.crt"})
        async with connect(written(tmp_path / "config", config)) as kube:
            watch = kube.watch(CONFIG_MAP, "ns", resource_version="1")
            await anext(watch)
            await watch.aclose()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            asyncio.run(watched())
            gc.collect()  # a connection that is open is an error now
        finally:
            done.set()
            thread.join()


def client_files(authority: trustme.CA, directory: Path) -> dict[str, str]:
    """What a kubeconfig says of a client certificate that it finds next to itself."""
    certificate = authority.issue_cert("me@example.com")
    (directory / "tls.crt").write_bytes(certificate.cert_chain_pems[0].bytes())
    (directory / "tls.key").write_bytes(certificate.private_key_pem.bytes())
    return {"client-certificate": "tls.crt", "client-key": "tls.key"}


async def test_a_server_is_trusted_by_the_authority_of_the_kubeconfig_only(tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    stranger.cert_pem.write_to_path(str(tmp_path / "stranger.crt"))
    async with serving(tls=server_context(authority)) as server:

        def config(**cluster: object) -> Path:
            return written(tmp_path / "config", kubeconfig(server.url, cluster=cluster))

        await called(config(**{"certificate-authority": "ca.crt"}))
        await called(config(**{"insecure-skip-tls-verify": True}))
        for cluster in ({"certificate-authority": "stranger.crt"}, {}):
            with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
                await called(config(**cluster))


async def test_the_name_in_the_certificate_may_be_another_than_the_address(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    async with serving(tls=server_context(authority, "kubernetes.default")) as server:
        cluster = {"certificate-authority": "ca.crt"}
        with pytest.raises(Unreachable):
            await called(written(tmp_path / "a", kubeconfig(server.url, cluster=cluster)))
        cluster["tls-server-name"] = "kubernetes.default"
        await called(written(tmp_path / "b", kubeconfig(server.url, cluster=cluster)))


async def test_client_certificates_are_used_and_rotated_on_disk(tmp_path: Path) -> None:
    authority, old, new = trustme.CA(), trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    cluster = {"certificate-authority": "ca.crt"}
    async with serving(tls=server_context(authority, clients=old)) as server:
        user = client_files(old, tmp_path)
        config = written(tmp_path / "config", kubeconfig(server.url, user=user, cluster=cluster))
        async with connect(config) as kube:
            await kube.list(CONFIG_MAP, "ns")
            port = int(server.url.rpartition(":")[2])
            await server.stop()
            await server.start(port, tls=server_context(authority, clients=new))
            with pytest.raises(Unreachable):
                await kube.list(CONFIG_MAP, "ns")
            client_files(new, tmp_path)
            await kube.list(CONFIG_MAP, "ns")


async def test_certificates_that_cannot_be_used_are_explained(tmp_path: Path) -> None:
    user = client_files(trustme.CA(), tmp_path)
    config = kubeconfig("https://127.0.0.1:1", user=user)
    (tmp_path / "tls.key").write_bytes(trustme.CA().issue_cert("x").private_key_pem.bytes())
    with pytest.raises(BadKubeconfig, match=r"certificates for https://127.* cannot be used"):
        await called(written(tmp_path / "config", config))
    (tmp_path / "tls.key").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    with pytest.raises(BadKubeconfig, match="is encrypted"):
        await called(written(tmp_path / "config", config))
    (tmp_path / "tls.key").unlink()
    with pytest.raises(BadKubeconfig, match=r"client-key .*tls\.key: No such file"):
        await called(written(tmp_path / "config", config))


async def test_an_exec_plugin_may_print_a_certificate(tmp_path: Path) -> None:
    authority, clients = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    certificate = clients.issue_cert("me@example.com")
    printed = {
        "clientCertificateData": certificate.cert_chain_pems[0].bytes().decode(),
        "clientKeyData": certificate.private_key_pem.bytes().decode(),
    }
    program = f"print({json.dumps(json.dumps({'status': printed}))})"
    plugin = {"command": sys.executable, "args": ["-c", program]}
    async with serving(tls=server_context(authority, clients=clients)) as server:
        config = kubeconfig(
            server.url, user={"exec": plugin}, cluster={"certificate-authority": "ca.crt"}
        )
        await called(written(tmp_path / "config", config))
    assert len(server.requests) == 1
