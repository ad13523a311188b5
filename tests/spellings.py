"""The ways in which a server may spell a token that it was sent, and how to find one in a text."""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

PIECE = 12
"""Characters of the pieces of a spelling: none of them may appear."""

CANARY = "canary-0af3.Zz91~b7c5d2e8f6"
"""What a test sends as a credential."""

Spelling = Callable[[str], str]


def _base64(before: str) -> Spelling:
    return lambda token: b64encode(f"{before}{token}!".encode()).decode()


def _split(between: str, size: int) -> Spelling:
    return lambda token: between.join(token[at : at + size] for at in range(0, len(token), size))


SPELLINGS: Mapping[str, Spelling] = {
    "base64": lambda token: b64encode(token.encode()).decode(),
    "base64-after-1": _base64("a"),
    "base64-after-2": _base64("ab"),
    "base64-urlsafe": lambda token: urlsafe_b64encode(f"?{token}".encode()).decode().rstrip("="),
    "base64-lines": lambda token: _split("\n", 5)(b64encode(token.encode()).decode()),
    "hex": lambda token: token.encode().hex(),
    "hex-upper": lambda token: token.encode().hex(":").upper(),
    "reversed": lambda token: token[::-1],
    "reversed-base64": lambda token: b64encode(token.encode()).decode()[::-1],
    "lines": _split("\n", 3),
    "dots": _split(". ", 1),
    "percent": lambda token: quote(token, safe=""),
    "percent-all": lambda token: "".join(f"%{byte:02x}" for byte in token.encode()),
    "backslash": lambda token: "".join(f"\\x{byte:02x}" for byte in token.encode()),
}


def spelled_pieces(token: str, text: str) -> list[str]:
    """Return pieces of the token that a text contains in one of the spellings.

    Case and all that is neither letter nor digit do not count.
    """
    sought = _folded(text)
    return [piece for piece in _pieces(token) if piece in sought]


def _pieces(token: str) -> Iterator[str]:
    for spell in SPELLINGS.values():
        whole = _folded(spell(token))
        # The edges of a spelling may mix the token with what stands beside it.
        yield from (whole[at : at + PIECE] for at in range(2, len(whole) - PIECE - 1, PIECE))


def _folded(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
