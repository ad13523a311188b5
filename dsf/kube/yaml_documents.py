"""Read the documents of YAML and JSON files."""

import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SUFFIXES = frozenset({".yaml", ".yml", ".json"})

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Bytes of a file: ten of the largest objects in etcd, or the scores of a thousand clusters."""

MAX_DEPTH = 100
"""Levels of nested lists and mappings; the deepest schemas of Kubernetes have about thirty."""

_CONTAINERS = (dict, list)

MAX_REPEATED = 10_000
"""Values that the aliases of one document repeat. Nine aliases of nine aliases, nine times over,
would repeat 387 million."""


class YamlFileError(ValueError):
    """A file or document is unusable; the message names it in one line."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a file; `number` counts from 1."""

    path: Path
    number: int
    value: Any

    def __str__(self) -> str:
        return f"{self.path}, document {self.number}"


def documents(place: Path) -> Iterator[YamlDocument]:
    """Yield the documents of a file, or of all YAML and JSON files below a folder, by path."""
    try:
        for path in _files(place):
            yield from _parsed(path)
    except OSError as error:
        raise YamlFileError(f"{error.filename or place}: {error.strerror or error}") from error


def parsed_yaml(text: str | bytes) -> list[Any]:
    """Return the documents of a YAML text as JSON values; raises yaml.YAMLError if it is malformed.

    A duplicate key is an error. Timestamps stay text.
    """
    return list(yaml.load_all(text, Loader=_Loader))


def parsed_json(text: str | bytes) -> Any:
    """Return a JSON value; raises ValueError for duplicate keys, NaN, Infinity and deep nesting."""
    value = json.loads(text, object_pairs_hook=_unique, parse_constant=no_constant)
    inner = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MAX_DEPTH):
        inner = [
            item
            for outer in inner
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, _CONTAINERS)
        ]
        if not inner:
            return value
    raise ValueError(_TOO_DEEP)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!r} occurs twice in one object")
    return result


def no_constant(name: str) -> None:
    """Raise ValueError for NaN and Infinity, which Python reads in JSON."""
    raise ValueError(f"{name} is not a JSON value")


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    # A dangling link is included, so that the error names it.
    return sorted(
        path
        for path in place.rglob("*")
        if path.suffix in SUFFIXES and (path.is_file() or path.is_symlink())
    )


def file_content(path: Path, most: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a regular file; others, such as pipes and devices, may have no end.

    Raises OSError, YamlFileError.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise YamlFileError(f"{path}: it is not a regular file; write its text to one")
        content = file.read(most + 1)
    if len(content) > most:
        raise YamlFileError(
            f"{path}: it has more than {most >> 20} MiB; split it into several files"
        )
    return content


def _parsed(path: Path) -> Iterator[YamlDocument]:
    content = file_content(path)
    try:
        text = content.decode("utf-8-sig")
        values = [parsed_json(text)] if path.suffix == ".json" else parsed_yaml(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        line = 1 + min(line, text.count("\n"))  # libyaml names the line after the last one
        raise YamlFileError(f"{path}, line {line}: {error.problem}") from error
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise YamlFileError(f"{path}: {str(error).splitlines()[0]}") from error
    for number, value in enumerate(values, start=1):
        if value is not None:
            yield YamlDocument(path, number, value)


_TEXT = "tag:yaml.org,2002:str"
_TOO_DEEP = f"lists and mappings are nested more than {MAX_DEPTH} levels deep"


class _Loader(yaml.composer.Composer, yaml.CSafeLoader):
    """YAML as Kubernetes reads it, with limits on its depth and on what aliases repeat.

    libyaml scans it, three times as fast; nodes are composed here, where they are limited.
    """

    def __init__(self, stream: Any) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        self.anchors: dict[str, yaml.Node] = {}
        self._depth = self._nodes = self._repeated = 0
        self._sizes: dict[str, int] = {}

    def compose_document(self) -> Any:
        """Return the root node of the next document."""
        self._depth = self._nodes = self._repeated = 0
        self._sizes = {}
        return super().compose_document()

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return a node; raises MarkedYAMLError where nesting or aliases exceed a limit.

        The nodes of an anchor are counted with what the aliases in it repeat.
        """
        event: Any = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            self._count_alias(event)
            return super().compose_node(parent, index)
        before = self._nodes
        self._nodes += 1
        self._depth += 1
        if self._depth > MAX_DEPTH + 1:
            raise yaml.composer.ComposerError(None, None, _TOO_DEEP, event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if event.anchor is not None:
            self._sizes[event.anchor] = self._nodes - before
        return node

    def _count_alias(self, event: Any) -> None:
        if event.anchor in self.anchors and event.anchor not in self._sizes:
            text = f"the alias {event.anchor!r} is inside the value that it repeats"
            raise yaml.composer.ComposerError(None, None, text, event.start_mark)
        size = self._sizes.get(event.anchor, 0)
        self._nodes += size
        self._repeated += size
        if self._repeated > MAX_REPEATED:
            text = f"aliases repeat more than {MAX_REPEATED} values"
            raise yaml.composer.ComposerError(None, None, text, event.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; its keys must be text and unique."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            text = key_node.tag == _TEXT
            key = key_node.value if text else self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _problem(f"the key {key!r} is not text: quote it", key_node)
            if key in seen:
                raise _problem(f"the key {key!r} occurs twice in one mapping", key_node)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _problem(text: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
