"""Text and JSON that a server answered: how messages quote it, and how much of it is decoded.

Conditions, logs and `--explain` quote servers. A server that was sent a credential may spell it in
any way, so none of its free text enters a message: only statuses, and words that a closed set has
(decision 0044). Labels and samples are data: they are refused if they spell a credential of their
call in a usual way. The cost of decoding foreign JSON follows a limit, not its size.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from dsf.api.json_input import WrongEncoding
from dsf.api.untrusted_text import TEXT_LIMIT, UntrustedName, UntrustedText, escaped
from dsf.kube.redaction import NO_SPELLINGS, Spellings, redact, sent_credentials

EXCERPT_LIMIT = TEXT_LIMIT
"""Characters of foreign text in one message: enough for an error's first sentence."""

WITHHELD = "its words are not repeated, because it was sent a credential"

_QUOTED = 4 * EXCERPT_LIMIT
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class CallSecrets:
    """The credentials that a call sends to its server; `repr` does not show them.

    `sent_before`: an earlier call sent the server a credential.
    """

    values: tuple[str, ...] = field(default=(), repr=False)
    sent_before: bool = False

    @property
    def withheld(self) -> bool:
        """Whether the server knows a credential, so that none of its text is repeated."""
        return self.sent_before or bool(self.values)

    def excerpt(self, text: str | bytes | bytearray) -> UntrustedText:
        """Return foreign text on one line, cut, without control characters; empty if withheld.

        Formatting quotes it. `line` returns the same without quotes.
        """
        return UntrustedText(self.line(text))

    def line(self, text: str | bytes | bytearray) -> str:
        """Return foreign text for a cell of a table, or for words that already quote it."""
        if self.withheld:
            return ""
        shown = text[:_QUOTED]
        decoded = shown if isinstance(shown, str) else shown.decode(errors="replace")
        line = escaped(redact(_UNPRINTABLE.sub(" ", decoded).strip()))
        return line if len(line) <= EXCERPT_LIMIT else f"{line[: EXCERPT_LIMIT - 1]}…"

    def said(self, text: str | bytes | bytearray) -> str:
        """Return what goes after a statement on an answer: what the server said, or why not that.

        Empty if it said nothing.
        """
        if self.withheld:
            return f"; {WITHHELD}" if text else ""
        shown = self.excerpt(text)
        return f": {shown}" if shown else ""

    def word(self, text: str, known: Collection[str]) -> UntrustedName:
        """Return one word of a server; if text is withheld, only a known one, else empty."""
        shown = text if self.withheld and text in known else self.line(text)
        return UntrustedName(shown)

    def spelled_in(self, body: bytes | bytearray) -> Spellings:
        """Return what to search the data of a JSON body for: mostly nothing."""
        spellings = Spellings(self.values)
        return spellings if spellings.possible_in(body) else NO_SPELLINGS


NO_SECRETS = CallSecrets()
"""For text that no call brought, such as a scorer's own configuration."""


def call_secrets(url: str, headers: Mapping[str, str], *, sent_before: bool = False) -> CallSecrets:
    """Return the secrets of a call: its token, and the password in its URL."""
    return CallSecrets(sent_credentials(url, headers.get("Authorization", "")), sent_before)


LABELS_BYTES = 1 << 16
"""Encoded labels of one result or series: Prometheus' own limits allow a part of that."""

REPEATED = "they repeat the token that was sent"

MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, WrongEncoding)
"""What decoding of foreign JSON may raise."""

_LABELS = msgspec.json.Decoder(dict[str, str])


def encoded_size(encoded: Raw) -> int:
    """Return the bytes of an encoded value."""
    return len(memoryview(encoded))


def decode_labels(encoded: Raw, secrets: Spellings) -> dict[str, str]:
    """Return labels. Raises one of MALFORMED if they are not an object of text, or too long.

    Labels that spell a credential of the call are refused too: they name entries and metrics.
    """
    if encoded_size(encoded) > LABELS_BYTES:
        raise msgspec.ValidationError(f"labels of more than {LABELS_BYTES} bytes")
    try:
        labels = _LABELS.decode(encoded)
    except MALFORMED as error:
        raise msgspec.ValidationError(f"labels: {error}") from error
    if secrets and any(map(secrets.found_in, (*labels, *labels.values()))):
        raise msgspec.ValidationError(f"labels: {REPEATED}")
    return labels


def describe(error: Exception) -> str:
    """Return what is wrong with JSON that raised one of MALFORMED, which quote nothing of it."""
    why = NO_SECRETS.line(str(error))
    own = isinstance(error, msgspec.ValidationError | WrongEncoding)
    return why if own else f"malformed JSON: {why}"
