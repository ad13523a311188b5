"""Field errors, and the 422 made of them.

Source: https://pkg.go.dev/k8s.io/apimachinery/pkg/util/validation/field
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dsf.kube.errors import Invalid

Cause = Literal[
    "FieldValueRequired",
    "FieldValueInvalid",
    "FieldValueTypeInvalid",
    "FieldValueNotSupported",
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "FieldValueTooMany",
]
_TITLES: dict[Cause, str] = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
}
_WITHOUT_VALUE = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong"})
OMITTED = object()

RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)


@dataclass(frozen=True, slots=True)
class ObjectFieldError:
    """What is wrong with one field."""

    cause: Cause
    field: str
    detail: str = ""
    value: Any = OMITTED

    @property
    def body(self) -> str:
        """The message without the field's name."""
        parts = [_TITLES[self.cause]]
        if self.value is not OMITTED and self.cause not in _WITHOUT_VALUE:
            parts.append(shown(self.value))
        return ": ".join([*parts, self.detail] if self.detail else parts)

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    @property
    def blocking(self) -> bool:
        """Whether it keeps validation rules from being evaluated."""
        return self.cause in _BLOCKING


def required(field: str, detail: str = "") -> ObjectFieldError:
    """A value that must be there is not."""
    return ObjectFieldError("FieldValueRequired", field, detail)


def wrong(field: str, value: Any, detail: str) -> ObjectFieldError:
    """A value is malformed."""
    return ObjectFieldError("FieldValueInvalid", field, detail, value)


def wrong_all(field: str, value: Any, problems: Iterable[str]) -> list[ObjectFieldError]:
    """A value is malformed, once for every problem."""
    return [wrong(field, value, problem) for problem in problems]


def unsupported(field: str, value: Any, supported: Iterable[Any]) -> ObjectFieldError:
    """A value is not among those that are allowed."""
    named = ", ".join(
        json.dumps(item if isinstance(item, str) else shown(item)) for item in supported
    )
    return ObjectFieldError("FieldValueNotSupported", field, f"supported values: {named}", value)


def too_long(field: str, limit: int) -> ObjectFieldError:
    """A text has too many bytes or characters."""
    return ObjectFieldError("FieldValueTooLong", field, f"may not be more than {limit} bytes")


def too_many(field: str, actual: int, limit: int) -> ObjectFieldError:
    """A list or a map has too many members."""
    items = "item" if limit == 1 else "items"
    return ObjectFieldError(
        "FieldValueTooMany", field, f"must have at most {limit} {items}", actual
    )


def duplicate(field: str, value: Any) -> ObjectFieldError:
    """A value that must be unique occurs again."""
    return ObjectFieldError("FieldValueDuplicate", field, value=value)


def forbidden(field: str, detail: str) -> ObjectFieldError:
    """A value may not be set under the present conditions."""
    return ObjectFieldError("FieldValueForbidden", field, detail)


def invalid(kind: str, group: str, name: str, errors: Sequence[ObjectFieldError]) -> Invalid:
    """Return the 422 for an object of a kind."""
    texts = list(dict.fromkeys(map(str, errors)))
    qualified = f"{kind}.{group}" if group else kind
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [
        {"reason": error.cause, "message": error.body, "field": error.field} for error in errors
    ]
    return Invalid(
        f"{qualified} {json.dumps(name, ensure_ascii=False)} is invalid: {listed}",
        details={
            "name": name,
            **({"group": group} if group else {}),
            "kind": kind,
            "causes": causes,
        },
    )


def shown(value: Any) -> str:
    """Return a value as messages spell it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
