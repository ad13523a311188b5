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
