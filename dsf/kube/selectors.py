"""Label and field selectors in their string form, and LabelSelector objects.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ and
.../field-selectors/
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dsf.api import name_syntax
from dsf.api.untrusted_text import InvalidInput

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^=!<>(),\s]+)")
_OPERATORS: dict[str, Operator] = {
    "=": "In",
    "==": "In",
    "!=": "NotIn",
    "in": "In",
    "notin": "NotIn",
    ">": "Gt",
    "<": "Lt",
}
_SYMBOLS = frozenset(["==", "!=", "=", "!", "<", ">", "(", ")", ","])


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the labels."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet it; a missing label meets only NotIn and DoesNotExist."""
        value = labels.get(self.key)
        match self.operator:
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "NotIn":
                return value is None or value not in self.values
            case "In":
                return value is not None and value in self.values
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        (limit,) = self.values
        if not re.fullmatch(r"[+-]?\d{1,63}", value, re.ASCII):
            return False
        return int(value) > int(limit) if self.operator == "Gt" else int(value) < int(limit)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that labels must all meet; an empty selector matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One condition on a field: equal or not equal to a value."""

    field: str
    value: str
    equal: bool


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms that fields must all meet; an empty selector matches everything."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Return whether fields, keyed by path, meet every term; a missing field is empty."""
        return all((fields.get(term.field, "") == term.value) == term.equal for term in self.terms)


def label_selector(text: str) -> LabelSelector | InvalidInput:
    """Parse a label selector such as `a=b,c!=d,e in (f, g),h notin (i),j,!k`."""
    tokens = [match.group(1) for match in _TOKEN.finditer(text.rstrip())]
    try:
        return LabelSelector(tuple(_Parser(tokens).requirements()))
    except _Unparsable as problem:
        return InvalidInput("InvalidLabelSelector", str(problem))


def valid_selector(text: str) -> LabelSelector:
    """Parse a label selector that is known to be valid; raises ValueError otherwise."""
    parsed = label_selector(text)
    if isinstance(parsed, InvalidInput):
        raise ValueError(parsed.message)  # noqa: TRY004 - the text is wrong, not its type
    return parsed


def label_selector_of(selector: Mapping[str, Any]) -> LabelSelector | InvalidInput:
    """Read a `meta/v1` LabelSelector object with `matchLabels` and `matchExpressions`."""
    expressions: list[tuple[str, Any, Iterable[str]]] = [
        (key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    expressions += [
        (str(item.get("key", "")), item.get("operator"), item.get("values") or ())
        for item in selector.get("matchExpressions") or ()
    ]
    try:
        return LabelSelector(tuple(_requirement(*expression) for expression in expressions))
    except _Unparsable as problem:
        return InvalidInput("InvalidLabelSelector", str(problem))


def field_selector(text: str) -> FieldSelector | InvalidInput:
    r"""Parse a field selector such as `metadata.name=a,status.phase!=b`; `\` escapes `,=\`."""
    terms = []
    for part in re.findall(r"(?:\\.|[^,])+", text, re.DOTALL):
        term = re.fullmatch(r"(.*?)(!=|==|=)(.*)", part, re.DOTALL)
        if not term:
            problem = f"invalid selector: '{text}'; can't understand '{part}'"
            return InvalidInput("InvalidFieldSelector", problem)
        field, operator, escaped = term.groups()
        if not re.fullmatch(r"(?:[^\\=]|\\[,=\\])*", escaped, re.DOTALL):
            problem = f"invalid field selector: '{part}': write \\= \\, \\\\ for = , \\ in a value"
            return InvalidInput("InvalidFieldSelector", problem)
        value = re.sub(r"\\(.)", r"\1", escaped, flags=re.DOTALL)
        terms.append(FieldTerm(field, value, operator != "!="))
    return FieldSelector(tuple(terms))


class _Unparsable(Exception):
    pass


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self._place = 0

    def requirements(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while self._peek():
            requirements.append(self._requirement())
            separator = self._next()
            if separator not in {",", ""}:
                raise _Unparsable(f"found '{separator}', expected: ',' or 'end of string'")
            if separator and (not self._peek() or self._peek() in _SYMBOLS - {"!"}):
                raise _Unparsable(f"found '{self._peek()}', expected: identifier after ','")
        return requirements

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._next()
            return _requirement(self._identifier(), "DoesNotExist", ())
        key = self._identifier()
        if self._peek() in {",", ""}:
            return _requirement(key, "Exists", ())
        operator = self._next()
        if operator not in _OPERATORS:
            expected = "in, notin, =, ==, !=, gt, lt"
            raise _Unparsable(
                f"unable to parse requirement: found '{operator}', expected: {expected}"
            )
        values = self._list() if operator in {"in", "notin"} else [self._value()]
        return _requirement(key, _OPERATORS[operator], values)

    def _list(self) -> list[str]:
        if (opening := self._next()) != "(":
            raise _Unparsable(f"unable to parse requirement: found '{opening}' expected: '('")
        values = [self._value()]
        while (separator := self._next()) == ",":
            values.append(self._value())
        if separator != ")":
            raise _Unparsable(
                f"unable to parse requirement: found '{separator}', expected: ',' or ')'"
            )
        return values

    def _value(self) -> str:
        return "" if self._peek() in {",", ")", ""} else self._identifier()

    def _identifier(self) -> str:
        token = self._next()
        if not token or token in _SYMBOLS:
            raise _Unparsable(f"unable to parse requirement: found '{token}', expected: identifier")
        return token

    def _peek(self) -> str:
        return self._tokens[self._place]

    def _next(self) -> str:
        token = self._tokens[self._place]
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token


def _requirement(key: str, operator: Any, values: Iterable[str]) -> Requirement:
    requirement = Requirement(key, operator, frozenset(values))
    if problems := name_syntax.qualified_name(key):
        raise _Unparsable(f'unable to parse requirement: "{key}": {"; ".join(problems)}')
    for value in requirement.values:
        if problems := name_syntax.label_value(value):
            raise _Unparsable(f'unable to parse requirement: "{value}": {"; ".join(problems)}')
    if problem := _values_problem(requirement):
        raise _Unparsable(f'unable to parse requirement: "{key}": {problem}')
    return requirement


def _values_problem(requirement: Requirement) -> str | None:
    match requirement.operator:
        case "In" | "NotIn":
            return None if requirement.values else f"{requirement.operator} needs values"
        case "Exists" | "DoesNotExist":
            return f"{requirement.operator} takes no values" if requirement.values else None
        case "Gt" | "Lt":
            whole = all(re.fullmatch(r"[+-]?\d+", v, re.ASCII) for v in requirement.values)
            return None if len(requirement.values) == 1 and whole else "Gt and Lt need one integer"
    return (
        f'"{requirement.operator}" is not a valid operator; use In, NotIn, Exists or DoesNotExist'
    )
