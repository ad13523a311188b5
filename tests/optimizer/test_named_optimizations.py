"""Named optimizations: each changes and deletes its own generated objects only."""

from typing import Any

import pytest

from dsf.api.names import OPTIMIZATION_LABEL
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import Object
from optimizer.plan.plan import Plan, result
from optimizer.plan.text.approval_questions import plan_question
from optimizer.plan.text.tables import render
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest, ResetRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.optimizer.build import NOW, body, request
from tests.optimizer.hubs import hub_of

FIRST = request("performance", ["worker01"], ["mwrs-app01"])
SECOND = request("performance", ["worker02"], ["mwrs-app02"], optimization="second")
GENERATED = (kinds.PLACEMENT, kinds.PLACEMENT_BINDING)


async def applied(service: Optimizer, asked: OptimizeRequest) -> Plan:
    plan = await service.plan(asked)
    assert isinstance(plan, Plan)
    outcome = await service.apply(plan)
    assert isinstance(outcome, Applied), outcome
    assert outcome.failed == ()
    return plan


async def objects(hub: EmbeddedHub) -> dict[tuple[str, str], Object]:
    """The generated objects of the namespace by kind and name."""
    return {
        (kind.kind, item["metadata"]["name"]): item
        for kind in GENERATED
        for item in (await hub.list(kind, "default")).items
    }


async def test_a_request_never_deletes_what_another_name_generated() -> None:
    hub = await hub_of()
    service = Optimizer(hub, now=lambda: NOW)
    await applied(service, FIRST)
    first = await objects(hub)
    await applied(service, SECOND)
    both = await objects(hub)
    assert len(both) == 2 * len(first) == 6
    assert {key: both[key] for key in first} == first
    labels = [
        both[key]["metadata"]["labels"].get(OPTIMIZATION_LABEL) for key in both.keys() - first
    ]
    assert labels == ["second"] * 3


async def test_within_a_name_a_request_is_the_whole_truth() -> None:
    hub = await hub_of()
    service = Optimizer(hub, now=lambda: NOW)
    await applied(service, request())
    assert len(await objects(hub)) == 6
    await applied(service, FIRST)
    found = await objects(hub)
    assert len(found) == 4
    assert found["Placement", "app02-placement"]["spec"]["numberOfClusters"] == 0
    await applied(service, SECOND)
    assert len(await objects(hub)) == 6


async def test_a_refusal_says_of_which_optimization_the_last_plan_was() -> None:
    hub = await hub_of()
    service = Optimizer(hub, now=lambda: NOW)
    made = await service.plan(FIRST)
    assert isinstance(made, Plan)
    second = await applied(service, SECOND)
    supply = {"metadata": {"labels": {"resource-supply-amount": "1"}}}
    await hub.patch(kinds.POLICY, "3g.48gb-worker01", supply, "default")
    refused = await service.apply(made)
    assert isinstance(refused, RequestProblem)
    last = f"; last applied was plan {second.digest} of optimization second"
    assert refused.detail.endswith(f"plan again{last}")


async def test_the_contracts_request_generates_what_it_always_did() -> None:
    named = Optimizer(await hub_of(), now=lambda: NOW)
    plain, default = await named.plan(request()), await named.plan(request(optimization="default"))
    assert isinstance(plain, Plan)
    assert isinstance(default, Plan)
    assert plain.output_yaml == default.output_yaml
    assert OPTIMIZATION_LABEL not in plain.output_yaml
    other = await named.plan(request(optimization="other"))
    assert isinstance(other, Plan)
    assert other.digest != plain.digest
    assert result(other, None).objective_value == 115


async def test_a_reset_of_a_name_leaves_the_others_and_without_a_name_none() -> None:
    hub = await hub_of()
    service = Optimizer(hub, now=lambda: NOW)
    await applied(service, FIRST)
    first = await objects(hub)
    await applied(service, SECOND)
    done = await service.reset("default", optimization="second")
    assert not isinstance(done, RequestProblem)
    assert len(done.deleted) == 3
    assert await objects(hub) == first
    await applied(service, SECOND)
    await service.reset("default")
    assert await objects(hub) == {}


async def test_the_status_is_that_of_one_name_or_of_all() -> None:
    service = Optimizer(await hub_of(), now=lambda: NOW)
    await applied(service, FIRST)
    await applied(service, SECOND)
    seen = {
        name: await service.placement_status("default", name)
        for name in (None, "default", "second")
    }
    workloads = {name: [item.workload for item in found.workloads] for name, found in seen.items()}
    assert workloads == {
        None: ["mwrs-app01", "mwrs-app02"],
        "default": ["mwrs-app01"],
        "second": ["mwrs-app02"],
    }
    assert not any(found.drift for found in seen.values())


async def test_a_workload_of_another_name_is_refused_with_both_names() -> None:
    hub = await hub_of()
    service = Optimizer(hub, now=lambda: NOW)
    await applied(service, request("performance", ["worker02"], ["mwrs-app01"]))
    before = await objects(hub)
    asked = request("performance", ["worker01"], ["mwrs-app01"], optimization="second")
    refused = await service.plan(asked)
    assert isinstance(refused, RequestProblem)
    assert (refused.status, refused.reason) == (409, "OtherOptimization")
    assert "optimization default of namespace default" in refused.detail
    assert "optimization second of namespace default" in refused.detail
    assert await objects(hub) == before


@pytest.mark.parametrize("name", ["", "Second", "a.b", "-a", "a" * 64, "a/b", 1])
def test_a_name_is_a_dns_label(name: Any) -> None:
    with pytest.raises(ValueError, match="optimization"):
        OptimizeRequest.model_validate({**body(), "optimization": name})
    with pytest.raises(ValueError, match="optimization"):
        ResetRequest.model_validate({"namespace": "default", "optimization": name})


async def test_a_plan_says_first_and_in_words_which_workloads_it_removes() -> None:
    service = Optimizer(await hub_of(), now=lambda: NOW)
    await applied(service, request())
    made = await service.plan(FIRST)
    assert isinstance(made, Plan)
    (removed,) = result(made, None).removals
    assert (removed.workload, removed.clusters) == ("mwrs-app02", ("worker02",))
    words = "removes mwrs-app02 from worker02: the request of optimization default"
    assert removed.message.startswith(words)
    assert (made.issues[0].reason, made.issues[0].message) == ("RemovesWorkload", removed.message)
    assert render(made).index(words) < render(made).index("mwrs-app01")
    asked = plan_question(made, "hub")
    assert asked.splitlines()[1].startswith(f'The plan "{words}')


async def test_a_request_without_pruning_keeps_what_it_does_not_name() -> None:
    hub = await hub_of()
    service = Optimizer(hub, now=lambda: NOW)
    await applied(service, request())
    before = await objects(hub)
    asked = request("performance", ["worker01"], ["mwrs-app01"], prune=False)
    made = await service.plan(asked)
    assert isinstance(made, Plan)
    assert (made.removals, made.changes) == ((), ())
    await applied(service, asked)
    assert await objects(hub) == before
