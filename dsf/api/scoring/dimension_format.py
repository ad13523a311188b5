"""The score dimension format: the name of a score entry from the labels of a result."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from dsf.api.untrusted_text import InvalidInput, quoted

PLACEHOLDERS = (
    "cluster",
    "node",
    "device",
    "namespace",
    "app",
    "pod",
    "container",
    "meta",
    "scoreName",
)
STAMPED = frozenset({"cluster", "scoreName"})
"""The labels that the agent itself sets."""

_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class DimensionFormat:
    """A parsed `scoreDimensionFormat`: literals[0], fields[0], literals[1], … literals[n]."""

    literals: tuple[str, ...]
    fields: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self | InvalidInput:
        """Parse a text such as `${app};${device}`; InvalidInput where a placeholder is unknown."""
        pieces = _PLACEHOLDER.split(text)
        literals, fields = tuple(pieces[::2]), tuple(pieces[1::2])
        unknown = sorted({field for field in fields if field not in PLACEHOLDERS})
        known = ", ".join(f"${{{name}}}" for name in PLACEHOLDERS)
        if unknown:
            named = ", ".join(f"${{{name}}}" for name in unknown)
            return InvalidInput(
                "InvalidDimensionFormat", f"unknown placeholder {named}; use {known}"
            )
        if not fields:
            return InvalidInput(
                "InvalidDimensionFormat", f"format {quoted(text)} has no placeholder; use {known}"
            )
        return cls(literals, fields)

    @property
    def named(self) -> tuple[str, ...]:
        """The placeholders that a result has to fill, in their order."""
        return tuple(field for field in self.fields if field not in STAMPED)

    def render(self, labels: Mapping[str, str]) -> str:
        """Return the entry name for labels keyed by placeholder name; a missing label is empty."""
        parts = [self.literals[0]]
        for field, literal in zip(self.fields, self.literals[1:], strict=True):
            parts += [labels.get(field, ""), literal]
        return "".join(parts)

    def bound(self, labels: Mapping[str, str]) -> Self:
        """Return the format in which the placeholders of these labels are their values."""
        kept = tuple(field for field in self.fields if field not in labels)
        literals = [self.literals[0]]
        for field, literal in zip(self.fields, self.literals[1:], strict=True):
            if field in labels:
                literals[-1] += labels[field] + literal
            else:
                literals.append(literal)
        return type(self)(tuple(literals), kept)

    def match(self, name: str) -> dict[str, str] | None:
        """Return the labels of an entry name, or None if it does not match the format.

        Each value ends at the first occurrence of the next literal, so the time is linear in the
        name. A placeholder that occurs twice must have the same value both times.
        """
        if not name.startswith(self.literals[0]):
            return None
        rest, labels = name[len(self.literals[0]) :], dict[str, str]()
        for index, (field, literal) in enumerate(zip(self.fields, self.literals[1:], strict=True)):
            last = index == len(self.fields) - 1
            value, fits, rest = _cut(rest, literal, last=last)
            if not fits or labels.setdefault(field, value) != value:
                return None
        return labels

    def __str__(self) -> str:
        return self.render({field: f"${{{field}}}" for field in self.fields})


def _cut(text: str, literal: str, *, last: bool) -> tuple[str, bool, str]:
    if last:
        return text[: len(text) - len(literal)], text.endswith(literal), ""
    value, separator, rest = text.partition(literal) if literal else ("", "", text)
    return value, bool(separator) or not literal, rest
