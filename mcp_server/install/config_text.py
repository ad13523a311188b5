"""Adds a server to the text of a client's configuration, and keeps everything else in it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsf.kube.yaml_documents import no_constant
from mcp_server.install.clients import Entry

MAX_CONFIG_BYTES = 64 * 1024 * 1024
"""Bytes of a client's file; some clients keep a history of several MB in it."""

_INDENT = "  "
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_SURROGATE = re.compile(
    r"\\u[dD][89abAB]\w\w(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]\w\w)\\u[dD][c-fC-F]\w\w"
)


@dataclass(frozen=True, slots=True)
class Installation:
    """What a client's file has to contain: an entry under a key, and the inputs that it reads."""

    key: str
    name: str
    entry: Entry
    inputs: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class _Number:
    """A number as it was written: 1.0, 1e3, or more digits than a float has."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusedConfig:
    """Why a configuration is left as it is, and the line that says so (0: none in particular)."""

    why: str
    line: int = 0

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}" if self.line else self.why


_TOO_DEEP = RefusedConfig("the JSON is nested too deeply")


def installed(text: str, wanted: Installation, *, replace: bool = False) -> str | RefusedConfig:
    """Return the text of a configuration with the server; the same text if it is there already.

    Numbers stay as they were written. Refused: text that is not JSON, a file of another form, half
    a surrogate pair, and an entry of this name that differs, unless `replace`.
    """
    config = _parsed(text)
    if isinstance(config, RefusedConfig):
        return config
    for key, kind in ((wanted.key, dict), ("inputs", list)):
        if not isinstance(config.get(key, kind()), kind):
            what = "an object" if kind is dict else "a list"
            return RefusedConfig(f'"{key}" is not {what}', _line_of(text, key))
    servers = config.get(wanted.key, {})
    present = servers.get(wanted.name)
    if present not in (None, wanted.entry) and not replace:
        return RefusedConfig(
            f'"{wanted.name}" is there already and differs; choose another --name, or --replace it',
            _line_of(text, wanted.name),
        )
    merged = {**config, wanted.key: {**servers, wanted.name: wanted.entry}}
    if wanted.inputs:
        merged["inputs"] = _with_inputs(config.get("inputs", []), wanted.inputs)
    return text if merged == config else _rendered(merged, text)


def _rendered(config: dict[str, Any], text: str) -> str | RefusedConfig:
    """Return the text of a configuration, indented as the text before."""
    try:
        spelled = dict(_spelled(text))
        written = _written(config, "\n", _indent(text), spelled) + "\n"
        written.encode()
    except RecursionError:
        return _TOO_DEEP
    except UnicodeEncodeError as error:
        found = _LONE_SURROGATE.search(text)
        half = f"\\u{ord(error.object[error.start]):04x}"
        return RefusedConfig(
            f"{half} is half of a surrogate pair, which is no character; correct it",
            text.count("\n", 0, found.start()) + 1 if found else 0,
        )
    return written


def _spelled(text: str) -> Iterator[tuple[str, str]]:
    """Yield each text of a JSON document, and how it is written there: escapes stay escapes."""
    for found in _STRING.finditer(text):
        value = json.loads(found[0])
        if not _SURROGATE.search(value):
            yield value, found[0]


def _written(value: Any, line: str, indent: str, spelled: Mapping[str, str]) -> str:
    """Return indented JSON; `line` ends a line and indents the next one as the value is.

    `spelled`: how texts were written before.
    """
    inner = line + indent
    match value:
        case _Number():
            return value.text
        case dict() if value:
            parts = (
                f"{spelled.get(key) or _text(key)}: {_written(of, inner, indent, spelled)}"
                for key, of in value.items()
            )
            return f"{{{inner}{f',{inner}'.join(parts)}{line}}}"
        case list() if value:
            items = (_written(of, inner, indent, spelled) for of in value)
            return f"[{inner}{f',{inner}'.join(items)}{line}]"
        case str() if value in spelled:
            return spelled[value]
        case _:
            return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _with_inputs(present: Sequence[Any], wanted: Sequence[Entry]) -> list[Any]:
    ids = {item.get("id") for item in present if isinstance(item, dict)}
    return [*present, *(item for item in wanted if item["id"] not in ids)]


def _parsed(text: str) -> dict[str, Any] | RefusedConfig:
    if not text.strip():
        return {}
    try:
        config = json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=no_constant,
        )
    except json.JSONDecodeError as error:
        comment = re.search(r"^\s*(//|/\*)", text, re.MULTILINE)
        hint = "; a file with comments can't be written without losing them" if comment else ""
        return RefusedConfig(
            f"not valid JSON: {error.msg} (column {error.colno}){hint}", error.lineno
        )
    except _DuplicateKey as error:
        return RefusedConfig(f'"{error}" is there twice', _line_of(text, str(error), last=True))
    except RecursionError:
        return _TOO_DEEP
    except ValueError as error:
        return RefusedConfig(f"not valid JSON: {error}")
    return config if isinstance(config, dict) else RefusedConfig("not a JSON object", 1)


class _DuplicateKey(Exception):
    """An object has a key twice, so writing it again would lose one of the values."""


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKey(key)
        found[key] = value
    return found


def _line_of(text: str, key: str, *, last: bool = False) -> int:
    """Return the line of the first or the last place that has this key; 0 if it is escaped."""
    at = (text.rfind if last else text.find)(json.dumps(key, ensure_ascii=False))
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


def _indent(text: str) -> str:
    """Return the indentation of the first indented line."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else _INDENT
