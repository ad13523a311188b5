"""Over real sockets: no configURL makes the hub connect to what the rules deny."""

import asyncio
import threading
from pathlib import Path

import pytest
import trustme

from dsf.hub.observe.prober import ProbeLimits, Prober, TrustedAuthorities, UnusableAuthorityFile
from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult, ProbeTarget
from dsf.outbound.destinations import Destinations, destinations
from dsf.outbound.pinned_connections import QUICK_PLACES, NameLookups
from tests.dsf.hub.scoring_api import ScoringAPI, scoring_api


def rules(**lists: list[str]) -> Destinations:
    made = destinations(**lists)  # type: ignore[arg-type]  # the names are checked by the call
    assert isinstance(made, Destinations)
    return made


def named(*answers: list[str]) -> NameLookups:
    """A name server with one answer after the other; it keeps to the last."""
    left = list(answers)
    return NameLookups(lambda _: left.pop(0) if len(left) > 1 else left[0])


async def probed(url: str, **options: object) -> ProbeResult:
    prober = Prober(**options)  # type: ignore[arg-type]  # passed on
    return await prober.probe(ProbeTarget(url, full=True))


def reasons(answer: ProbeResult) -> set[str]:
    return {
        part.reason if isinstance(part, ProbeFailure) else "ok"
        for part in (answer.health, answer.config)
    }


LOOPBACK = rules(denied_cidrs=["127.0.0.0/8", "::1/128"])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]"]
)
@pytest.mark.fire("the hub connects to no denied address", "spellings of addresses, over sockets")
async def test_no_spelling_of_a_denied_address_is_connected_to(host: str) -> None:
    async with scoring_api() as api:
        url = api.config_url.replace("127.0.0.1", host)
        answer = await probed(url, destinations=LOOPBACK)
        assert reasons(answer) == {"Unreachable" if host.startswith("01") else "Denied"}
        assert api.asked == []


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "2852039166", "0xa9fea9fe", "[::ffff:a9fe:a9fe]", "0", "[::]", "[fe80::1]"],
)
@pytest.mark.fire("the hub connects to no denied address", "spellings of addresses, over sockets")
async def test_metadata_is_denied_by_default(host: str) -> None:
    assert reasons(await probed(f"http://{host}/latest")) == {"Denied"}


# ruff: noqa: S104, RUF001 - addresses that are refused, and letters that only look right
SPELLINGS = (
    *("127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "017700000001", "0x7f000001"),
    *("0x7f.0x0.0x0.0x1", "0177.0.0.1", "127.000.000.001", "127.0.0.01", "0", "0.0.0.0", "0x0"),
    *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    *("[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::1%25lo]", "[fe80::1%25lo]"),
    *("localhost", "LOCALHOST", "localhost.", "user@127.0.0.1", "127.0.0.1%00", "127.0.0.1%2e"),
    *("127.0.0.1\\@example.com", "example.com#@127.0.0.1", "127.0.0.1;example.com", "①②⑦.0.0.1"),
    *("127。0。0。1", "lоcalhost", " 127.0.0.1", "127.0.0.1\t", "[::1", "127.0.0.1:80:"),
)


async def test_no_spelling_of_this_machine_reaches_it_where_loopback_is_denied() -> None:
    async with scoring_api() as api:
        port = api.url.rpartition(":")[2]
        prober = Prober(ProbeLimits(seconds=2.0), destinations=LOOPBACK)
        for host in SPELLINGS:
            for scheme in ("http", "HTTP", "https", "ftp", "file", "gopher"):
                answer = await prober.probe(
                    ProbeTarget(f"{scheme}://{host}:{port}/base/config", True)
                )
                assert "ok" not in reasons(answer), (scheme, host)
        assert api.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_leads_nowhere(status: int) -> None:
    async with scoring_api() as inner, scoring_api() as api:
        api.status, api.headers = status, {"Location": inner.config_url}
        answer = await probed(api.config_url)
        assert "Redirected" in reasons(answer)
        assert isinstance(answer.config, ProbeFailure)
        assert inner.config_url in answer.config.message
        assert inner.asked == []


async def test_the_address_checked_is_the_one_connected_to() -> None:
    async with scoring_api() as api:
        port = api.url.rpartition(":")[2]
        url = f"http://rebinding.example:{port}/base/config"
        # Were the name looked up again for the connection, it would lead to loopback.
        answer = await probed(
            url,
            destinations=LOOPBACK,
            lookups=named(["203.0.113.1"], ["127.0.0.1"]),
            limits=ProbeLimits(seconds=0.3),
        )
        assert reasons(answer) <= {"TimedOut", "Unreachable", "Denied"}
        assert api.asked == []


async def test_one_denied_address_denies_the_name() -> None:
    async with scoring_api() as api:
        port = api.url.rpartition(":")[2]
        lookups = named(["127.0.0.1", "169.254.169.254"])
        answer = await probed(f"http://mixed.example:{port}/base/config", lookups=lookups)
        assert reasons(answer) == {"Denied"}
        assert api.asked == []


async def test_the_next_address_is_tried_and_the_host_keeps_its_name() -> None:
    async with scoring_api() as api:
        port = api.url.rpartition(":")[2]
        lookups = named(["127.0.0.2", "127.0.0.1"])  # nothing listens on the first
        answer = await probed(f"http://cpu.example:{port}/base/config", lookups=lookups)
        assert reasons(answer) == {"ok"}
        assert set(api.hosts) == {f"cpu.example:{port}"}


async def test_hosts_that_are_not_allowed_are_not_even_looked_up() -> None:
    def never(host: str) -> list[str]:
        raise AssertionError(host)

    answer = await probed(
        "http://other.example/config",
        destinations=rules(allowed_hosts=["*.scorers.svc"]),
        lookups=NameLookups(never),
    )
    assert reasons(answer) == {"Denied"}
    assert isinstance(answer.config, ProbeFailure)
    assert "other.example" in answer.config.message


async def test_tls_is_verified_by_the_name_though_an_address_is_called(tmp_path: Path) -> None:
    authority, bundle = trustme.CA(), tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(str(bundle))
    certificate = authority.issue_cert("cpu.example")
    async with scoring_api(ScoringAPI(), certificate=certificate) as api:
        port, trust = api.url.rpartition(":")[2], TrustedAuthorities(bundle)
        options = {"lookups": named(["127.0.0.1"])}
        good = f"https://cpu.example:{port}/base/config"
        assert reasons(await probed(good, trust=trust, **options)) == {"ok"}
        assert reasons(await probed(good, **options)) == {"Unreachable"}
        other = f"https://other.example:{port}/base/config"
        answer = await probed(other, trust=trust, **options)
        assert isinstance(answer.config, ProbeFailure)
        assert "certificate" in answer.config.message.lower()


async def test_an_authority_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    old, new, bundle = trustme.CA(), trustme.CA(), tmp_path / "ca.crt"
    old.cert_pem.write_to_path(str(bundle))
    async with scoring_api(ScoringAPI(), certificate=new.issue_cert("127.0.0.1")) as api:
        prober, target = (
            Prober(trust=TrustedAuthorities(bundle)),
            ProbeTarget(api.config_url, full=True),
        )
        assert reasons(await prober.probe(target)) == {"Unreachable"}
        bundle.write_text("half a file")
        assert reasons(await prober.probe(target)) == {"Unreachable"}
        new.cert_pem.write_to_path(str(bundle))
        assert reasons(await prober.probe(target)) == {"ok"}


def test_an_authority_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    with pytest.raises(UnusableAuthorityFile, match=r"ca\.crt"):
        TrustedAuthorities(path)
    path.write_text("nothing")
    with pytest.raises(UnusableAuthorityFile, match="PEM"):
        TrustedAuthorities(path)


async def test_names_that_hang_hold_up_no_others() -> None:
    release = threading.Event()

    def resolve(host: str) -> list[str]:
        if host.startswith("hangs"):
            release.wait()
            raise OSError("timed out")
        return ["127.0.0.1"]

    lookups = NameLookups(resolve)
    hanging = [f"hangs{number}.example" for number in range(QUICK_PLACES - 1)]
    try:
        async with scoring_api() as api:
            prober = Prober(ProbeLimits(seconds=0.3), lookups=lookups)
            for _ in range(2):  # the second time they wait for the lookups of the first
                answers = await asyncio.gather(
                    *(
                        prober.probe(ProbeTarget(f"http://{host}/config", full=True))
                        for host in hanging
                    )
                )
                assert {reason for answer in answers for reason in reasons(answer)} == {"TimedOut"}
                port = api.url.rpartition(":")[2]
                good = ProbeTarget(f"http://good.example:{port}/base/config", full=True)
                assert reasons(await prober.probe(good)) == {"ok"}
            assert threading.active_count() < 2 * QUICK_PLACES
    finally:
        release.set()
