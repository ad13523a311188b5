"""Text that others wrote, made safe to show to a person, a terminal or a model.

Anybody may have written the annotations, descriptions, labels and error messages that we read, so
they may carry escape sequences of a terminal, characters that hide or reorder text, or a prompt
injection. What is read from outside gets a type at the door, and the type decides how it is shown:

- `UntrustedText` is always shown quoted, on one line and cut.
- `UntrustedName` is shown quoted unless it is the short name of an object, or one word. A question
  to a person quotes each name (`quoted_name`).

Both are the text itself where data is compared, looked up or encoded. Formatting and `+` show them,
so a message can't forget the quotes. Slices, `strip`, `split` and their like return the same type;
`plain` returns the characters alone. `str.join` does not format: use `listed`. Tables, conditions,
events and logs also pass through `escaped`, which turns invisible characters into escapes.

`InvalidInput` is an expected failure as a value: an input that can't be used. `counted` and
`joined` write numbers of things, and lists, for any message.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any

TEXT_LIMIT = 300
"""Characters of one text: more than the longest name in Kubernetes has (253)."""

MESSAGE_LIMIT = 2000
"""Characters of a message that this program made, which may quote several names."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NOT_ASCII = re.compile(r"[^ -~]")
_NOT_ASCII_IN_LINE = re.compile(r"[^ -~\n]")
NAME_LIMIT = 64
"""Characters of a name that is shown bare, or whole in a question: more than a label has (63)."""

_WORD = re.compile(rf"(?=.{{1,{NAME_LIMIT}}}\Z)([a-z0-9]([a-z0-9./-]*[a-z0-9])?|[A-Za-z0-9]+)")
"""The name of an object, a device or a resource, or one word without any mark, such as a reason.

Other names, such as `Already-approved`, could be read as words of ours.
"""

_PRINTED_AS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing: fillers, blanks and variation selectors.

Source: Unicode, Default_Ignorable_Code_Point (without the categories that `_invisible` names).
"""


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """What is wrong with an input: a CamelCase reason and a message that says why.

    Both go into a condition, as its `reason` and its `message`.
    """

    reason: str
    message: str


def escaped(text: str) -> str:
    r"""Return text on one line, with invisible characters as escapes such as `\u202e`."""
    return text if _plain(text) else _NOT_ASCII.sub(_escape, text)


def one_line(text: str) -> str:
    """Return a message of this program on one line: text of others quoted, characters visible."""
    shown = f"{text}"
    return shown if _plain(shown) else escaped(" ".join(shown.split()))


def escaped_lines(text: str) -> str:
    """Return text with its line breaks, and all other invisible characters as escapes."""
    return _NOT_ASCII_IN_LINE.sub(_escape, text)


def escaped_json(document: str) -> str:
    """Return a JSON document of the same meaning, with invisible characters as JSON escapes."""
    return _NOT_ASCII_IN_LINE.sub(_escape_in_json, document)


def cleaned(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return text on one line, cut to `limit` characters, with invisible characters replaced."""
    spaced = " ".join(text[: 4 * limit].split())
    shown = spaced if _plain(spaced) else _NOT_ASCII.sub(_replace, spaced)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


class UntrustedText(str):
    """Text that somebody else wrote. Formatted, it is a JSON string of at most `LIMIT` characters.

    A JSON string can't end before its closing quote, so the text can't pretend to be ours.
    """

    __slots__ = ()
    LIMIT = TEXT_LIMIT

    def __str__(self) -> str:
        """Return the text cleaned and in double quotes."""
        return quoted(self, self.LIMIT)

    def __format__(self, form: str) -> str:
        """Return what `str` returns, padded by the form."""
        return format(str(self), form)

    def __add__(self, other: str) -> str:
        """Return both, this text as `str` shows it, because the sum has no type that would."""
        return str(self) + str(other)

    def __radd__(self, other: str) -> str:
        """Return both, this text as `str` shows it."""
        return other + str(self)

    def __repr__(self) -> str:
        """Return the text in quotes, a word too, because messages use `!r` to quote."""
        return quoted(self, self.LIMIT)


class UntrustedName(UntrustedText):
    """A name that somebody else chose: formatted, a word as it is, anything else quoted."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the name, in double quotes unless it is a word or empty."""
        return plain(self) if not self or _WORD.fullmatch(self) else super().__str__()


_DERIVING = (
    *("__getitem__", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix"),
    *("split", "rsplit", "splitlines", "partition", "rpartition"),
    *("lower", "upper", "casefold", "swapcase", "title", "capitalize", "replace", "translate"),
    *("center", "ljust", "rjust", "zfill", "expandtabs"),
)
"""Methods of `str` that return the text in another form, or parts of it."""


def _deriving(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of `str` whose results have the type of the text."""

    @wraps(method)
    def derive(text: UntrustedText, *args: Any, **options: Any) -> Any:
        return _typed(type(text), method(text, *args, **options))

    return derive


def _typed(kind: type[UntrustedText], part: str | list[str] | tuple[str, ...]) -> Any:
    if isinstance(part, str):
        return kind(plain(part))  # `partition` returns the text itself where it finds nothing
    return type(part)(kind(plain(item)) for item in part)


for _name in _DERIVING:
    setattr(UntrustedText, _name, _deriving(getattr(str, _name)))


def plain(text: str) -> str:
    """Return the characters of a text alone, for data: nothing quotes them any more."""
    return str.__str__(text)


def quoted(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return the text cleaned, cut to `limit` characters and in double quotes."""
    return json.dumps(cleaned(text, limit), ensure_ascii=False)


def quoted_name(name: str) -> str:
    """Return a name that others chose in double quotes, without its middle if it is long."""
    text = cleaned(plain(name), 4 * NAME_LIMIT)
    if len(text) > NAME_LIMIT:
        text = f"{text[: NAME_LIMIT - 16]}…{text[-15:]}"
    return quoted(text)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return the number and the noun, in the plural unless the number is 1."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def joined(texts: Iterable[str], most: int, *, separator: str = ", ", of: int = 0) -> str:
    """Return the first texts, and how many more there are: `a, b and 3 more`.

    `of` is the number of all, if `texts` are only the first of them.
    """
    every = [f"{text}" for text in texts]
    left = max(len(every), of) - most
    before = " " if separator == ", " else separator
    return separator.join(every[:most]) + (f"{before}and {left} more" if left > 0 else "")


def listed(names: Iterable[str], most: int | None = None) -> str:
    """Return names that others chose, separated by commas, each as `UntrustedName` shows it.

    With `most`, only the first ones, and how many more there are.
    """
    every = list(map(UntrustedName, names))
    return joined(every, len(every) if most is None else most)


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _invisible(character: str) -> bool:
    if _PRINTED_AS_NOTHING.match(character):
        return True
    # Spaces of other scripts are not printable to Python, but they are visible as spaces.
    return not character.isprintable() and unicodedata.category(character) != "Zs"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return character.encode("unicode_escape").decode() if _invisible(character) else character


def _escape_in_json(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if _invisible(match[0]) else match[0]


def _replace(match: re.Match[str]) -> str:
    return _REPLACEMENT if _invisible(match[0]) else match[0]
