"""JSON that others send: its encoding, and how many values it has, before it is decoded.

The memory and time of decoding follow the number of values rather than that of bytes, so values are
counted in the text first.
"""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"{\x00", b"\x00{")


class WrongEncoding(ValueError):
    """The text is in UTF-16 or UTF-32."""


def json_text(body: bytes | bytearray) -> bytes | bytearray:
    """Return JSON without a byte order mark, which RFC 8259 allows to ignore.

    A bytearray loses the mark in place, because a copy would need memory. Raises WrongEncoding.
    """
    if body.startswith(_UTF_16):
        raise WrongEncoding("it is UTF-16 or UTF-32: JSON has to be UTF-8")
    if not body.startswith(_BYTE_ORDER_MARK):
        return body
    if isinstance(body, bytes):
        return body.removeprefix(_BYTE_ORDER_MARK)
    del body[: len(_BYTE_ORDER_MARK)]
    return body


def object_count(text: bytes | bytearray) -> int:
    """Return an upper bound of the number of objects in JSON."""
    return text.count(b"{")


def value_count(text: bytes | bytearray) -> int:
    """Return an upper bound of the number of values in JSON; those of text count its commas."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")
