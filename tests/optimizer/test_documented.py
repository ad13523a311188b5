"""The documentation names every input of the optimizer, and every issue."""

import re
from typing import Any

import numpy as np
import pytest

from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.rules import Row, violations
from optimizer.snapshot.annotations import PREFIX
from optimizer.wire.base import RequestPart
from optimizer.wire.object_specs import ClusterSpec, PolicySpec, WorkloadSpec
from optimizer.wire.request import (
    OptimizeRequest,
    Preference,
    RequestedCluster,
    RequestedLimit,
    RequestedPolicy,
    RequestedWorkload,
)
from tests.optimizer.build import fleet
from tests.repository import ROOT

FIELDS = (ROOT / "docs/reference/optimizer.md").read_text(encoding="utf-8")
ISSUES = (ROOT / "docs/reference/optimizer-issues.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CONTRACT = {"name", "namespace", "dryRun", "availablePolicies", "targetWorkloads", "clusters"}
CONTRACT |= {"addonPlacementScore", "scoreDimensionFormat"}


@pytest.mark.parametrize(
    "model",
    [
        OptimizeRequest,
        RequestedCluster,
        RequestedPolicy,
        RequestedWorkload,
        Preference,
        RequestedLimit,
    ],
)
def test_every_field_of_the_request_is_documented(model: type[RequestPart]) -> None:
    fields = {field.serialization_alias or "" for field in model.model_fields.values()}
    docs = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    missing = {name for name in fields - CONTRACT if f"`{name}" not in docs}
    assert missing == set(), "docs/reference/optimizer.md lacks these fields"
    assert "" not in fields


@pytest.mark.parametrize("model", [WorkloadSpec, PolicySpec, ClusterSpec])
def test_every_annotation_is_documented(model: type[RequestPart]) -> None:
    names = {name.replace("_", "-") for name in model.model_fields}
    missing = {name for name in names if f"| `{name}`" not in FIELDS}
    assert missing == set(), "docs/reference/optimizer.md lacks these annotations"
    assert f"`{PREFIX}`" in FIELDS


def test_every_reason_of_an_issue_is_documented() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "optimizer").rglob("*.py"))
    reasons = set(re.findall(r'Issue\(\s*reason="([A-Za-z]+)"', source))
    assert reasons
    assert {reason for reason in reasons if f"`{reason}`" not in ISSUES} == set()


def _example() -> Any:
    """Return the rule that CONTRIBUTING.md shows."""
    (source,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.DOTALL)
    names: dict[str, object] = {"Row": Row, "Problem": Problem, "np": np}
    exec("from collections.abc import Iterator\n" + source, names)  # noqa: S102 - our own text
    return names["at_most_three_on_spot"]


def test_the_example_of_a_rule_works() -> None:
    demands = {f"w{index}": 1 for index in range(4)}
    scores = {("spot-1", name, "d"): 1.0 for name in demands}
    given = fleet({"spot-1": [("d", 9)]}, demands, scores)
    rule = _example()
    places = tuple(Assignment(name, "spot-1", "d") for name in demands)
    four = Decision((PolicyEnforcement("spot-1", "d"),), places)
    three = Decision((PolicyEnforcement("spot-1", "d"),), places[:3])
    problem = formulate(given)
    assert violations(problem, three, [rule]) == ()
    assert violations(problem, four, [rule]) == ("three workloads on spot clusters",)
