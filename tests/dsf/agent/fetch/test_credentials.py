from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.fetch.credentials import (
    AgentSecrets,
    CalledEndpoint,
    EndpointCredentials,
    ServiceAccount,
)
from dsf.agent.wire.secret_data import TOKEN_LIMIT, Token, host_refused, read_authority, read_token
from dsf.api.invalid_input import InvalidInput

CANARY = b"canary-3f2a"


def secret(value: bytes = CANARY, type_: str = "Opaque", name: str = "api-auth") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "dynamic-scoring"},
        "type": type_,
        "data": {"token": b64encode(value).decode()},
    }


def refused(obj: dict[str, Any], key: str = "token") -> InvalidInput:
    found = read_token(obj, key)
    assert isinstance(found, InvalidInput)
    assert "canary" not in found.message
    return found


def test_a_token_is_sent_as_bearer() -> None:
    token = read_token(secret(b"dummy-token-1234\n"), "token")
    assert isinstance(token, Token)
    assert token.headers == {"Authorization": "Bearer dummy-token-1234"}


def test_a_token_is_not_shown() -> None:
    assert "canary" not in repr(read_token(secret(), "token"))


@pytest.mark.parametrize(
    "value",
    [
        b"canary\r\nX-Evil: 1",
        b"canary\x00",
        b"can ary canary",
        b"",
        "canarÿ".encode(),
        b"canary" * TOKEN_LIMIT,
    ],
)
def test_a_token_that_no_header_can_carry_is_refused(value: bytes) -> None:
    assert refused(secret(value)).reason == "InvalidToken"


@pytest.mark.parametrize("text", ["canary!", "Y2FuYXJ", "\n", "ÿ"])
def test_data_that_is_no_base64_is_refused(text: str) -> None:
    assert refused({**secret(), "data": {"token": text}}).reason == "InvalidToken"


def test_a_missing_key_is_named_with_what_there_is() -> None:
    found = refused(secret(), "password")
    assert found.reason == "SecretKeyNotFound"
    assert "token" in found.message
    assert "'password'" in found.message


@pytest.mark.parametrize(
    "obj",
    [
        secret(type_="kubernetes.io/service-account-token"),
        secret(type_="kubernetes.io/dockerconfigjson"),
        secret(type_="bootstrap.kubernetes.io/token"),
        secret(name="dynamic-scoring-framework-hub-kubeconfig"),
    ],
)
def test_credentials_of_kubernetes_are_never_sent(obj: dict[str, Any]) -> None:
    assert refused(obj).reason == "SecretRefused"


async def test_no_secret_named_is_no_token() -> None:
    assert (
        await AgentSecrets(None, "dynamic-scoring").credentials(CalledEndpoint("http://h"))
        == EndpointCredentials()
    )


async def test_without_an_api_server_no_secret_can_be_read() -> None:
    found = await AgentSecrets(None, "dynamic-scoring").credentials(
        CalledEndpoint("http://h", "api-auth", "token")
    )
    assert isinstance(found, InvalidInput)
    assert found.reason == "SecretUnreadable"


@given(st.binary(max_size=40))
def test_any_value_is_a_clean_token_or_refused(value: bytes) -> None:
    found = read_token(secret(value), "token")
    assert isinstance(found, InvalidInput) or (
        found.value.isascii() and found.value.isprintable() and " " not in found.value
    )


PEM = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def test_an_authority_is_pem_text() -> None:
    assert read_authority(secret(PEM, "kubernetes.io/tls"), "token") == PEM.decode()


@pytest.mark.parametrize("value", [b"", b"canary", PEM + b"\xff", PEM * 100_000])
def test_what_is_no_authority_is_refused(value: bytes) -> None:
    found = read_authority(secret(value), "token")
    assert isinstance(found, InvalidInput)
    assert found.reason == "InvalidAuthority"
    assert "canary" not in found.message


def listing(text: str) -> dict[str, Any]:
    annotation = "dynamic-scoring.open-cluster-management.io/allowed-hosts"
    return {
        **secret(),
        "metadata": {**secret()["metadata"], "annotations": {annotation: text}},
    }


@pytest.mark.parametrize(
    ("text", "url", "expected"),
    [
        ("a.example,*.b.example", "https://a.example/scoring", True),
        ("a.example,*.b.example", "https://x.b.example/scoring", True),
        ("a.example,*.b.example", "https://evil.example/scoring", False),
        ("", "https://a.example/", False),
    ],
)
def test_a_secret_says_which_hosts_may_have_its_token(text: str, url: str, expected: bool) -> None:
    refusal = host_refused(listing(text), url)
    assert (refusal is None) is expected
    assert refusal is None or refusal.reason == "HostNotAllowed"


def test_a_secret_that_says_nothing_may_be_sent_anywhere() -> None:
    assert host_refused(secret(), "https://anything.example/") is None


@pytest.fixture
def own(tmp_path: Path) -> ServiceAccount:
    path = tmp_path / "token"
    path.write_bytes(CANARY)
    return ServiceAccount(path=path)


async def test_the_agents_own_token_is_read_at_each_call(own: ServiceAccount) -> None:
    for text in ("first", "rotated\n"):
        own.path.write_text(text, encoding="ascii")
        token = await own.token("https://thanos.monitoring.svc:9091/api/v1/query")
        assert token == Token(text.strip())


@pytest.mark.parametrize(
    "url", ["http://thanos.monitoring.svc/", "https://thanos.example/", "https://evil.svc.example"]
)
async def test_the_agents_own_token_stays_in_the_cluster(own: ServiceAccount, url: str) -> None:
    found = await own.token(url)
    assert isinstance(found, InvalidInput)
    assert found.reason == "HostNotAllowed"
    assert "--service-account-token-hosts" in found.message


async def test_an_agent_outside_a_cluster_has_no_token(own: ServiceAccount) -> None:
    own.path.unlink()
    found = await own.token("https://thanos.monitoring.svc/")
    assert isinstance(found, InvalidInput)
    assert found.reason == "TokenUnreadable"
