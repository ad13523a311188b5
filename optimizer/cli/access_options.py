"""Options that say who may call: authentication, impersonation, TLS."""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import FILE, NumberRange, option, option_names, options, server_url
from optimizer.cli.model_options import ObjectName

if TYPE_CHECKING:
    from socket import socket

    from dsf.kube.client.kube_client import Client
    from dsf.kube.port import Kube
    from dsf.runtime.watched_certificate import WatchedCertificate
    from optimizer.api.serving import Certificate
    from optimizer.operations.access.authorized_optimizer import Access

_log = logging.getLogger(__name__)


def _issuers(
    context: click.Context, issuer: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(server_url(context, issuer, value) for value in values)


access_options = options(
    option(
        "--auth",
        type=click.Choice(["kubernetes", "none"]),
        default="kubernetes",
        help="kubernetes: callers send a bearer token, which the hub verifies (TokenReview),"
        " and need rights on the hub (SubjectAccessReview). none: every caller acts with the"
        " rights of this process; only on a loopback address.",
    ),
    option(
        "--auth-audience",
        multiple=True,
        default=["dynamic-scoring-optimizer"],
        help="Audience that a token must have; repeatable.",
    ),
    option(
        "--oauth-issuer",
        multiple=True,
        callback=_issuers,
        help="URL of an OAuth issuer whose tokens the hub accepts; repeatable. Clients without a"
        " token find it in the protected resource metadata (RFC 9728).",
    ),
    option(
        "--resource-url",
        default="",
        callback=server_url,
        help="Public URL of this server in that metadata; default: the one that a client uses.",
    ),
    option(
        "--requests-per-second",
        type=NumberRange(min=0, max=1e6),
        default=50.0,
        help="Requests of one caller that are answered; 0: all. A caller that was silent may send"
        " four times as many at once.",
    ),
    option(
        "--impersonate",
        is_flag=True,
        help="Write Placements, PlacementBindings and Policies as the caller, not as this"
        " process, which needs the right to impersonate users and groups.",
    ),
    option(
        "--tls-cert-file",
        type=FILE,
        help="Serve https with the certificate in this file, then intermediate ones. The file"
        " is read again when it changes.",
    ),
    option(
        "--tls-private-key-file",
        type=FILE,
        help="Key of the certificate; read again when it changes.",
    ),
    option(
        "--tls-secret",
        type=ObjectName(),
        help="Serve https with a certificate that this server signs itself, for localhost and each"
        " --allowed-host. This Secret keeps it, with the authority to trust in ca.crt; it is made"
        " where there is none, and the certificate is renewed 30 days before it expires.",
    ),
)
ACCESS_OPTIONS = option_names(access_options)


def check_auth(rest: Mapping[str, Any], listener: "socket") -> None:
    """Raise UsageError for `--auth none` on an address that others can reach; warn of plain HTTP.

    Plain HTTP stays possible there, because TLS may end in front of this process.
    """
    address = listener.getsockname()[0]
    reachable = not ipaddress.ip_address(address).is_loopback
    if rest["auth"] == "none" and reachable:
        raise click.UsageError(
            f"--auth none would let everybody who reaches {address} write with the rights of"
            " this process; use --auth kubernetes, or --bind-address 127.0.0.1"
        )
    if rest["impersonate"] and rest["auth"] == "none":
        raise click.UsageError(
            "--impersonate needs --auth kubernetes, because without it callers have no names"
        )
    if rest["oauth_issuer"] and rest["auth"] == "none":
        raise click.UsageError(
            "--oauth-issuer needs --auth kubernetes: the hub verifies its tokens"
        )
    if rest["resource_url"] and not rest["oauth_issuer"]:
        raise click.UsageError("--resource-url needs --oauth-issuer")
    if reachable and not (rest["tls_secret"] or rest["tls_cert_file"]):
        _log.warning(
            "callers send their tokens over plain HTTP: use --tls-secret or --tls-cert-file, unless"
            " TLS ends in front of this process",
            extra={"address": address},
        )


def access_of(rest: Mapping[str, Any], kube: "Client") -> "Access | None":
    """Return how callers are authorized; None for `--auth none`."""
    from optimizer.operations.access.authorized_optimizer import Access
    from optimizer.operations.access.delegated_auth import DelegatedAuth, ProtectedResource

    if rest["auth"] == "none":
        return None
    issuers = rest["oauth_issuer"]
    return Access(
        DelegatedAuth(kube.on_own_connections("reviews"), rest["auth_audience"]),
        kube.impersonating if rest["impersonate"] else None,
        ProtectedResource(issuers, rest["resource_url"].rstrip("/")) if issuers else None,
    )


def certificate_of(rest: Mapping[str, Any]) -> "WatchedCertificate | None":
    """Return the certificate in files to serve; None without them. Raises ClickException."""
    from dsf.runtime.watched_certificate import BadCertificate, WatchedCertificate

    certificate, key = rest["tls_cert_file"], rest["tls_private_key_file"]
    if rest["tls_secret"] and (certificate or key):
        raise click.UsageError("--tls-secret and --tls-cert-file: choose one")
    if bool(certificate) != bool(key):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file need each other")
    if not certificate:
        return None
    try:
        return WatchedCertificate(certificate, key)
    except BadCertificate as error:
        raise click.ClickException(str(error)) from error


@asynccontextmanager
async def serving_certificate(
    rest: Mapping[str, Any], files: "WatchedCertificate | None", kube: "Kube"
) -> AsyncIterator["Certificate | None"]:
    """Yield the certificate to serve, and renew that of `--tls-secret` meanwhile.

    None for plain HTTP. Raises KubeError if the Secret can't be read or written.
    """
    if not rest["tls_secret"]:
        yield files
        return
    from dsf.kube.clock import utc_now
    from optimizer.api.self_signed_certificate import SelfSignedCertificate

    hosts = ("localhost", "127.0.0.1", "::1", *rest["allowed_host"])
    certificate = SelfSignedCertificate(kube, rest["tls_secret"], hosts, now=utc_now)
    await certificate.renew()
    renewing = asyncio.create_task(certificate.keep())
    try:
        yield certificate
    finally:
        renewing.cancel()
