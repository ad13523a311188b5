"""How many assignments a fleet counts as before its problem is built."""

from dataclasses import replace
from typing import Any

import pytest

from optimizer.domain.fleet import FleetLimit, TopologySpread
from optimizer.model.formulate import too_large
from tests.optimizer.build import fleet

PLAIN = fleet({"c": [("d", 2)], "e": [("d", 2)]}, {"w": 1}, {("c", "w", "d"): 1.0})
"""One workload, two resources."""


@pytest.mark.parametrize(
    ("changed", "counted"),
    [
        ({}, 2),
        ({"replicas": 2}, 10),
        ({"replicas": 3, "requests": (("cpu", 1.0),)}, 18),
        ({"spread": (TopologySpread("zone", 1),)}, 10),
        ({"uses": (("watts", 3.0),)}, 10),
        ({"uses": (("watts", 0.0),)}, 2),
    ],
)
def test_each_row_beyond_capacity_counts_as_four_assignments(
    changed: dict[str, Any], counted: int
) -> None:
    workloads = (replace(PLAIN.workloads[0], **changed),)
    given = replace(PLAIN, workloads=workloads, limits=(FleetLimit("power", 9.0, uses="watts"),))
    assert too_large(given, counted) is None
    refused = too_large(given, counted - 1)
    assert refused is not None
    assert (f"count as {counted}" in refused.detail) is (counted > 2)
