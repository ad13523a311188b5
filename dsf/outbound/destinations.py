"""Rules for the hosts and addresses that the hub and the agents may connect to.

The URLs come from whoever may write a DynamicScorer or serves a `/config`. The rules apply to the
address to which a name resolves. Denial wins over permission.

Sources: the IANA special-purpose address registries; RFC 4291, 6052, 3056 for IPv4 addresses
embedded in IPv6; the clouds' documentation of their metadata services.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from dsf.api.invalid_input import InvalidInput

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
"""Denied unless an allowed range lies inside: clouds serve credentials there, not scorers."""

_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = IPv6Network("::/96")
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
        if self.allowed_hosts and not _matches(name, self.allowed_hosts):
            return f"the host {name!r} is not among those that the administrator allows"
        return None

    def why_address_denied(self, address: str) -> str | None:
        """Return why an address is denied; None if it is allowed.

        The message has the range but not the address, because whoever names a host need not learn
        what our resolver answers.
        """
        try:
            seen = tuple(_with_embedded(ip_address(address)))
        except ValueError:
            return "it is no IP address"
        for face in seen:
            if found := _within(face, self.denied_ranges):
                return f"it is in {found}, which the administrator denies"
            if (found := _within(face, DENIED_BY_DEFAULT)) and not self._named(face, found):
                return (
                    f"it is in {found}, a special range (link-local, metadata, ...) that is denied"
                )
        if self.allowed_ranges and not _within(seen[-1], self.allowed_ranges):
            return "it is in no range that the administrator allows"
        return None

    def _named(self, face: Address, denied: Network) -> bool:
        """Tell whether the administrator allows an address with a range inside the denied one."""
        allowed = _within(face, self.allowed_ranges)
        return allowed is not None and _contains(denied, allowed)


def destinations(
    *,
    allowed_hosts: Iterable[str] = (),
    denied_hosts: Iterable[str] = (),
    allowed_cidrs: Iterable[str] = (),
    denied_cidrs: Iterable[str] = (),
) -> Destinations | InvalidInput:
    """Read globs of hosts, and ranges in CIDR form; a bare address is a range of one."""
    read = {"allowed": _ranges(allowed_cidrs), "denied": _ranges(denied_cidrs)}
    for ranges in read.values():
        if isinstance(ranges, InvalidInput):
            return ranges
    return Destinations(
        _globs(allowed_hosts),
        _globs(denied_hosts),
        *(ranges for ranges in read.values() if not isinstance(ranges, InvalidInput)),
    )


def _ranges(texts: Iterable[str]) -> tuple[Network, ...] | InvalidInput:
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError as error:
        return InvalidInput("InvalidRange", f"{error}; write it like 10.0.0.0/8 or fd00::/8")


def _globs(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text.lower().rstrip(".") for text in texts)


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _with_embedded(address: Address) -> Iterator[Address]:
    """Yield an address, and the IPv4 address embedded in it to which a gateway may translate it."""
    if not isinstance(address, IPv6Address):
        yield address
        return
    address = IPv6Address(int(address))  # without the scope of `fe80::1%eth0`
    yield address
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    elif address.sixtofour:
        yield address.sixtofour
    elif any(address in network for network in _NAT64):
        yield IPv4Address(int(address) & _LAST_32_BITS)
    elif address in _COMPATIBLE and int(address) > 1:
        yield IPv4Address(int(address))


def _within(address: Address, networks: Iterable[Network]) -> Network | None:
    return next((network for network in networks if address in network), None)


def _contains(outer: Network, inner: Network) -> bool:
    if isinstance(outer, IPv4Network):
        return isinstance(inner, IPv4Network) and inner.subnet_of(outer)
    return isinstance(inner, IPv6Network) and inner.subnet_of(outer)
