"""Which certificates of scoring APIs are believed."""

import logging
import ssl
from pathlib import Path

import httpx

log = logging.getLogger(__name__)


class UnusableAuthority(Exception):
    """A file of certificate authorities that cannot be used; the message says which and why."""


class TrustedAuthorities:
    """The public authorities, and those in a PEM file, which is read again where it changes.

    The environment adds none. Raises UnusableAuthority where the file is unusable at first; one
    that becomes so later leaves the authorities as they are.
    """

    def __init__(self, authority: Path | None = None) -> None:
        self._authority = authority
        self._changed_at = self._modified()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """Return the authorities as they are now."""
        modified = self._modified()
        if modified is not None and modified != self._changed_at:
            self._changed_at = modified
            try:
                self._context = self._load()
            except UnusableAuthority as error:
                log.warning("authorities stay as they were", extra={"error": str(error)})
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
                raise UnusableAuthority(
                    f"{self._authority}: {why or error.strerror or error}"
                ) from error
        return context
