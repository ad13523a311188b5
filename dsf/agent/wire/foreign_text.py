"""Text that a server answered, for messages: on one line, cut, without the secrets of the call.

Conditions, logs and `--explain` quote servers, and a server may repeat the token that it was sent
in any part of its answer. So text of an answer enters a message only by `CallSecrets.excerpt`, and
labels and samples are refused if they contain a secret of their call.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from dsf.api.untrusted_text import TEXT_LIMIT, UntrustedText, escaped
from dsf.kube.redaction import REDACTED, redact

EXCERPT_LIMIT = TEXT_LIMIT
"""Characters of foreign text in one message: enough for an error's first sentence."""

DATA_LIMIT = 8
"""Characters of the shortest secret that data may not contain: shorter words occur in labels."""

_ESCAPE_LENGTH = 6
"""Characters of the longest escape, `\\u0041`, for one character of a secret."""

_QUOTED = 4 * EXCERPT_LIMIT
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\([\"\\/])|%([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class CallSecrets:
    """The secrets that a call sends to its server; `repr` does not show them."""

    values: tuple[str, ...] = field(default=(), repr=False)

    def excerpt(self, text: str | bytes | bytearray) -> UntrustedText:
        """Return foreign text on one line, cut, without control characters and credentials.

        Formatting quotes it. `line` returns the same without quotes.
        """
        return UntrustedText(self.line(text))

    def line(self, text: str | bytes | bytearray) -> str:
        """Return foreign text for a cell of a table, or for words that already quote it."""
        window = text[: _QUOTED + _ESCAPE_LENGTH * max(map(len, self.values), default=0)]
        decoded = window if isinstance(window, str) else window.decode(errors="replace")
        shown = self._without(decoded, cut=len(window) < len(text))[:_QUOTED]
        line = escaped(redact(_UNPRINTABLE.sub(" ", shown).strip()))
        return line if len(line) <= EXCERPT_LIMIT else f"{line[: EXCERPT_LIMIT - 1]}…"

    def suspected_in(self, body: bytes | bytearray) -> "CallSecrets":
        """Return the secrets that the data of a JSON body might contain: mostly none."""
        return CallSecrets(
            tuple(
                value
                for value in self.values
                if len(value) >= DATA_LIMIT and (b"\\" in body or value.encode() in body)
            )
        )

    def found_in(self, texts: Iterable[str]) -> bool:
        """Tell whether one of the texts contains a secret."""
        return bool(self.values) and any(value in text for text in texts for value in self.values)

    def _without(self, text: str, *, cut: bool) -> str:
        """Return a text without secrets, escaped or not; nor does a `cut` one end with a part."""
        if not self.values:
            return text
        text = self._replaced(text, cut=cut)
        plain = _ESCAPE.sub(_character, text)
        found = self._replaced(plain, cut=cut)
        return text if found == plain else found

    def _replaced(self, text: str, *, cut: bool) -> str:
        for value in self.values:
            text = text.replace(value, REDACTED)
            if cut:
                starts = range(max(0, len(text) - len(value)), len(text))
                text = text[: next((at for at in starts if value.startswith(text[at:])), None)]
        return text


NO_SECRETS = CallSecrets()
"""For text that no call brought, such as a scorer's own configuration."""


def call_secrets(url: str, headers: Mapping[str, str]) -> CallSecrets:
    """Return the secrets of a call: its token, and the password in its URL."""
    values = [headers.get("Authorization", "").partition(" ")[2]]
    try:
        parts = urlsplit(url)
    except ValueError:
        return _longest_first(values)
    if parts.password:
        password = unquote(parts.password)
        basic = f"{unquote(parts.username or '')}:{password}".encode()
        values += (password, parts.password, b64encode(basic).decode("ascii"))
    return _longest_first(values)


def _longest_first(values: Iterable[str]) -> CallSecrets:
    return CallSecrets(tuple(sorted({value for value in values if value}, key=len, reverse=True)))


def _character(escape: re.Match[str]) -> str:
    code, plain, byte = escape.groups()
    return plain or chr(int(code or byte, 16))
