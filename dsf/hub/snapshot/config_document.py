"""Reads the document that a scoring API serves as its config, with messages for its author."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from dsf.api.crd.scorer_source import MOST_SOURCES
from dsf.api.crd.scoring_params import is_param
from dsf.api.json_input import WrongEncoding, json_text
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput, UntrustedName, UntrustedText
from dsf.hub.snapshot.registered_scorer import validation_message

_SHOWN_FIELDS = 5
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """The config, and the paths of the first fields that the contract does not know."""

    config: ScorerConfig
    unknown: tuple[str, ...] = ()


def read_config(body: bytes) -> ConfigDocument | InvalidInput:
    """Read what a config endpoint answered; InvalidInput has a reason.

    Reasons: WrongEncoding, NotJSON, InvalidConfig. A byte order mark is ignored.
    """
    try:
        document = from_json(json_text(body))
    except WrongEncoding as error:
        return InvalidInput("WrongEncoding", f"the answer: {error}")
    except ValueError as error:
        return InvalidInput(
            "NotJSON",
            f"the answer is not JSON: {error}; serve an object with name, source and scoring there,"
            " or correct spec.configURL",
        )
    if not isinstance(document, Mapping):
        return InvalidInput(
            "InvalidConfig",
            "the answer is JSON but not an object: serve {…} with name, source and scoring",
        )
    shown = tuple(islice(_unknown(ScorerConfig, document, ""), _SHOWN_FIELDS))
    try:
        return ConfigDocument(ScorerConfig.model_validate(document), shown)
    except ValidationError as error:
        ignored = f"; unknown fields: {', '.join(shown)}" if shown else ""
        return InvalidInput(
            "InvalidConfig", (_source_type(error) or validation_message(error)) + ignored
        )


def _source_type(error: ValidationError) -> str:
    for item in error.errors(include_url=False, include_context=False):
        where = item["loc"]
        if where[:1] in (("source",), ("sources",)) and where[-1] == "type":
            served = UntrustedText(str(item["input"])[:_SHOWN_CHARACTERS])
            place, or_none = (
                ("source", ", OpenTelemetry, Kubernetes or None")
                if len(where) == len(("source", "type"))
                else (f"sources.{where[1]}", ", OpenTelemetry or Kubernetes")
            )
            return f"{place}.type is {served}: serve Prometheus{or_none}"
    return ""


def _unknown(model: type[BaseModel], document: Mapping[str, Any], path: str) -> Iterator[str]:
    known = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    further = model.model_config.get("extra") == "allow"
    for key, value in document.items():
        if key not in known:
            missing = known.keys() - document.keys()
            if not (further and is_param(value)) or _near(key, missing):
                yield _hinted(path, key[:_SHOWN_CHARACTERS], missing)
        elif inner := _model(known[key]):
            for place, part in _objects_in(value, f"{path}{key}"):
                yield from _unknown(inner, part, f"{place}.")


def _objects_in(value: object, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects that a field has, one or a list of them, with their paths."""
    if isinstance(value, Mapping):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value[:MOST_SOURCES]):
            yield from _objects_in(item, f"{path}.{index}")


def _hinted(path: str, key: str, missing: Collection[str]) -> str:
    near = _near(key, missing)
    shown = UntrustedName(path + key)
    return f"{shown} (did you mean {near[0]}?)" if near else str(shown)


def _near(key: str, names: Collection[str]) -> list[str]:
    """Return the name that may have been meant by a key, if there is one."""
    return get_close_matches(key[:_SHOWN_CHARACTERS], sorted(names), n=1)


def _model(annotation: Any) -> type[BaseModel] | None:
    """Return the model in an annotation: `Model`, `Model | None`, or an `Annotated` one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model, get_args(annotation))), None)
