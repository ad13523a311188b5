from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.secrets import TOKEN_LIMIT, Secrets, Token, read_token
from dsf.api.invalid import Invalid

CANARY = b"canary-3f2a"


def secret(value: bytes = CANARY, type_: str = "Opaque", name: str = "api-auth") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "dynamic-scoring"},
        "type": type_,
        "data": {"token": b64encode(value).decode()},
    }


def refused(obj: dict[str, Any], key: str = "token") -> Invalid:
    found = read_token(obj, key)
    assert isinstance(found, Invalid)
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
    assert await Secrets(None, "dynamic-scoring").token("", "") is None


async def test_without_an_api_server_no_secret_can_be_read() -> None:
    found = await Secrets(None, "dynamic-scoring").token("api-auth", "token")
    assert isinstance(found, Invalid)
    assert found.reason == "SecretUnreadable"


@given(st.binary(max_size=40))
def test_any_value_is_a_clean_token_or_refused(value: bytes) -> None:
    found = read_token(secret(value), "token")
    assert isinstance(found, Invalid) or (
        found.value.isascii() and found.value.isprintable() and " " not in found.value
    )
