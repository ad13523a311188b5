"""What is said to fit runs, and what is said not to fit waits, on random nodes.

DSF_LAYOUTS says how many layouts (20); `make test-scheduler` runs 200.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .conftest import SAID
from .layouts import NAMESPACE, claim_templates, random_layout
from .outcomes import lay_out, refused, remove, start
from .packing import Fit, Packing
from .plans import plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..harness.scheduled import ScheduledCluster

CAREFUL = "Fragmented"
"""Why Pods may be left out that would run: that they all find a node is bounded, not tried."""
AGAIN = 30
"""Seconds until a refused Pod that should run is a disagreement."""
LAYOUTS = int(os.environ.get("DSF_LAYOUTS", "20"))


@pytest.mark.parametrize("seed", range(LAYOUTS))
def test_the_scheduler_runs_what_fits_in_any_order_and_nothing_that_does_not(
    gpus: ScheduledCluster, seed: int, record_property: Callable[[str, object], None]
) -> None:
    layout = random_layout(seed)
    gpus.add(claim_templates())
    lay_out(gpus, layout)
    fit = Packing(layout, layout.workloads, gpus.allocated(NAMESPACE)).fit()
    names = start(gpus, layout, layout.workloads)
    waiting = refused(gpus, names, seconds=AGAIN if fit is Fit.ALWAYS else 0)
    record_property(SAID, f"said to fit {fit}: {'a Pod waits' if waiting else 'all Pods run'}")
    if fit is Fit.ALWAYS:
        assert not waiting
    if fit is Fit.NEVER:
        assert waiting


@pytest.mark.parametrize("seed", range(LAYOUTS))
def test_what_the_optimizer_places_runs_and_what_it_leaves_out_waits(
    gpus: ScheduledCluster, seed: int, record_property: Callable[[str, object], None]
) -> None:
    layout = random_layout(seed)
    gpus.add(claim_templates())
    lay_out(gpus, layout)
    allocated = gpus.allocated(NAMESPACE)
    made = plan(gpus, layout)
    names = {item.workload for item in made.placements}
    placed = tuple(item for item in layout.workloads if item.name in names)
    assert refused(gpus, start(gpus, layout, placed), seconds=AGAIN) == []
    for item in placed:
        record_property(SAID, f"placed{' with claims' if item.claim else ''}: all Pods run")
    for item in layout.workloads:
        if item.name not in names:
            pods = start(gpus, layout, [item])
            waits = bool(refused(gpus, pods))
            remove(gpus, pods)
            why = (left.reason for left in made.unplaced if left.workload == item.name)
            reason = next(why, "an issue")
            fit = Packing(layout, (*placed, item), allocated).fit()
            said = f"left out{' with claims' if item.claim else ''} as {reason}, fits {fit}"
            record_property(SAID, f"{said}: {'a Pod waits' if waits else 'all Pods run'}")
            assert waits or reason == CAREFUL
