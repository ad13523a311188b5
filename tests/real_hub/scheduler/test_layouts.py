"""What is said to fit runs, and what is said not to fit waits, on random nodes.

DSF_LAYOUTS says how many layouts (20); `make test-scheduler` runs 200.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .conftest import SAID
from .layouts import claim_templates, random_layout
from .outcomes import lay_out, refused, start
from .packing import Fit, Packing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..harness.scheduled import ScheduledCluster

AGAIN = 30
"""Seconds until a refused Pod that should run is a disagreement."""
LAYOUTS = int(os.environ.get("DSF_LAYOUTS", "20"))


@pytest.mark.parametrize("seed", range(LAYOUTS))
def test_the_scheduler_runs_what_fits_in_any_order_and_nothing_that_does_not(
    gpus: ScheduledCluster, seed: int, record_property: Callable[[str, object], None]
) -> None:
    layout = random_layout(seed)
    fit = Packing(layout, layout.workloads).fit()
    gpus.add(claim_templates())
    lay_out(gpus, layout)
    names = start(gpus, layout, layout.workloads)
    waiting = refused(gpus, names, seconds=AGAIN if fit is Fit.ALWAYS else 0)
    record_property(SAID, f"said to fit {fit}: {'a Pod waits' if waiting else 'all Pods run'}")
    if fit is Fit.ALWAYS:
        assert not waiting
    if fit is Fit.NEVER:
        assert waiting
