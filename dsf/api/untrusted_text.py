"""Text that others wrote, made safe to show to a person, a terminal or a model.

Anybody may have written the annotations, descriptions, labels and error messages that we read, so
they may carry escape sequences of a terminal, characters that hide or reorder text, or a prompt
injection. There are two ways to show them:

- `escaped` in tables, messages and logs: invisible characters become visible escapes.
- `UntrustedText` in sentences, above all for a model: always quoted, on one line and cut.

The name of a Kubernetes object is shown without quotes only if it has the syntax of one
(`object_name`).
"""

import json
import re
import unicodedata
from dataclasses import dataclass

TEXT_LIMIT = 300
"""Characters of one text: more than the longest name in Kubernetes has (253)."""

MESSAGE_LIMIT = 2000
"""Characters of a message that this program made, which may quote several names."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_NOT_ASCII = re.compile(r"[^ -~]")
_NOT_ASCII_IN_LINE = re.compile(r"[^ -~\n]")
_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")

_PRINTED_AS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing: fillers, blanks and variation selectors.

Source: Unicode, Default_Ignorable_Code_Point (without the categories that `_invisible` names).
"""


def escaped(text: str) -> str:
    r"""Return text on one line, with invisible characters as escapes such as `\u202e`."""
    return text if _plain(text) else _NOT_ASCII.sub(_escape, text)


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


@dataclass(frozen=True, slots=True)
class UntrustedText:
    """Text that somebody else wrote. Rendered, it is a JSON string of at most `limit` characters.

    A JSON string can't end before its closing quote, so the text can't pretend to be ours.
    """

    text: str
    limit: int = TEXT_LIMIT

    def __str__(self) -> str:
        """Return the text cleaned and in double quotes."""
        return json.dumps(cleaned(self.text, self.limit), ensure_ascii=False)


def object_name(name: str) -> str:
    """Return the name of a Kubernetes object as it is, or quoted if it isn't a valid one."""
    return name if _OBJECT_NAME.fullmatch(name) else str(UntrustedText(name))


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _invisible(character: str) -> bool:
    if _PRINTED_AS_NOTHING.match(character):
        return True
    # Spaces of other scripts are not printable to Python, but they are visible as spaces.
    return not character.isprintable() and unicodedata.category(character) != "Zs"


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return character.encode("unicode_escape").decode() if _invisible(character) else character


def _escape_in_json(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1] if _invisible(found[0]) else found[0]


def _replace(found: re.Match[str]) -> str:
    return _REPLACEMENT if _invisible(found[0]) else found[0]
