"""Whole GPUs that nodes have, on clusters where policies divide GPUs: the reason and the remedy."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from optimizer.follow.overview.plan_request import PartialRequest
from optimizer.follow.overview.question_completion import PlanningQuestion, complete_question
from optimizer.follow.overview.what_if import WhatIf
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from tests.optimizer.build import NOW, guide
from tests.optimizer.hubs import hub_of
from tests.optimizer.inventoried_nodes import (
    GH200,
    GPU,
    MIG,
    compliant,
    inventory,
    node,
    publish_nodes,
)

FOUR = {**GH200, "nvidia.com/gpu.count": "4"}
SINGLE = {"nvidia.com/gpu.product": "NVIDIA-GH200-480GB-MIG-3g.48gb"}
FREE = "; nodes of cluster worker01 have {} whole GPUs free, which count only with a policy that"
LEAVES = "add a candidate policy to cluster worker01 that leaves {} free GPUs of its nodes whole"


async def asked(nodes: Iterable[Any], whole: bool, **said: Any) -> tuple[Plan, str, str]:
    """Return the plan of a what-if question, why the workload has no place, and the remedy."""
    found = guide()
    policies = [i for i in found.policies if whole or "all" not in i["metadata"]["name"]]
    clusters = compliant("worker01"), compliant("worker02")
    hub = await hub_of(replace(found, managed_clusters=clusters, policies=tuple(policies)))
    other = inventory("worker02", [node({GPU: 1}, labels=GH200, names=["n9"])])
    await publish_nodes(hub, inventory("worker01", nodes), other)
    optimizer = Optimizer(hub, now=lambda: NOW)
    partial = PartialRequest({"performance": 1}, what_if=WhatIf.model_validate(said))
    question = complete_question(await optimizer.fleet("default"), partial)
    assert isinstance(question, PlanningQuestion), question
    plan = await optimizer.plan(question.request, pretended=question.pretended)
    assert isinstance(plan, Plan), plan
    assert plan.explanation is not None
    remedies = [item.remedy for item in plan.explanation.unplaced if item.remedy]
    changes = ", and ".join(change.message for item in remedies for change in item.changes)
    return plan, "".join(item.message for item in plan.unplaced), changes


@pytest.mark.parametrize(
    ("nodes", "amount", "whole", "free", "remedy"),
    [
        ([node({GPU: 4}, labels=FOUR, names=["n1"])], 4, True, 4, LEAVES),
        ([node({GPU: 4}, labels=FOUR, names=["n1"])], 4, False, 4, LEAVES),
        ([node({GPU: 4}, {GPU: 1}, labels=FOUR, names=["n1"])], 3, True, 3, LEAVES),
        ([node({GPU: 4}, {GPU: 1}, labels=FOUR, names=["n1"])], 4, True, 0, "add 3 gpu all"),
        ([node({GPU: 2}, labels=FOUR, names=[f"n{at}"]) for at in (1, 2)], 3, True, 0, "add 2 gpu"),
        ([node({GPU: 4}, labels=SINGLE, names=["n1"])], 4, True, 0, "add 3 gpu all"),
        ([node({GPU: 4}, labels=FOUR, names=["n1"], unschedulable=True)], 4, True, 0, "add 3 gpu"),
        ([node({GPU: 1, MIG: 6}, labels=FOUR, names=["n1"])], 2, True, 0, "add 1 gpu all"),
    ],
)
async def test_free_whole_gpus_of_nodes_are_told_and_the_remedy_is_a_policy(
    nodes: Any, amount: int, whole: bool, free: int, remedy: str
) -> None:
    _, why, changes = await asked(nodes, whole, run=[{"amount": amount}])
    assert (FREE.format(free) in why) is bool(free)
    assert ("whole GPU" in why) is bool(free)
    assert changes.startswith(remedy.format(amount))
    policy = {"supplies": f"gpu/all={amount}", "clusters": ["worker01"]}
    plan, *_ = await asked(nodes, whole, run=[{"amount": amount}], policies=[policy])
    assert bool(plan.placements) or not free


async def test_where_others_would_lose_their_places_the_remedy_is_no_policy() -> None:
    """Each cluster enforces one policy, and that of the other new workload divides the GPUs."""
    nodes = [node({GPU: 4}, labels=FOUR, names=["n1"])]
    divided = {"name": "divided", "amount": 2, "device": "2g.24gb"}
    run = [{"name": "whole", "amount": 4}, divided]
    pin = {"divided": ["worker01"]}
    _, why, changes = await asked(nodes, True, run=run, pin=pin)
    assert FREE.format(4) in why
    assert changes.startswith("add 3 gpu all to cluster worker02, available whichever policy")
