"""Structured logs on standard error: one line per record, as `key=value` pairs or as JSON.

The audit log has a line for each attempt to write, and for each caller that is turned away.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import IO, Any, Literal

from dsf.api.untrusted_text import escaped
from dsf.kube.redaction import redact

NOT_AUTHENTICATED = "(not authenticated)"
"""The user where nobody is authenticated."""


def audit(event: str, **fields: object) -> None:
    """Write a line of the audit log; `event`: `write` or `authentication`, `fields`: its facts."""
    logging.getLogger("audit").info(event, extra=fields)


Format = Literal["text", "json"]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_TALKATIVE = ("aiohttp", "asyncio", "httpx", "httpcore", "kubernetes", "urllib3")


def set_up(level: str = "info", format_: Format = "text", stream: IO[str] | None = None) -> None:
    """Send the logs of this process to `stream`, standard error by default.

    `level` is a name of the logging module in any letter case. The `extra` of a record becomes
    fields. Raises ValueError for an unknown level.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format_ == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


class TextFormatter(logging.Formatter):
    """One line of `key=value` pairs; values with spaces, quotes or controls are JSON strings."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return " ".join(f"{key}={_plain(value)}" for key, value in _fields(record).items())


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return json.dumps(_fields(record), default=str)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
    if record.exc_info:
        fields["exception"] = logging.Formatter().formatException(record.exc_info)
    return {key: _safe(value) for key, value in fields.items()}


def _safe(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact(value if isinstance(value, str) else str(value))


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    bare = text == escaped(text) and text and not set(text) & set(' "=\\')
    return text if bare else json.dumps(text)
