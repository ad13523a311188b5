"""The certificate authorities that the hub trusts for scoring APIs."""

import logging
import ssl
from pathlib import Path

import httpx

log = logging.getLogger(__name__)


class UnusableAuthorityFile(Exception):
    """A file of certificate authorities is unusable; the message says which and why."""


class TrustedAuthorities:
    """The public authorities and those in a PEM file, which is read again when it changes.

    The environment adds none. Raises UnusableAuthorityFile if the file is unusable at first. If it
    becomes unusable later, the authorities stay as they are.
    """

    def __init__(self, authority: Path | None = None) -> None:
        self._authority = authority
        self._changed_at = self._modified()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """Return a TLS context with the current authorities."""
        modified = self._modified()
        if modified is not None and modified != self._changed_at:
            self._changed_at = modified
            try:
                self._context = self._load()
            except UnusableAuthorityFile as error:
                log.warning(
                    "unusable file of certificate authorities; the previous ones stay in use",
                    extra={"error": str(error)},
                )
        return self._context

    def _modified(self) -> int | None:
        try:
            return self._authority.stat().st_mtime_ns if self._authority else None
        except OSError:
            return None

    def _load(self) -> ssl.SSLContext:
        context = httpx.create_ssl_context(trust_env=False)
        if self._authority:
            try:
                context.load_verify_locations(cafile=self._authority)
            except (OSError, ssl.SSLError) as error:
                why = "it holds no PEM certificate" if isinstance(error, ssl.SSLError) else None
                raise UnusableAuthorityFile(
                    f"{self._authority}: {why or error.strerror or error}"
                ) from error
        return context
