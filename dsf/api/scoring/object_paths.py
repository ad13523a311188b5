"""The paths at which a source of type Kubernetes finds numbers and labels, and the numbers."""

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsf.api.crd.kubernetes_objects import KubernetesObjects
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring import json_path
from dsf.api.scoring.json_path import JsonPath
from dsf.api.scoring.quantity import parse_quantity

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
            path = json_path.parse(text)
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
