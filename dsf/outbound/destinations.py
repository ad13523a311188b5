"""Rules for the hosts and addresses that the hub and the agents may connect to.

The URLs come from users who may write DynamicScorers, and from servers of `/config` documents. The
rules apply to the address to which a name resolves. Denial wins over permission.

Sources: the IANA special-purpose address registries; the clouds' documentation of their metadata
services. IPv4 addresses embedded in IPv6: RFC 4291 (mapped, compatible), 2765 (translated), 6052
and 8215 (NAT64), 3056 (6to4), 4380 (Teredo), 5214 (ISATAP).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from dsf.api.untrusted_text import InvalidInput

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

DENIED_BY_DEFAULT: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "169.254.0.0/16",  # link-local, where most clouds serve metadata and credentials
        "100.100.100.200/32",  # metadata of Alibaba Cloud
        "168.63.129.16/32",  # host agent of Azure
        "192.0.0.192/32",  # metadata of Oracle Cloud
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/128",  # this host
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local, which RFC 3879 withdrew
        "fd00:ec2::/32",  # metadata of AWS
        "fd20:ce::254/128",  # metadata of Google Cloud
        "ff00::/8",  # multicast
    )
)
"""Denied unless an allowed range is inside one: clouds serve credentials at these addresses."""

_NAT64 = IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_IN_LAST_BITS = (
    IPv6Network("::ffff:0:0/96"),  # mapped
    IPv6Network("::ffff:0:0:0/96"),  # translated
    IPv6Network("::/96"),  # compatible; `::` and `::1` are the host itself
    _NAT64,
)
_THIS_HOST = IPv4Network("0.0.0.0/8")
_ISATAP = 0x00005EFE
"""The first half of an ISATAP interface identifier, without the bits u and g."""
_WITHOUT_U_AND_G = 0xFCFFFFFF
_LAST_32_BITS = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Destinations:
    """Globs of hosts in lower case, and ranges of addresses; an empty allowed list allows all."""

    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()
    allowed_ranges: tuple[Network, ...] = ()
    denied_ranges: tuple[Network, ...] = ()

    def why_host_denied(self, host: str) -> str | None:
        """Return why the name of a host is denied; None if it is not."""
        name = host.lower().rstrip(".")
        for glob in self.denied_hosts:
            if fnmatchcase(name, glob):
                return f"the administrator denies the host {name!r} (by {glob!r})"
        if self.allowed_hosts and not any(fnmatchcase(name, glob) for glob in self.allowed_hosts):
            return f"the host {name!r} is not among those that the administrator allows"
        return None

    def why_address_denied(self, address: str) -> str | None:
        """Return why an address is denied; None if it is allowed.

        The message names the range but not the address, because it would show the author of a
        scorer what our resolver answers.
        """
        try:
            parsed = _without_scope(ip_address(address))
        except ValueError:
            return "it is not an IP address"
        for form in (parsed, *_embedded(parsed)):
            if range_ := _within(form, self.denied_ranges):
                return f"it is in {range_}, which the administrator denies"
            if (range_ := _within(form, DENIED_BY_DEFAULT)) and not self._named(form, range_):
                return (
                    f"it is in {range_}, a special range (link-local, metadata, ...) that is denied"
                )
        if self.allowed_ranges and not _within(_destination(parsed), self.allowed_ranges):
            return "it is in no range that the administrator allows"
        return None

    def _named(self, form: Address, denied: Network) -> bool:
        """Tell whether the administrator allows an address with a range inside the denied one."""
        allowed = _within(form, self.allowed_ranges)
        return allowed is not None and _contains(denied, allowed)


def destinations(
    *,
    allowed_hosts: Iterable[str] = (),
    denied_hosts: Iterable[str] = (),
    allowed_cidrs: Iterable[str] = (),
    denied_cidrs: Iterable[str] = (),
) -> Destinations | InvalidInput:
    """Read globs of hosts, and ranges in CIDR form; a bare address is a range of one."""
    try:
        return Destinations(
            _globs(allowed_hosts),
            _globs(denied_hosts),
            tuple(map(ip_network, allowed_cidrs)),
            tuple(map(ip_network, denied_cidrs)),
        )
    except ValueError as error:
        return InvalidInput("InvalidRange", f"{error}; write it like 10.0.0.0/8 or fd00::/8")


def _globs(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text.lower().rstrip(".") for text in texts)


def _without_scope(address: Address) -> Address:
    """Return an address without the scope of `fe80::1%eth0`."""
    return IPv6Address(int(address)) if isinstance(address, IPv6Address) else address


def _destination(address: Address) -> Address:
    """Return the IPv4 address that a mapped or NAT64 address represents; others unchanged.

    A tunnel's address is not translated, because its IPv6 prefix may be anybody's network.
    """
    if not isinstance(address, IPv6Address):
        return address
    return _last_32_bits(address) if address in _NAT64 else address.ipv4_mapped or address


def _embedded(address: Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses to which a host, gateway or tunnel may translate an address."""
    if not isinstance(address, IPv6Address):
        return
    if any(address in network for network in _IN_LAST_BITS) and int(address) > 1:
        yield _last_32_bits(address)
    elif address.sixtofour:
        yield address.sixtofour
    elif address.teredo:
        yield from address.teredo  # server and client
    elif address in _LOCAL_NAT64:
        yield from _behind_local_nat64(address)
    if (int(address) >> 32) & _WITHOUT_U_AND_G == _ISATAP:
        yield _last_32_bits(address)


def _behind_local_nat64(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 address in an IPv6 address for each prefix length that RFC 6052 allows.

    Bits 64 to 71 are not part of it. A shorter prefix that gives an address in 0.0.0.0/8 is not the
    one in use, because no gateway forwards there.
    """
    yield _last_32_bits(address)
    number = int(address)
    without_u = (number >> 64 << 56) | (number & ((1 << 56) - 1))  # 120 bits
    for prefix in (48, 56, 64):
        embedded = IPv4Address((without_u >> (120 - prefix - 32)) & _LAST_32_BITS)
        if embedded not in _THIS_HOST:
            yield embedded


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & _LAST_32_BITS)


def _within(address: Address, networks: Iterable[Network]) -> Network | None:
    return next((network for network in networks if address in network), None)


def _contains(outer: Network, inner: Network) -> bool:
    if isinstance(outer, IPv4Network):
        return isinstance(inner, IPv4Network) and inner.subnet_of(outer)
    return isinstance(inner, IPv6Network) and inner.subnet_of(outer)
