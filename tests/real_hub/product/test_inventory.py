"""Agents report nodes with the chart's rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..harness.gpu_nodes import GPU

if TYPE_CHECKING:
    from ..harness.api import Object


def test_agents_report_with_the_rights_of_the_chart(inventories: dict[str, Object]) -> None:
    for inventory in inventories.values():
        named = {
            name: each for each in inventory["status"]["nodes"] for name in each.get("names", ())
        }
        group = named["inventoried"]
        assert group["allocatable"][GPU] == "4"
        assert inventory["status"]["validUntil"] > inventory["status"]["observedTime"]
