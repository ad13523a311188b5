"""A server certificate that the optimizer signs itself, and renews while it serves.

A Secret keeps it, with an authority: who trusts `ca.crt` trusts the renewed certificates, too.
"""

import asyncio
import base64
import binascii
import ipaddress
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dsf.kube.client.certificate_files import certificate_files
from dsf.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from dsf.kube.kinds import SECRET
from dsf.kube.port import Kube, Object
from dsf.runtime.watched_certificate import server_context

AUTHORITY_LIFE, LIFE, RENEW_BEFORE = timedelta(days=3650), timedelta(days=90), timedelta(days=30)
CHECK_SECONDS = 3600
CLOCK_SKEW = timedelta(minutes=5)
"""A new certificate is valid this long ago, for clients whose clock is behind."""

Files = Mapping[str, bytes]
"""The data of the Secret: `ca.crt`, `ca.key`, `tls.crt` and `tls.key`, each PEM."""

_UNUSABLE = (
    KeyError,
    TypeError,
    ValueError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""How a Secret tells that what somebody wrote there can't be served."""

_log = logging.getLogger(__name__)


def renewed(files: Files, hosts: Iterable[str], now: datetime) -> Files:
    """Return `files` themselves if they can be served, else new ones.

    A certificate that is missing, broken, about to expire or for other hosts is replaced. The
    authority stays unless it is missing, broken, or ends before a new certificate would.
    """
    names = list(map(_general_name, hosts))
    try:
        authority = x509.load_pem_x509_certificate(files["ca.crt"])
        signer = _private_key(files["ca.key"])
        usable = signer.public_key() == authority.public_key()
    except _UNUSABLE:
        usable = False
    if not usable or authority.not_valid_after_utc < now + LIFE:
        signer = ec.generate_private_key(ec.SECP256R1())
        authority = _authority(signer, now)
    elif _serves(files, authority, names, now):
        return files
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _begun(authority.subject, _subject("dynamic-scoring-optimizer"), key, now, LIFE)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    return {
        "ca.crt": _pem(authority),
        "ca.key": _pem(signer),
        "tls.crt": _pem(certificate),
        "tls.key": _pem(key),
    }


class SelfSignedCertificate:
    """A TLS context whose handshakes use the certificate in a Secret, which this process renews.

    `secret`: its namespace and name; it is made where it is missing. `hosts`: names and addresses
    that clients use.
    """

    def __init__(
        self,
        kube: Kube,
        secret: tuple[str, str],
        hosts: Iterable[str],
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._kube, self._now = kube, now
        self._namespace, self._name = secret
        self._hosts = sorted(set(hosts))
        self._served: Files = {}
        self.context = self._current = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.sni_callback = self._choose

    async def renew(self) -> None:
        """Read the Secret, renew its certificate if it is due, and serve it; raises KubeError."""
        try:
            await self._renew()
        except (AlreadyExists, Conflict):
            # Another process has just written it: what it wrote is served.
            await self._renew()

    async def _renew(self) -> None:
        found = await self._secret()
        present = _decoded(found)
        files = renewed(present, self._hosts, self._now())
        if files is not present:
            await self._write(found, files)
            _log.info("renewed the certificate", extra={"secret": self._called})
        if files != self._served:
            with certificate_files(files["tls.crt"], files["tls.key"]) as paths:
                self._current = server_context(*paths)
            self._served = files

    async def keep(self) -> None:
        """Renew hourly until cancelled; a Secret that can't be read or written is tried again."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.renew()
            except KubeError as error:
                _log.warning(
                    "the certificate can't be renewed; the last one stays",
                    extra={"secret": self._called, "error": str(error)},
                )

    @property
    def _called(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def _secret(self) -> Object:
        try:
            return await self._kube.get(SECRET, self._name, self._namespace)
        except NotFound:
            metadata = {"name": self._name, "namespace": self._namespace}
            return SECRET.object(metadata=metadata, type="Opaque")

    async def _write(self, found: Object, files: Files) -> None:
        data = {name: base64.b64encode(content).decode() for name, content in files.items()}
        secret = {**found, "data": {**(found.get("data") or {}), **data}}
        if "resourceVersion" in found["metadata"]:
            await self._kube.update(SECRET, secret)
        else:
            await self._kube.create(SECRET, secret)

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext
    ) -> None:
        del name, context
        connection.context = self._current


def _decoded(secret: Object) -> Files:
    data = secret.get("data") or {}
    try:
        return {name: base64.b64decode(text, validate=True) for name, text in data.items()}
    except (binascii.Error, TypeError, ValueError):
        return {}


def _serves(
    files: Files, authority: x509.Certificate, names: list[x509.GeneralName], now: datetime
) -> bool:
    """Whether the certificate is of this authority, for these names, has its key, and lasts."""
    try:
        certificate = x509.load_pem_x509_certificate(files["tls.crt"])
        certificate.verify_directly_issued_by(authority)
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        fits = _private_key(files["tls.key"]).public_key() == certificate.public_key()
    except _UNUSABLE:
        return False
    return fits and list(named) == names and now + RENEW_BEFORE < certificate.not_valid_after_utc


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = _subject("dynamic-scoring-optimizer-ca")
    usage = dict.fromkeys(
        (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return (
        _begun(name, name, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**usage, key_cert_sign=True, crl_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _begun(
    issuer: x509.Name,
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("not a key of an elliptic curve")
    return key


def _pem(item: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    if isinstance(item, x509.Certificate):
        return item.public_bytes(serialization.Encoding.PEM)
    return item.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
