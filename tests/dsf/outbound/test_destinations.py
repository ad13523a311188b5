"""Rules for hosts and addresses: every notation of an address, globs, ranges."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.untrusted_text import InvalidInput
from dsf.outbound.destinations import DENIED_BY_DEFAULT, Destinations, destinations

DISGUISES = [
    "169.254.169.254",
    "::ffff:169.254.169.254",  # mapped
    "::ffff:a9fe:a9fe",
    "::169.254.169.254",  # compatible, withdrawn
    "64:ff9b::a9fe:a9fe",  # NAT64
    "64:ff9b:1::a9fe:a9fe",
    "::ffff:0:169.254.169.254",  # translated
    "::ffff:0:a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",  # NAT64 behind a prefix of 48 bits
    "64:ff9b:1:a9fe:a9:fe00::1",
    "64:ff9b:1:a9:fe:a9fe::",  # of 56 bits
    "64:ff9b:1:1:a9:fea9:fe00::",  # of 64 bits
    "2002:a9fe:a9fe::1",  # 6to4
    "2001::a9fe:a9fe:0:0:0",  # Teredo, the server
    "2001:0:1:2:0:0:5601:5601",  # Teredo, the client
    "2606::5efe:169.254.169.254",  # ISATAP
    "2606::200:5efe:a9fe:a9fe",
    "fd12::5efe:a9fe:a9fe",
    "0.0.0.0",  # noqa: S104 - an address that is refused
    "::",
    "::ffff:0.0.0.0",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "fd20:ce::254",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "not an address",
]


@pytest.mark.parametrize("address", DISGUISES)
def test_denied_by_default_and_when_everything_is_allowed(address: str) -> None:
    assert Destinations().why_address_denied(address)
    assert made(allowed_cidrs=["0.0.0.0/0", "::/0"]).why_address_denied(address)


@pytest.mark.parametrize(
    "address",
    [
        *("10.96.0.1", "127.0.0.1", "::1", "192.168.1.1", "fd12::1", "8.8.8.8", "2606::1"),
        *("64:ff9b:1::8.8.8.8", "2606::5efe:8.8.8.8", "2002:808:808::1", "::ffff:0:8.8.8.8"),
    ],
)
def test_allowed_by_default(address: str) -> None:
    assert Destinations().why_address_denied(address) is None


def made(**lists: list[str]) -> Destinations:
    rules = destinations(**lists)  # type: ignore[arg-type]  # the names are checked by the call
    assert isinstance(rules, Destinations)
    return rules


def test_a_special_range_has_to_be_named_to_be_allowed() -> None:
    assert made(allowed_cidrs=["169.254.10.0/24"]).why_address_denied("169.254.10.7") is None
    assert made(allowed_cidrs=["169.254.10.0/24"]).why_address_denied("169.254.169.254")
    assert made(allowed_cidrs=["168.0.0.0/7"]).why_address_denied("169.254.10.7")


def test_denied_ranges_win_and_see_through_disguises() -> None:
    rules = made(allowed_cidrs=["10.0.0.0/8"], denied_cidrs=["10.1.0.0/16", "127.0.0.1"])
    assert rules.why_address_denied("10.2.0.1") is None
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "127.0.0.1", "11.0.0.1", "fd12::1"):
        assert rules.why_address_denied(address), address
    assert rules.why_address_denied("::ffff:10.2.0.1") is None


def test_an_allowed_range_covers_only_what_an_address_stands_for() -> None:
    rules = made(allowed_cidrs=["10.0.0.0/8"])
    assert rules.why_address_denied("64:ff9b::10.2.0.1") is None
    # The other parts of these addresses lead to a stranger's network.
    for address in ("2606::5efe:10.2.0.1", "2002:a02:1::1", "2001:0:a02:1::1"):
        assert rules.why_address_denied(address), address


@pytest.mark.parametrize(
    "form", ["::ffff:{}", "::ffff:0:{}", "::{}", "64:ff9b::{}", "64:ff9b:1::{}", "2606::5efe:{}"]
)
def test_loopback_is_denied_in_every_form(form: str) -> None:
    rules = made(denied_cidrs=["127.0.0.0/8", "::1/128"])
    assert rules.why_address_denied(form.format("127.0.0.1"))


def test_the_range_is_told_and_not_the_address() -> None:
    why = made(denied_cidrs=["10.0.0.0/8"]).why_address_denied("10.20.30.40")
    assert why
    assert "10.0.0.0/8" in why
    assert "10.20.30.40" not in why


def test_hosts_by_globs() -> None:
    rules = made(allowed_hosts=["*.Scorers.svc", "api.example"], denied_hosts=["bad.*"])
    for host in ("cpu.scorers.svc", "CPU.scorers.SVC.", "api.example"):
        assert rules.why_host_denied(host) is None, host
    for host in (
        "bad.scorers.svc",
        "BAD.scorers.svc.",
        "scorers.svc",
        "api.example.evil",
        "10.0.0.1",
    ):
        assert rules.why_host_denied(host), host
    assert Destinations().why_host_denied("anything.example") is None


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "example", ""])
def test_what_is_no_range(text: str) -> None:
    answer = destinations(denied_cidrs=[text])
    assert isinstance(answer, InvalidInput)
    assert "10.0.0.0/8" in answer.message


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_alike_in_all_its_forms(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    plain = Destinations().why_address_denied(str(address)) is None
    assert plain == (not any(address in network for network in DENIED_BY_DEFAULT))
    assert plain == (Destinations().why_address_denied(f"::ffff:{address}") is None)
    nat64 = ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | number)
    assert plain == (Destinations().why_address_denied(str(nat64)) is None)


@given(
    st.sampled_from(["169.254.169.254", "224.0.0.1", "100.100.100.200"]),
    st.sampled_from([48, 56, 64, 96]),
    st.integers(0, 2**48 - 1),
    st.integers(0, 2**40 - 1),
)
def test_an_address_behind_a_local_nat64_is_denied_for_each_length_of_its_prefix(
    denied: str, length: int, subnet: int, suffix: int
) -> None:
    """RFC 6052, 2.2: the prefix, the address and a suffix, around the bits 64 to 71."""
    prefix = f"{0x0064FF9B0001:048b}{subnet:048b}"[: length - 8 * (length > 64)]
    number = f"{int(ipaddress.IPv4Address(denied)):032b}"
    bits = f"{prefix}{number}{suffix:040b}"[:120].ljust(120, "0")
    address = ipaddress.IPv6Address(int(f"{bits[:64]}{0:08b}{bits[64:]}", 2))
    assert Destinations().why_address_denied(str(address))


@given(st.text(max_size=40))
def test_any_text_is_judged(text: str) -> None:
    Destinations(denied_hosts=("a*",)).why_host_denied(text)
    Destinations().why_address_denied(text)
