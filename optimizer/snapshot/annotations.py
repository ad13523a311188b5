"""Reads what annotations say about a policy, a workload or a managed cluster.

An annotation is named after the field of the spec: `moveCost` is
`dynamic-scoring.open-cluster-management.io/move-cost`. What a request says wins over it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from pydantic import ValidationError

from dsf.api.names import GROUP
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.port import Object
from optimizer.wire.base import RequestPart
from optimizer.wire.object_specs import ALWAYS, DrainSpec, TolerationSpec, TopologySpreadSpec
from optimizer.wire.request_problem import field_problems

PREFIX = f"{GROUP}/"
"""The prefix of every annotation that the optimizer reads."""

MAX_WRONG_IN_MESSAGE = 3
"""Wrong annotations that one message names."""

Spec = TypeVar("Spec", bound=RequestPart)


def read_annotations(obj: Object, model: type[Spec]) -> Spec | InvalidInput:
    """Return what an object's annotations say; the pool may be a label instead."""
    texts = _texts(obj)
    found = {name: texts[key] for name, key in _keys(model) if key in texts}
    try:
        return model.model_validate(found)
    except ValidationError as error:
        problems = field_problems(error.errors(include_input=False, include_url=False))
        wrong = (f"annotation {PREFIX}{_kebab(item.field)}: {item.message}" for item in problems)
        return InvalidInput("InvalidAnnotation", "; ".join(islice(wrong, MAX_WRONG_IN_MESSAGE)))


def unknown_annotations(obj: Object, model: type[RequestPart]) -> Iterator[str]:
    """Yield the annotations with our prefix that no field of the spec has."""
    known = {key for _, key in _keys(model)}
    yield from sorted(key for key in _texts(obj) if key.startswith(PREFIX) and key not in known)


def merge_specs(requested: Spec | None, annotated: Spec) -> dict[str, Any]:
    """Return the stated fields of a spec; what the request says wins over the annotation.

    Amounts by name become sorted pairs, as the domain has them.
    """
    model = type(annotated)
    found = {
        name: getattr(part, name)
        for part in (annotated, requested or annotated)
        for name in model.model_fields
        if getattr(part, name) is not None
    }
    return {
        name: tuple(sorted(value.items())) if isinstance(value, dict) else value
        for name, value in found.items()
    }


def annotations_of(spec: RequestPart, model: type[RequestPart]) -> dict[str, str]:
    """Return the annotations that say what a spec states of the fields of a model."""
    stated = ((key, getattr(spec, name)) for name, key in _keys(model))
    return {key: _short_form(value) for key, value in stated if value is not None}


def annotation_changes(
    model: type[RequestPart], fields: Mapping[str, Any]
) -> dict[str, str | None]:
    """Return the annotations that state fields of a model; None: the annotation is removed."""
    keys = dict(_keys(model))
    return {keys[k]: None if value is None else _short_form(value) for k, value in fields.items()}


def _short_form(value: Any) -> str:
    match value:
        case Mapping():
            return ",".join(f"{name}={amount}" for name, amount in value.items())
        case tuple():
            return ",".join(map(_short_form, value))
        case TopologySpreadSpec(key=key, most=most):
            return f"{key}={most}"
        case TolerationSpec(key=key, toleration_seconds=seconds):
            said = f"={value.value}" if value.operator == "Equal" else ""
            effect = f":{value.effect}" if value.effect else ""
            return f"{key}{said}{effect}" + ("" if seconds is None else f"@{seconds}")
        case DrainSpec():
            stated = value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            return ";".join(f"{name}={text}" for name, text in stated.items()) or ALWAYS
        case _:
            return str(value)


def _texts(obj: Object) -> Mapping[str, str]:
    metadata = obj["metadata"]
    label = (metadata.get("labels") or {}).get(f"{PREFIX}pool")
    return {**({f"{PREFIX}pool": label} if label else {}), **(metadata.get("annotations") or {})}


@cache
def _keys(model: type[RequestPart]) -> tuple[tuple[str, str], ...]:
    return tuple((name, f"{PREFIX}{_kebab(name)}") for name in model.model_fields)


def _kebab(name: str) -> str:
    """Return the annotation of a field, named as in Python or as in JSON."""
    return re.sub("_|(?=[A-Z])", "-", name).lower()
