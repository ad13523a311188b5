"""The memory of a large plan: arrays, without an object for each score or place."""

import sys

import pytest

from benchmarks.optimizer.service import Asked, measured

MOST_BYTES = 120
"""Of the service and of the solver's process each, for one more place; a dictionary takes 400."""


def asked(clusters: int, workloads: int) -> Asked:
    return Asked(clusters, workloads, "prof", missing=0.1, limit=None, gap=0.05, seconds=60.0)


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_place_takes_few_bytes_in_the_whole_service() -> None:
    few, many = asked(20, 50), asked(300, 1_500)
    (small, small_solver), (large, large_solver) = measured(few), measured(many)
    places = 3 * many.clusters * many.workloads
    assert large.placed > 1_000
    assert (large.peak - small.peak) * 2**20 < MOST_BYTES * places
    peaks = max(large_solver.peak.values()) - max(small_solver.peak.values())
    assert peaks * 2**20 < MOST_BYTES * places
