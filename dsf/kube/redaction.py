"""Removal of credentials from text that is logged or shown, and the search for one in any spelling.

Text of a server that was sent a credential is not quoted (decision 0044). Two things are still
taken from it, and are searched: data, and what the API server answers.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

REDACTED = "[redacted]"

SHORTEST = 8
"""Characters of the shortest credential that is searched for: shorter words occur in any text."""

_SCHEME = re.compile(r"(?i)\b(bearer|basic)[ \t]+(?!\[redacted\])[^\s,;\"']+")
_JWT = re.compile(r"\beyJ[\w-]{4,}\.[\w-]+(\.[\w-]*)?")
_USERINFO = re.compile(r"(?<=://)[^/\s\"']+(?=@)")
_MEMBER = re.compile(
    r"(?i)([\"']?\b(?:[\w-]{0,32}(?:token|password)|client[_-]?secret|client-key-data|api[_-]?key)\b"
    r"[\"']?\s*[:=]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&}]+)"
)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|(?:%|\\x)([0-9a-fA-F]{2})|\\([\"\\/bfnrt])")

_PIECE = 1 << 20
"""Bytes of data that are searched at a time, because the search needs a copy."""
_LOWER = bytes(range(256)).lower()
_SEPARATORS = bytes(byte for byte in range(256) if not bytes([byte]).isalnum())


def redact(text: str) -> str:
    """Return `text` without bearer tokens, basic credentials, JWTs, passwords in URLs and fields.

    A safety net: code must not log credentials in the first place.
    """
    text = _SCHEME.sub(rf"\1 {REDACTED}", text)
    text = _JWT.sub(REDACTED, text)
    text = _USERINFO.sub(REDACTED, text)
    return _MEMBER.sub(rf"\1{REDACTED}", text)


def sent_credentials(url: str, authorization: str = "") -> tuple[str, ...]:
    """Return what a call sends as a credential: that of its header, the password in its URL."""
    values = [authorization.partition(" ")[2]]
    try:
        parts = urlsplit(url)
    except ValueError:
        return tuple(filter(None, values))
    if parts.password:
        password = unquote(parts.password)
        basic = f"{unquote(parts.username or '')}:{password}".encode()
        values += (password, parts.password, b64encode(basic).decode("ascii"))
    return tuple(filter(None, values))


class Spellings:
    """The usual spellings of credentials: as it is, hex, base64 in each alignment, each reversed.

    Case, and all that is neither an ASCII letter nor a digit, do not count: so a credential in
    pieces, on several lines, or in the URL-safe alphabet of base64 is found too. Escapes of URLs
    and of JSON are undone. `repr` shows no credential.
    """

    def __init__(self, credentials: Iterable[str] = ()) -> None:
        self._plain = [one for one in credentials if len(one) >= SHORTEST]
        folded = {_folded(form) for one in self._plain for form in _forms(one)}
        self._forms = [form for form in folded if len(form) >= SHORTEST]

    def __bool__(self) -> bool:
        """Whether there is something to search for."""
        return bool(self._plain)

    def found_in(self, text: str) -> bool:
        """Tell whether a text contains a credential in one of the spellings."""
        if not self or len(text) < SHORTEST:
            return False
        once = _ESCAPE.sub(_character, text)
        read = {text, once, _ESCAPE.sub(_character, once)}
        return any(one in each for one in self._plain for each in read) or any(
            form in each for each in map(_folded, read) for form in self._forms
        )

    def found_in_body(self, body: bytes) -> bool:
        """Tell whether a whole document contains a credential in one of the spellings."""
        return self.possible_in(body) and self.found_in(body.decode(errors="replace"))

    def possible_in(self, body: bytes | bytearray) -> bool:
        """Tell whether some text of a JSON document may contain a credential: mostly not."""
        if not self or b"\\" in body or b"%" in body:
            return bool(self)
        if any(one.encode() in body for one in self._plain):
            return True
        forms = [form.encode() for form in self._forms]
        longest, rest = max(map(len, forms), default=0), b""
        for start in range(0, len(body), _PIECE):
            rest += bytes(body[start : start + _PIECE].translate(_LOWER, _SEPARATORS))
            if any(form in rest for form in forms):
                return True
            rest = rest[-longest:]
        return False


NO_SPELLINGS = Spellings()
"""For data that no call with a credential brought."""


def _forms(credential: str) -> Iterator[str]:
    for one in (credential, credential[::-1]):
        data = one.encode()
        for form in (one, data.hex(), *map(_base64, range(3), [data] * 3)):
            yield from (form, form[::-1])


def _base64(before: int, data: bytes) -> str:
    """Return the base64 of data after so many other bytes, without characters that mix both."""
    encoded = b64encode(bytes(before) + data).decode("ascii")
    return encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


def _folded(text: str) -> str:
    return text.encode(errors="replace").translate(_LOWER, _SEPARATORS).decode("ascii")


def _character(escape: re.Match[str]) -> str:
    code, byte, plain = escape.groups()
    if plain:
        return plain if plain in '"\\/' else " "
    return chr(int(code or byte, 16))
