"""What a plan names is what is selected: by the simulated controller, and by OCM's own if given."""

import pytest

from tests.dsf.placement.scheduling_contract import (
    CONTROLLERS,
    expected,
    placement_controller,
    retire_world,
)
from tests.optimizer.eligibility_contract import lose_clusters, plan_every_case, plannable


@pytest.mark.parametrize("controller", CONTROLLERS)
async def test_decisions_equal_the_plan(controller: str) -> None:
    async with placement_controller(controller) as (kube, settle):
        found = await plan_every_case(kube, settle)
        assert len(found) >= 20
        assert {name: item.planned for name, item in found.items()} == {
            case.name: expected(case)[1] for case in plannable()
        }
        assert {name: item.selected for name, item in found.items()} == {
            case.name: expected(case)[1] for case in plannable()
        }
        whole, lost, deleted, unbound = await lose_clusters(kube, settle)
        assert [item.selected for item in (whole, lost, deleted, unbound)] == [
            ("a1", "a2", "p1", "s1"),
            ("a2", "p1", "s1"),
            ("p1", "s1"),
            (),
        ]
        assert [item.planned == item.selected for item in (whole, lost, deleted, unbound)] == (
            [True] * 4
        )
        assert "ClusterTainted" in lost.reasons
        assert "ClusterBeingDeleted" in deleted.reasons
        assert "ClusterSetNotBound" in unbound.reasons
        await retire_world(kube)
