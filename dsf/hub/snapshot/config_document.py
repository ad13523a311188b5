"""Reads the document that a scoring API serves as its config, with messages for its author."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.json_text import WrongEncoding, json_text
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import UntrustedName, UntrustedText
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
        if item["loc"] == ("source", "type"):
            served = UntrustedText(str(item["input"])[:_SHOWN_CHARACTERS])
            return f"source.type is {served}: serve Prometheus, OpenTelemetry or None"
    return ""


def _unknown(model: type[BaseModel], document: Mapping[str, Any], path: str) -> Iterator[str]:
    known = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    for key, value in document.items():
        if key not in known:
            yield _hinted(path, key[:_SHOWN_CHARACTERS], known.keys() - document.keys())
        elif isinstance(value, Mapping) and (inner := _model(known[key])):
            yield from _unknown(inner, value, f"{path}{key}.")


def _hinted(path: str, key: str, missing: Collection[str]) -> str:
    near = get_close_matches(key, sorted(missing), n=1)
    shown = UntrustedName(path + key)
    return f"{shown} (did you mean {near[0]}?)" if near else str(shown)


def _model(annotation: Any) -> type[BaseModel] | None:
    """Return the model in an annotation: `Model`, `Model | None`, or an `Annotated` one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model, get_args(annotation))), None)
