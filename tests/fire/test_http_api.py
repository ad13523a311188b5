"""Requests by the optimizer's own OpenAPI document, valid and not, over a socket."""

import os
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

schemathesis = pytest.importorskip("schemathesis", reason="in the dependency group `fire`")

EXAMPLES = int(os.environ.get("FIRE_EXAMPLES", "300"))
"""Requests to each operation; FIRE_EXAMPLES sets another number."""
OPERATIONS = ("POST /optimize", "POST /reset", "GET /addonplacementscores")


@pytest.mark.exhaustive
@pytest.mark.fire(
    "every request gets a documented answer, and none a 500",
    "schemathesis by the OpenAPI document, over a socket",
)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_documented(
    optimizer_url: str, operation: str, record_property: Any
) -> None:
    from schemathesis.specs.openapi.checks import (  # noqa: PLC0415
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    schema = schemathesis.openapi.from_url(f"{optimizer_url}/openapi.json")
    method, path = operation.split()
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    cases = st.one_of(*(schema[path][method].as_strategy(generation_mode=mode) for mode in modes))
    sent = 0

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def answered(case: Any) -> None:
        nonlocal sent
        sent += 1
        response = case.call()
        assert response.status_code != 500, response.text
        case.validate_response(
            response,
            checks=[
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ],
        )

    try:
        answered()
    finally:
        record_property("count", sent)
    assert httpx.get(f"{optimizer_url}/healthz", trust_env=False).status_code == 200
