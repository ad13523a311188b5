"""Tokens and certificates read from Secrets, and the hosts that may get them."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.wire.secret_data import (
    AUTHORITY_LIMIT,
    TOKEN_LIMIT,
    Token,
    host_allowed,
    host_refused,
    parse_hosts,
    read_authority,
    read_token,
)
from dsf.api.untrusted_text import InvalidInput

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
HOSTS = "dynamic-scoring.open-cluster-management.io/allowed-hosts"


def secret(
    value: str, type_: str = "Opaque", name: str = "s", **annotations: str
) -> dict[str, Any]:
    return {
        "type": type_,
        "metadata": {"name": name, "namespace": "agents", "annotations": annotations},
        "data": {"key": b64encode(value.encode()).decode()},
    }


def refused(found: object) -> tuple[str, str]:
    assert isinstance(found, InvalidInput)
    return found.reason, found.message


def test_a_token_is_one_line_of_printable_characters() -> None:
    assert read_token(secret("abc.def\n"), "key") == Token("abc.def")
    assert read_token(secret("x" * TOKEN_LIMIT), "key") == Token("x" * TOKEN_LIMIT)
    for value in ("", "two words", "two\nlines", "nul\0", "é", "x" * (TOKEN_LIMIT + 1)):
        reason, message = refused(read_token(secret(value), "key"))
        assert reason == "InvalidToken"
        assert "Secret agents/s, key 'key'" in message


def test_a_key_that_is_missing_is_named_with_those_that_are_there() -> None:
    expected = ("SecretKeyNotFound", "Secret agents/s has no key 'other'; it has: key")
    assert refused(read_token(secret("abc"), "other")) == expected
    assert refused(read_authority(secret(PEM), "other")) == expected


def test_data_that_is_not_base64_is_no_token_and_no_certificate() -> None:
    broken = {**secret(""), "data": {"key": "%"}}
    assert refused(read_token(broken, "key"))[0] == "InvalidToken"
    assert refused(read_authority(broken, "key"))[0] == "InvalidAuthority"


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        ("kubernetes.io/service-account-token", "s"),
        ("kubernetes.io/dockerconfigjson", "s"),
        ("bootstrap.kubernetes.io/token", "s"),
        ("Opaque", "dynamic-scoring-framework-hub-kubeconfig"),
    ],
)
def test_credentials_of_kubernetes_are_never_sent(type_: str, name: str) -> None:
    assert refused(read_token(secret("abc", type_, name), "key"))[0] == "SecretRefused"


@given(st.text(max_size=40))
def test_any_value_is_a_clean_token_or_refused_and_shown_nowhere(value: str) -> None:
    found = read_token(secret(f"canary{value}"), "key")
    assert "canary" not in repr(found)
    assert isinstance(found, InvalidInput) or (
        found.value.isascii() and found.value.isprintable() and " " not in found.value
    )


def test_an_authority_is_pem_certificates() -> None:
    assert read_authority(secret(PEM), "key") == PEM
    full = PEM + "\n" * (AUTHORITY_LIMIT - len(PEM))
    assert read_authority(secret(full), "key") == full
    for value in ("no certificate", PEM + "é", full + "\n"):
        assert refused(read_authority(secret(value), "key"))[0] == "InvalidAuthority"


def test_a_token_goes_only_to_hosts_that_its_secret_allows() -> None:
    url = "https://scorer.example:8000/scoring"
    assert host_refused(secret("abc"), url) is None
    assert host_refused(secret("abc", **{HOSTS: "scorer.example:8000"}), url) is None
    reason, message = refused(host_refused(secret("abc", **{HOSTS: "other.example"}), url))
    assert reason == "HostNotAllowed"
    assert url in message


IN_CLUSTER = parse_hosts("*.svc, *.svc.cluster.local")


@pytest.mark.parametrize(
    ("entries", "url", "expected"),
    [
        ("a.example", "https://a.example/api", True),
        ("A.Example, b", "http://a.EXAMPLE.:8080/", True),
        ("a.example", "https://a.example@b.example/", False),
        ("a.example", "https://b.example/a.example", False),
        ("a.example", "https://a.example.b.example/", False),
        ("*.example", "https://a.b.example/", True),
        ("*.example", "https://example/", False),
        ("*.example", "https://.example/", False),
        ("*.example", "https://badexample/", False),
        ("a.example:8443", "https://a.example:8443/", True),
        ("a.example:8443", "https://a.example/", False),
        ("a.example:443", "https://a.example/", True),
        ("10.0.0.7:9090", "http://10.0.0.7:9090/", True),
        ("[fd00::1]:9090", "http://[fd00::1]:9090/", True),
        ("fd00::1", "http://[fd00::1]/", True),
        ("", "https://a.example/", False),
        ("*", "https://a.example/", False),
        ("*.example", "https://evil\\.a.example/", False),
        ("*.example", "https://evil\t.a.example/", False),
        ("a.example", "a.example", False),
        ("a.example", "https://[::1/", False),
        ("a.example", "https://a.example:99999/", False),
    ],
)
def test_hosts(entries: str, url: str, expected: bool) -> None:
    assert host_allowed(parse_hosts(entries), url) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("prometheus-k8s.monitoring.svc", True),
        ("thanos.openshift-monitoring.svc.cluster.local", True),
        ("svc", False),
        ("thanos.svc.example.com", False),
        ("10.96.0.1", False),
    ],
)
def test_hosts_inside_the_cluster(host: str, expected: bool) -> None:
    assert host_allowed(IN_CLUSTER, f"https://{host}:9091/api") is expected
