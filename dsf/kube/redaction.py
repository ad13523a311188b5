"""Removal of credentials from text that is logged or shown."""

import re

REDACTED = "[redacted]"

_SCHEME = re.compile(r"(?i)\b(bearer|basic)[ \t]+(?!\[redacted\])[^\s,;\"']+")
_JWT = re.compile(r"\beyJ[\w-]{4,}\.[\w-]+(\.[\w-]*)?")
_USERINFO = re.compile(r"(?<=://)[^/\s\"']+(?=@)")
_MEMBER = re.compile(
    r"(?i)([\"']?\b(?:[\w-]{0,32}(?:token|password)|client[_-]?secret|client-key-data|api[_-]?key)\b"
    r"[\"']?\s*[:=]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&}]+)"
)


def redact(text: str) -> str:
    """Return `text` without bearer tokens, basic credentials, JWTs, passwords in URLs and fields.

    A safety net: code must not log credentials in the first place.
    """
    text = _SCHEME.sub(rf"\1 {REDACTED}", text)
    text = _JWT.sub(REDACTED, text)
    text = _USERINFO.sub(REDACTED, text)
    return _MEMBER.sub(rf"\1{REDACTED}", text)
