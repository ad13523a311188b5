"""A server certificate that is read again when its files change.

Kubernetes replaces the files of a mounted Secret while the process runs, and so does cert-manager.
"""

import logging
import ssl
from pathlib import Path

from dsf.kube.client.credentials import Stamp, file_stamps

_log = logging.getLogger(__name__)


class BadCertificate(Exception):
    """The certificate or its key can't be used; the message is one line for the operator."""


class WatchedCertificate:
    """A TLS context whose every handshake uses the certificate that the files hold now.

    A pair that can't be used, such as one that is half written, leaves the last good one in
    place until the next handshake. Raises BadCertificate if the first pair can't be used.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._stamps = file_stamps(self._files)
        try:
            self.context = self._current = server_context(*self._files)
        except (OSError, ssl.SSLError) as error:
            raise BadCertificate(
                f"the certificate {certificate} with the key {key} can't be used: {_reason(error)}"
            ) from error
        self.context.sni_callback = self._choose

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext
    ) -> None:
        """Give a handshake the current certificate; OpenSSL calls this with or without a name."""
        del name, context
        stamps = file_stamps(self._files)
        if stamps != self._stamps:
            self._reload(stamps)
        connection.context = self._current

    def _reload(self, stamps: tuple[Stamp, ...]) -> None:
        try:
            self._current = server_context(*self._files)
        except (OSError, ssl.SSLError) as error:
            _log.warning(
                "the changed certificate can't be used; the last one stays",
                extra={"file": str(self._files[0]), "error": _reason(error)},
            )
            return
        self._stamps = stamps
        _log.info("read the changed certificate", extra={"file": str(self._files[0])})


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return a context that serves a certificate; raises OSError, of which SSLError is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without a password, OpenSSL would ask for one on the terminal.
    context.load_cert_chain(certificate, key, password=lambda: "")
    return context


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
