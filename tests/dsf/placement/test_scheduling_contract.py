"""What Placements select, decided by the simulated controller and, where given, by OCM's own."""

import pytest

from tests.dsf.placement.scheduling_contract import (
    CASES,
    CONTROLLERS,
    FOLLOWED,
    decide_every_case,
    expected,
    follow_a_cluster,
    placement_controller,
    retire_world,
)


@pytest.mark.parametrize("controller", CONTROLLERS)
async def test_placements_select_what_ocm_selects(controller: str) -> None:
    async with placement_controller(controller) as (kube, settle):
        found = await decide_every_case(kube, settle)
        assert found == {case.name: expected(case) for case in CASES}
        assert await follow_a_cluster(kube, settle) == FOLLOWED
        await retire_world(kube)
