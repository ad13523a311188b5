"""Valid and invalid requests, generated from the optimizer's OpenAPI document, over a socket."""

import os
from collections import Counter
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsf.kube.embedded import EmbeddedHub
from optimizer.api.app import create_app
from optimizer.service.optimizer import Optimizer
from tests.optimizer.build import NOW

schemathesis = pytest.importorskip("schemathesis", reason="in the dependency group `fire`")

EXAMPLES = int(os.environ.get("FIRE_EXAMPLES", "100"))
"""Requests to each operation, with and without a token; FIRE_EXAMPLES sets another number."""
DOCUMENT = create_app(Optimizer(EmbeddedHub(), now=lambda: NOW)).openapi()
OPERATIONS = tuple(
    f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods
)


def answered(url: str, operation: str, token: str = "") -> Counter[int]:
    """Send random requests to an operation, and count the answers by their status."""
    from schemathesis.specs.openapi.checks import (  # noqa: PLC0415
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    method, path = operation.split()
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    cases = st.one_of(*(schema[path][method].as_strategy(generation_mode=mode) for mode in modes))
    checks = [status_code_conformance, content_type_conformance, response_schema_conformance]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    statuses: Counter[int] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def one_answer(case: Any) -> None:
        response = case.call(headers=headers)
        statuses[response.status_code] += 1
        assert response.status_code != 500, response.text
        case.validate_response(response, checks=checks)

    one_answer()
    return statuses


@pytest.mark.exhaustive
@pytest.mark.fire(
    "every request gets a documented answer, and none a 500",
    "schemathesis by the OpenAPI document, over a socket",
    count=EXAMPLES,
)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_documented(
    optimizer_url: str, operation: str, record_property: Any
) -> None:
    record_property("count", answered(optimizer_url, operation).total())
    assert httpx.get(f"{optimizer_url}/healthz", trust_env=False).status_code == 200


@pytest.mark.exhaustive
@pytest.mark.fire(
    "every request gets a documented answer, and none a 500",
    "schemathesis with the token of a caller who may plan and apply",
    count=EXAMPLES,
)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_behind_the_door_is_documented(
    guarded_url: str, operation: str, record_property: Any
) -> None:
    statuses = answered(guarded_url, operation, token="token-of-writer")
    record_property("count", statuses.total())
    assert statuses[401] == 0, "every request gets behind the door"
    assert httpx.get(f"{guarded_url}/healthz", trust_env=False).status_code == 200
