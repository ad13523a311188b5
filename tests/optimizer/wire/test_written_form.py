"""A text where a list or an object is meant is refused with how to write it."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from optimizer.follow.overview.what_if import WhatIf
from optimizer.wire.base import written_forms
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.request_problem import field_problems, known_fields


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"drain": "worker01"}, 'drain: write ["name"] or {"name": {"until": '),
        ({"drain": {"worker01": 3}}, 'drain.worker01: must be an object; write {"until": '),
        ({"pin": "worker01"}, 'pin: must be an object; write {"name": ["name"]}'),
        ({"pin": {"app01": 3}}, 'pin.app01: must be a list; write ["name"]'),
        ({"apart": "app01"}, 'apart: must be a list; write [["name", "name"]]'),
        ({"atMost": "worker01"}, 'atMost: must be an object; write {"name": 1}'),
        ({"apart": ["app01"]}, 'apart[0]: must list at least 2; write ["name", "name"]'),
        ({"add": ["w"]}, 'add[0]: must be an object; write {"name": "name"'),
    ],
)
def test_a_text_instead_of_an_object_is_told_the_form(said: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        WhatIf.model_validate(said)
    (found,) = field_problems(wrong.value.errors(), known_fields(WhatIf))
    assert f"{found.field}: {found.message}".startswith(told)


def _fields() -> Iterator[Any]:
    for model in (WhatIf, OptimizeRequest, RollbackRequest):
        for outer, fields in known_fields(model).items():
            for name, field in fields.items():
                yield pytest.param(field, id=f"{model.__name__}.{outer}.{name}")


@pytest.mark.parametrize("field", [*_fields()])
def test_each_form_that_is_told_can_be_written(field: FieldInfo) -> None:
    validated = TypeAdapter(Annotated[field.annotation, *field.metadata, None])
    for form in written_forms(field):
        validated.validate_python(json.loads(form))
