"""Deleting the DynamicScoringConfig takes back what was distributed, and nothing else."""

from __future__ import annotations


def test_nothing_of_it_is_left_but_what_others_put_there(withdrawn: set[str]) -> None:
    assert withdrawn == {"Secret", "ServiceAccount"}
