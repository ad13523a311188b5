r"""The part of JSONPath that printer columns use.

`.a.b`, `['a']`, `[0]`, `[-1]`, `[*]`, `.*`, `[?(@.a=="b")]` and `\.` in names. Source:
https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_STEP = re.compile(
    r"""\.?\[\?\(\s*@(?P<inner>[^=<>!\s]*)\s*(?:(?P<test>==|!=|<=|>=|<|>)\s*(?P<value>.*?))?\s*\)\]
    |\.?\[\s*(?P<index>-?\d+)\s*\]
    |\.?\[\s*'(?P<quoted>[^']*)'\s*\]
    |\.?\[\s*"(?P<double>[^"]*)"\s*\]
    |\.?(?P<all>\[\*\])
    |\.(?P<star>\*)
    |\.(?P<name>(?:\\.|[^.\[\]\\])+)""",
    re.VERBOSE,
)
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def values(obj: Any, path: str) -> list[Any]:
    """Return the values that a path finds; raises ValueError for an unsupported path."""
    found = [obj]
    for step in _steps(path):
        found = [item for before in found for item in step(before)]
    return found


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...]:
    text, place = path.strip().removeprefix("{").removesuffix("}").removeprefix("$"), 0
    steps: list[Step] = []
    while place < len(text):
        match = _STEP.match(text, place)
        if not match:
            raise ValueError(f"JSONPath {path!r} can't be understood at {text[place:]!r}")
        steps.append(_step(match))
        place = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    parts = match.groupdict()
    if parts["inner"] is not None:
        return _filter(parts["inner"], parts["test"], parts["value"])
    if parts["index"] is not None:
        return _index(int(parts["index"]))
    if parts["all"] or parts["star"]:
        return _every
    name = parts["quoted"] if parts["quoted"] is not None else parts["double"]
    return _member(re.sub(r"\\(.)", r"\1", parts["name"]) if name is None else name)


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _filter(inner: str, test: str | None, literal: str | None) -> Step:
    expected = _literal(literal) if literal is not None else None

    def step(value: Any) -> Iterator[Any]:
        for item in _every(value):
            found = values(item, inner)
            if found and (test is None or _holds(test, found[0], expected)):
                yield item

    return step


def _holds(test: str, found: Any, expected: Any) -> bool:
    try:
        return _TESTS[test](found, expected)
    except TypeError:
        return False


def _literal(text: str) -> Any:
    if text[:1] == text[-1:] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return text
