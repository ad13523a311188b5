"""What a PlacementOptimization keeps follows a scorer's answer, and waits for compliance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.eventually import until
from tests.optimizer.service.kept_fleet import AT_ONCE

from .guide import WORKLOADS, request, scenario
from .scorers import quick_tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .guide import Guide

KEPT = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "PlacementOptimization", "kept")


def policies(profile: str) -> dict[str, str]:
    return {name: f"policy-enable-mig-{profile}-{name}" for name in ("east", "west")}


@pytest.fixture
def scores(guide: Guide) -> Iterator[Path]:
    """The file of the static scorer, which reads it again when it changes."""
    file = guide.hub.directory / "scores.yaml"
    yield file
    file.write_text(yaml.safe_dump(quick_tables()))


def test_a_changed_answer_moves_workloads_after_compliance(guide: Guide, scores: Path) -> None:
    for obj in scenario():
        guide.hub.apply(obj)
    spec = {**request("performance"), "mode": "Apply", "hysteresis": AT_ONCE}
    spec |= {"deletionPolicy": "Reset"}
    del spec["namespace"]
    metadata = {"name": KEPT[2], "namespace": WORKLOADS}
    guide.hub.apply({"apiVersion": KEPT[0], "kind": KEPT[1], "metadata": metadata, "spec": spec})
    _followed(guide, "3g")

    guide.start_configuring()
    performance, power, *others = quick_tables()
    changed = [{**performance, "scores": power["scores"]}, power, *others]
    scores.write_text(yaml.safe_dump(changed))
    _followed(guide, "2g")

    guide.hub.api.delete(*KEPT, WORKLOADS)
    until("its end", lambda: guide.hub.api.find(*KEPT, WORKLOADS) is None)
    guide.clear()


def _followed(guide: Guide, profile: str) -> None:
    """Wait for the policies of a profile; nothing is decided before they are compliant."""
    until(f"{profile} to be enforced", lambda: guide.enforced(policies(profile)))
    until("nothing to be decided", lambda: not any(guide.workloads().values()))
    guide.finish_configuring()
    placed = until("the workloads to be decided", guide.workloads_decided)
    assert until("the workloads to land", lambda: guide.landed(placed))
