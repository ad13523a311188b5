"""Values, cells and ages of printer columns."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dsf.kube.embedded.http.kubectl import cell, value_at
from dsf.kube.resources.resource_catalog import Column

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OBJ: dict[str, Any] = {
    "spec": {"a.b": 1, "list": [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}], "text": "t"},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]
    },
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".spec.text", "t"),
        (".status.conditions[?(@.type=='Ready')].status", "True"),
        ('.status.conditions[?(@.type=="Other")].status', "False"),
        ('.status.conditions[?(@.type=="None")].status', None),
        ('.spec.text[?(@.type=="Ready")].status', None),
        (".spec.text.deeper", None),
        (".nothing.at.all", None),
        (".spec.list[*].n", 1),
        ("spec.text", None),
        (".spec.text[", None),
        ("", None),
    ],
)
def test_the_value_at_a_path(path: str, value: Any) -> None:
    assert value_at(OBJ, path) == value


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        ("string", "text", "text"),
        ("string", {"a": [1]}, '{"a":[1]}'),
        ("string", True, "true"),
        ("string", None, None),
        ("integer", 3, 3),
        ("integer", 3.7, 3),
        ("integer", "3", None),
        ("boolean", True, True),
        ("date", "2026-01-02T03:04:00Z", "5s"),
        ("date", "soon", "<unknown>"),
        ("date", "2027-01-01T00:00:00Z", "<invalid>"),
    ],
)
def test_cells(type_: str, value: Any, shown: Any) -> None:
    assert cell(Column("C", type_, ".v"), {"v": value}, NOW) == shown
