"""Decodes parts of foreign JSON whose size is limited, so that the cost follows the limit."""

import msgspec
from msgspec import Raw

from dsf.agent.wire.foreign_text import CallSecrets

LABELS_BYTES = 1 << 16
"""Encoded labels of one result or series: Prometheus' own limits allow a part of that."""

REPEATED = "they repeat the token that was sent"

MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding of foreign JSON may raise."""

_LABELS = msgspec.json.Decoder(dict[str, str])


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"{\x00", b"\x00{")


def json_text(body: bytes | bytearray) -> bytes | bytearray:
    """Return JSON without a byte order mark, which RFC 8259 allows to ignore.

    Raises one of MALFORMED for UTF-16 and UTF-32. A bytearray loses the mark in place, because a
    copy would need memory.
    """
    if body.startswith(_UTF_16):
        raise msgspec.ValidationError("it is UTF-16 or UTF-32: JSON has to be UTF-8")
    if not body.startswith(_BYTE_ORDER_MARK):
        return body
    if isinstance(body, bytes):
        return body.removeprefix(_BYTE_ORDER_MARK)
    del body[: len(_BYTE_ORDER_MARK)]
    return body


def encoded_size(encoded: Raw) -> int:
    """Return the bytes of an encoded value."""
    return len(memoryview(encoded))


def decode_labels(encoded: Raw, secrets: CallSecrets) -> dict[str, str]:
    """Return labels. Raises one of MALFORMED if they are not an object of text, or too long.

    Labels that contain a secret of the call are refused too, because they name entries and metrics.
    """
    if encoded_size(encoded) > LABELS_BYTES:
        raise msgspec.ValidationError(f"labels of more than {LABELS_BYTES} bytes")
    try:
        labels = _LABELS.decode(encoded)
    except MALFORMED as error:
        raise msgspec.ValidationError(f"labels: {error}") from error
    if secrets.found_in(labels) or secrets.found_in(labels.values()):
        raise msgspec.ValidationError(f"labels: {REPEATED}")
    return labels


def describe(error: Exception, secrets: CallSecrets) -> str:
    """Return what is wrong with JSON that raised one of MALFORMED."""
    why = secrets.excerpt(str(error))
    return why if isinstance(error, msgspec.ValidationError) else f"malformed JSON: {why}"
