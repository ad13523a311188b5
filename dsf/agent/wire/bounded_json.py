"""Decodes parts of foreign JSON whose size is limited, so that the cost follows the limit."""

import msgspec
from msgspec import Raw

from dsf.agent.wire.foreign_text import NO_SECRETS
from dsf.api.json_input import WrongEncoding
from dsf.kube.redaction import Spellings

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
