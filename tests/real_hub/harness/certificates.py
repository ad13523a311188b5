"""Certificates of one control plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trustme

from .ports import LOOPBACK

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path


@dataclass(frozen=True)
class KeyPair:
    """Files of a certificate and its private key, PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority whose files are in one directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._ca = trustme.CA()
        self.own = KeyPair(directory / "ca.crt", directory / "ca.key")
        self.own.certificate.write_bytes(self._ca.cert_pem.bytes())
        # Of the certificates that an aggregated API server would have to show; there is none.
        self.front_proxy = directory / "front-proxy-ca.crt"
        self.front_proxy.write_bytes(trustme.CA().cert_pem.bytes())
        write_secret(self.own.key, self._ca.private_key_pem.bytes())

    def server(self, name: str) -> KeyPair:
        """Certificate of a server on the loopback interface."""
        return self._issue(name, self._ca.issue_cert(LOOPBACK, "localhost", "kubernetes.default"))

    def client(
        self, user: str, group: str | None = None, *, expires: datetime | None = None
    ) -> KeyPair:
        """Client certificate of a Kubernetes user, who is in at most one group."""
        # A certificate without any alternative name would be refused by Go: its list of names
        # would be empty and critical.
        leaf = self._ca.issue_cert(
            "user.invalid", common_name=user, organization_name=group, not_after=expires
        )
        return self._issue(f"client-{user.replace(':', '-').replace('/', '-')}", leaf)

    def _issue(self, name: str, leaf: trustme.LeafCert) -> KeyPair:
        pair = KeyPair(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        pair.certificate.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        write_secret(pair.key, leaf.private_key_pem.bytes())
        return pair


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(content)
