"""JSONPath as kubectl and the columns of CustomResourceDefinitions use it, without functions.

    .status.allocatable.cpu              a field; {$.status...} is the same
    .metadata.labels['a.b/c']            a field whose name has dots; so is .metadata.labels.a\\.b/c
    .containers[0].name, .containers[*]  an item, every item
    .conditions[?(@.type=="Ready")].x    the items with that text

Here too: the paths at which a source of type Kubernetes finds numbers and labels.
Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dsf.api.crd.kubernetes_objects import KubernetesObjects
from dsf.api.scoring.quantity import parse_quantity
from dsf.api.untrusted_text import InvalidInput, UntrustedText

LONGEST_PATH = 512
"""Characters."""

_STEP = re.compile(
    r"""
      \.(?P<name>(?:[^.\[\]\\'"{}*\s]|\\.)+)
    | \[(?P<quote>['"])(?P<key>[^'"]+)(?P=quote)\]
    | \[(?P<index>-?[0-9]{1,6})\]
    | (?P<all>\[\*\]|\.\*)
    | \[\?\(\s*@\.(?P<field>[\w-]+)\s*==\s*(?P<mark>['"])(?P<text>[^'"]*)(?P=mark)\s*\)\]
    """,
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")

Step = Callable[[Any], Iterable[Any]]
"""Returns the values that one step leads to from a value."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed path."""

    steps: tuple[Step, ...]

    def find(self, value: Any) -> list[Any]:
        """Return the values at the path in a JSON value; none if there is nothing."""
        found = [value]
        for step in self.steps:
            found = [inner for one in found for inner in step(one)]
        return found


@lru_cache(maxsize=256)
def parse(text: str) -> JsonPath | InvalidInput:
    """Return the path in a text; InvalidInput says where it is not understood."""
    path = text.strip()
    if path.startswith("{") and path.endswith("}"):
        path = path[1:-1].strip()
    path = path.removeprefix("$")
    steps, start = list[Step](), 0
    while start < len(path) <= LONGEST_PATH and (found := _STEP.match(path, start)):
        steps.append(_step(found))
        start = found.end()
    if not steps or start < len(path):
        shown = UntrustedText(text[:LONGEST_PATH])
        message = f"{shown} is no JSONPath of the known form: write one like .status.capacity.cpu"
        return InvalidInput("InvalidPath", message)
    return JsonPath(tuple(steps))


def _step(found: re.Match[str]) -> Step:
    if found["index"]:
        return _item(int(found["index"]))
    if found["all"]:
        return _every
    if found["field"]:
        return _where(found["field"], found["text"])
    return _field(found["key"] or _ESCAPED.sub(r"\1", found["name"]))


def _field(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, Mapping) and name in value else ()


def _item(index: int) -> Step:
    return lambda value: value[index : index + 1 or None] if isinstance(value, list) else ()


def _every(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _where(field: str, text: str) -> Step:
    def matching(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            if isinstance(item, Mapping) and item.get(field) == text:
                yield item

    return matching


_TRUTH = {"True": 1.0, "False": 0.0}
"""The status of a condition."""
_DECIMAL = re.compile(r"[0-9]{1,64}(\.[0-9]{1,64})?")


@dataclass(frozen=True, slots=True)
class ObjectPaths:
    """Parsed paths by the name of their metric or label."""

    values: Mapping[str, JsonPath]
    labels: Mapping[str, JsonPath]


def object_paths(objects: KubernetesObjects) -> ObjectPaths | InvalidInput:
    """Return the paths of a source; InvalidInput names the field of an unusable one.

    Secrets are refused, because labels would carry what they have.
    """
    if (objects.api_group, objects.resource) == ("", "secrets"):
        return InvalidInput("SecretsRefused", "resource: Secrets are not read as a source")
    parsed: dict[str, dict[str, JsonPath]] = {"values": {}, "labels": {}}
    for part, texts in (("values", objects.values), ("labels", objects.labels)):
        for name, text in texts.items():
            path = parse(text)
            if isinstance(path, InvalidInput):
                return InvalidInput(path.reason, f"{part}.{name}: {path.message}")
            parsed[part][name] = path
    return ObjectPaths(parsed["values"], parsed["labels"])


def number_at(path: JsonPath, obj: Any) -> float | None:
    """Return the sum of the numbers at a path; NaN if something else is there, None if nothing is.

    Numbers are JSON numbers, quantities such as `500m` and `16Gi`, their negatives, and booleans
    and the status of a condition (`True`, `False`) as 1 and 0.
    """
    found = [_number(value) for value in path.find(obj) if value is not None]
    total = sum(found)
    return (total if math.isfinite(total) else math.nan) if found else None


def _number(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value) if abs(value) <= sys.float_info.max else math.nan
    text = value if isinstance(value, str) else ""
    if text in _TRUTH:
        return _TRUTH[text]
    amount = text.removeprefix("-")
    number = float(amount) if _DECIMAL.fullmatch(amount) else parse_quantity(amount)
    if number is None:
        return math.nan
    return number if amount == text else -number
