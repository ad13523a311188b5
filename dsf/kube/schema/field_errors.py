"""Errors in fields of an object, and the Invalid error (422) that lists them.

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
    """An error in one field, as `field.Error` in apimachinery."""

    cause: Cause
    field: str
    detail: str = ""
    value: Any = OMITTED

    @property
    def body(self) -> str:
        """The message without the field path."""
        parts = [_TITLES[self.cause]]
        if self.value is not OMITTED and self.cause not in _WITHOUT_VALUE:
            parts.append(shown(self.value))
        return ": ".join([*parts, self.detail] if self.detail else parts)

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    @property
    def blocking(self) -> bool:
        """Whether CEL validation rules are skipped because of this error."""
        return self.cause in _BLOCKING


def required(field: str, detail: str = "") -> ObjectFieldError:
    """Return the error for a missing value."""
    return ObjectFieldError("FieldValueRequired", field, detail)


def wrong(field: str, value: Any, detail: str) -> ObjectFieldError:
    """Return the error for a malformed value."""
    return ObjectFieldError("FieldValueInvalid", field, detail, value)


def wrong_all(field: str, value: Any, problems: Iterable[str]) -> list[ObjectFieldError]:
    """Return an error for a malformed value for each problem."""
    return [wrong(field, value, problem) for problem in problems]


def unsupported(field: str, value: Any, supported: Iterable[Any]) -> ObjectFieldError:
    """Return the error for a value outside the allowed values."""
    named = ", ".join(
        json.dumps(item if isinstance(item, str) else shown(item)) for item in supported
    )
    return ObjectFieldError("FieldValueNotSupported", field, f"supported values: {named}", value)


def too_long(field: str, limit: int) -> ObjectFieldError:
    """Return the error for a text with too many bytes or characters."""
    return ObjectFieldError("FieldValueTooLong", field, f"may not be more than {limit} bytes")


def too_many(field: str, actual: int, limit: int) -> ObjectFieldError:
    """Return the error for a list or a map with too many members."""
    items = "item" if limit == 1 else "items"
    return ObjectFieldError(
        "FieldValueTooMany", field, f"must have at most {limit} {items}", actual
    )


def duplicate(field: str, value: Any) -> ObjectFieldError:
    """Return the error for a value that must be unique but repeats."""
    return ObjectFieldError("FieldValueDuplicate", field, value=value)


def forbidden(field: str, detail: str) -> ObjectFieldError:
    """Return the error for a value that must not be set now."""
    return ObjectFieldError("FieldValueForbidden", field, detail)


def invalid(kind: str, group: str, name: str, errors: Sequence[ObjectFieldError]) -> Invalid:
    """Return the Invalid error (422) for an object of a kind."""
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
    """Return a value as compact JSON, as messages quote it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
