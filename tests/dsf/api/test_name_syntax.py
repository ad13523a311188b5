"""Patterns of names say what the checks say; the checks have the API server's words."""

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsf.api import name_syntax
from dsf.api.name_syntax import dns_label, dns_subdomain, label_value

Check = Callable[[str], list[str]]
FORMS: list[tuple[Check, str, int]] = [
    (dns_label, name_syntax.DNS_LABEL, name_syntax.DNS_LABEL_LENGTH),
    (dns_subdomain, name_syntax.DNS_SUBDOMAIN, name_syntax.DNS_SUBDOMAIN_LENGTH),
    (label_value, name_syntax.LABEL_VALUE, name_syntax.LABEL_VALUE_LENGTH),
]
texts = st.text(alphabet="abZ19-._/", max_size=8)


@pytest.mark.parametrize(("check", "pattern", "most"), FORMS)
@given(text=texts)
@example("a..b")
@example("a.b")
@example("x" * 63)
@example("x" * 64)
@example("x" * 254)
def test_a_pattern_and_its_length_accept_what_the_check_accepts(
    check: Check, pattern: str, most: int, text: str
) -> None:
    accepted = len(text) <= most and re.search(pattern, text) is not None
    assert accepted is (check(text) == [])


@pytest.mark.parametrize(
    ("check", "before", "most"),
    [
        (name_syntax.dns_label, "", 63),
        (name_syntax.dns_subdomain, "", 253),
        (name_syntax.label_value, "", 63),
        (name_syntax.config_key, "", 253),
        (name_syntax.qualified_name, "", 63),
        (name_syntax.qualified_name, "a.b/", 63),
    ],
)
def test_the_longest_name_is_accepted_and_a_longer_one_is_not(
    check: Check, before: str, most: int
) -> None:
    """The lengths are those of k8s.io/apimachinery, pkg/util/validation/validation.go."""
    assert check(before + "x" * most) == []
    [problem] = check(before + "x" * (most + 1))
    assert problem.endswith(f"must be no more than {most} bytes")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a/b", []),
        ("a.b/C_d", []),
        ("/b", ["prefix part must be non-empty"]),
        ("a/", ["name part must be non-empty", "name part"]),
        ("A/b", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("a/b/c", ["a valid label key"]),
        ("a/-b", ["name part"]),
    ],
)
def test_both_parts_of_a_key_are_checked(name: str, parts: list[str]) -> None:
    found = name_syntax.qualified_name(name)
    assert len(found) == len(parts)
    assert all(text.startswith(part) for text, part in zip(found, parts, strict=True))
