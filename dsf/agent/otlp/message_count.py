"""Counts the messages in an encoded protobuf message, without decoding it.

An empty message takes 2 bytes encoded and up to 140 bytes decoded. Source:
https://protobuf.dev/programming-guides/encoding
"""

from collections.abc import Iterator, Mapping
from functools import cache

from google.protobuf.descriptor import Descriptor

MAX_DEPTH = 101
"""Messages within each other, the outermost included: protobuf's parser refuses more."""

_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_CONTINUES = 0x80


def more_messages_than(limit: int, encoded: bytes, form: Descriptor) -> bool:
    """Tell whether an encoded message of a form contains more than `limit` messages.

    Takes time for at most `limit` messages, and little memory. Stops at data that no parser
    accepts.
    """
    count, nested = 0, [_messages(encoded, 0, len(encoded), _fields(form))]
    try:
        while nested and len(nested) <= MAX_DEPTH:
            inner = next(nested[-1], None)
            if inner is None:
                nested.pop()
                continue
            count += 1
            if count > limit:
                return True
            start, end, current = inner
            nested.append(_messages(encoded, start, end, _fields(current)))
    except IndexError:
        return False
    return False


@cache
def _fields(form: Descriptor) -> Mapping[int, Descriptor]:
    """Return the forms of a form's fields that are messages, by field number."""
    return {
        field.number: field.message_type for field in form.fields if field.message_type is not None
    }


def _messages(
    encoded: bytes, at: int, end: int, fields: Mapping[int, Descriptor]
) -> Iterator[tuple[int, int, Descriptor]]:
    """Yield start, end and form of each message that is a field of the message at `at`."""
    while at < end:
        tag, at = _varint(encoded, at)
        kind = tag & 7
        if kind == _LENGTH:
            size, at = _varint(encoded, at)
            if tag >> 3 in fields:
                yield at, min(at + size, end), fields[tag >> 3]
            at += size
        elif kind == _VARINT:
            _, at = _varint(encoded, at)
        elif kind == _FIXED_64:
            at += 8
        elif kind == _FIXED_32:
            at += 4


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    """Return the number at an index, and the index after it. Raises IndexError at the end."""
    value, shift = encoded[at], 7
    at += 1
    if value < _CONTINUES:
        return value, at
    value &= 0x7F
    while True:
        byte = encoded[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            return value, at
        shift += 7
