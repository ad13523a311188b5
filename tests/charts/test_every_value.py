"""Each value of each chart counts: what helm renders differs with it, or helm refuses it.

The values are those of values.schema.json. A new one gets a value by its type; if that changes
nothing, it needs one here, or the chart is to be mended.
"""

import json
import re
from functools import cache
from typing import Any

import pytest
import yaml

from tests.charts.rendering import CHARTS, manifests
from tests.charts.toggles import CHARTS as TOGGLES
from tests.charts.toggles import Values, merged
from tests.fields.door import Fields, Schema, leaf_schemas, resolved, with_values

HIDE = (
    "bound",
    "digest",
    "manual",
    "name",
    "no crds",
    "no namespaces",
    "one cluster",
    "one replica",
    "plain http",
    "own account",
)
"""The ends of the names of toggles that leave out what other values shape."""

TEXTS = (
    "other",
    "77s",
    "http://other:8000",
    "/other",
    "0.5",
    "0.77",
    "10.7.0.0/16",
    f"sha256:{'7' * 64}",
    "other/name",
    "77Mi",
    "--other",
)
"""Values of a text; the first that its pattern allows is taken."""

OBJECTS = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}"}}]
CHOSEN: dict[str, Any] = {
    "missingScore": 5,
    "solver.gap": 0.5,
    "autoscaling.minReplicas": 3,
    "extraObjects": OBJECTS,
}
"""Values of fields that have none by their type, by the end of the path."""

SCORER = {
    "scorers.some": {
        "enabled": True,
        "extraEnv": [{"name": "MODEL", "value": "m"}],
        "hosts": ["d.example"],
        "image": {"name": "own", "tag": "1"},
    }
}
GIVEN: dict[str, Fields] = {
    "serviceAccount.create": {".name": "own"},
    "mcp.allowWrites": {"allowWrites": False},
    "constraints.annotate": {"allowWrites": True, "auth.impersonate": False},
    "manifestWorks.read": {"rollouts.enabled": False},
    "sample-scorers.replicas": {"autoscaling.enabled": False},
    "sample-scorers.replicaCount": {"autoscaling.enabled": False},
    "scorers{}.image.repository": {".name": "quay.io/dynamic-scoring/some"},
}
"""What a value needs to matter, by the end of the path; a dot begins a field beside it."""

WITHOUT_EFFECT: dict[str, str] = {
    "takeOwnership": "what exists is looked up: tests/real_hub/charts/test_releases.py",
    "hubSetting.addonController": "the wire contract keeps it; its description says so",
}


@cache
def schema_of(chart: str) -> Schema:
    found: Schema = json.loads((CHARTS / chart / "values.schema.json").read_text())
    return found


@cache
def rendered(chart: str, text: str) -> str:
    """What helm prints for values, given as JSON; its refusal if it refuses them."""
    try:
        return manifests(chart, json.loads(text))
    except ValueError as error:
        return f"refused: {error}"


def base(chart: str) -> Values:
    """All toggles that hide nothing."""
    toggles = [values for name, values in TOGGLES[chart].items() if not name.endswith(HIDE)]
    found = merged(toggles)
    return with_values(found, SCORER) if chart == "sample-scorers" else found


def by_end(table: dict[str, Any], path: str, default: Any) -> Any:
    """The entry of a table whose name a path ends with; the longest one."""
    names = [name for name in table if f".{path}".endswith(f".{name}")]
    return table[max(names, key=len)] if names else default


def value_of(schema: Schema, root: Schema, before: Any) -> Any:
    """A value that a schema allows, other than the one before."""
    schema = resolved(schema, root)
    options = [item for item in schema.get("enum", ()) if item != before]
    if options:
        return options[0]
    match schema.get("type"):
        case "boolean":
            return not before
        case "integer" | "number":
            return (before if isinstance(before, int | float) else schema.get("minimum", 0)) + 7
        case "array":
            return [value_of(schema.get("items", {}), root, None)]
        case "object":
            inner = schema.get("additionalProperties")
            required = {
                name: value_of(schema.get("properties", {}).get(name, {}), root, None)
                for name in schema.get("required", ())
            }
            some = value_of(inner, root, None) if isinstance(inner, dict) else "other"
            return required or {"some": some}
        case _:
            pattern = schema.get("pattern", "")
            fitting = (item for item in TEXTS if item != before and re.search(pattern, item))
            return next(fitting, "other")


def before(values: Any, path: str) -> Any:
    """The value at a path; None without one."""
    for part in path.replace("[]", ".[]").replace("{}", ".some").split("."):
        if part == "[]":
            values = values[0] if values else None
        else:
            values = values.get(part) if isinstance(values, dict) else None
    return values


def defaults(chart: str) -> Values:
    found: Values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
    return found


@pytest.mark.parametrize(
    ("chart", "path"),
    [
        (chart, path)
        for chart in TOGGLES
        for path in leaf_schemas(schema_of(chart), schema_of(chart))
    ],
)
def test_a_value_counts(chart: str, path: str) -> None:
    named, beside = f"{chart}.{path}", path.rpartition(".")[0]
    if why := by_end(WITHOUT_EFFECT, named, ""):
        pytest.skip(why)
    root = schema_of(chart)
    more = {
        f"{beside}{name}" if name[0] == "." else name: value
        for name, value in by_end(GIVEN, named, {}).items()
    }
    given = with_values(base(chart), more)
    now = before(given, path)
    known = now if now is not None else before(defaults(chart), path)
    value = by_end(CHOSEN, named, None)
    if value is None:
        value = value_of(leaf_schemas(root, root)[path], root, known)
    without = rendered(chart, json.dumps(given, sort_keys=True))
    changed = rendered(chart, json.dumps(with_values(given, {path: value}), sort_keys=True))
    assert not without.startswith("refused"), without
    assert without != changed, f"{path}: {value!r} is accepted and ignored"
    refusable = bool({"not", "const"} & leaf_schemas(root, root)[path].keys())
    assert refusable == changed.startswith("refused"), changed
