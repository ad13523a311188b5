"""The optimizer signs what it records, with one key for all of its processes."""

import asyncio

import pytest

from dsf.api.names import HUB_NAMESPACE, RECORD_KEY_SECRET
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, KubeError
from dsf.kube.port import Object
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.record.recorded_plan import record_digest
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.kube_wrappers.wrapper import Call, Wrapper
from tests.optimizer.build import NOW, request
from tests.optimizer.follow.record.test_rollback import (
    applied,
    asked,
    optimizer,
    planned,
    two_plans,
)
from tests.optimizer.hubs import hub_of, names

FORGED = 20


class WithoutSecrets(Wrapper):
    """A hub whose Secrets may not be read or made."""

    def before(self, call: Call) -> None:
        """Refuse the kind."""
        if call.kind == kinds.SECRET:
            raise Forbidden("secrets is forbidden")


async def forge(hub: EmbeddedHub, model: Object, revision: int, phase: str) -> None:
    """Put a record on the hub whose digest fits."""
    spec = {**model["spec"], "revision": revision, "requestedBy": "system:admin"}
    spec["recordDigest"] = record_digest(spec)
    name = f"forged-{revision}"
    metadata = {"name": name, "namespace": "default", "labels": model["metadata"]["labels"]}
    await hub.create(kinds.PLACEMENT_PLAN, {**model, "metadata": metadata, "spec": spec})
    status = {"status": {"phase": phase, "signature": model["status"]["signature"]}}
    await hub.patch(kinds.PLACEMENT_PLAN, name, status, "default", subresource="status")


async def test_processes_that_begin_at_once_have_one_key() -> None:
    hub = await hub_of()
    first, second = optimizer(hub), optimizer(hub)
    plans = [await planned(service, request("power")) for service in (first, second)]
    outcomes = await asyncio.gather(first.apply(plans[0]), second.apply(plans[1]))
    assert all(isinstance(item, Applied | RequestProblem) for item in outcomes)
    await applied(second, await planned(second, request("performance")))
    for service in (first, second, optimizer(hub)):
        assert not isinstance(await service.plan_rollback(asked()), RequestProblem)
    (secret,) = (await hub.list(kinds.SECRET, HUB_NAMESPACE)).items
    assert (secret["metadata"]["name"], secret["immutable"]) == (RECORD_KEY_SECRET, True)


async def test_forged_records_are_not_in_force_and_push_no_plan_out_of_the_history() -> None:
    hub, service = await two_plans()
    model = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    for revision in range(100, 100 + FORGED):
        await forge(hub, model, revision, "Applied")
    status = await service.placement_status("default")
    assert (status.drift, status.not_compared) == ((), ())
    await applied(service, await planned(service, request("performance")))
    kept = await names(hub, kinds.PLACEMENT_PLAN)
    assert {"default-1", "default-2"} <= set(kept)
    limit = OptimizerSettings().plan_history_limit
    assert len([name for name in kept if name.startswith("forged")]) == limit
    assert not isinstance(await service.plan_rollback(asked(to_revision=2)), RequestProblem)
    refused = await service.plan_rollback(asked(to_revision=119))
    assert isinstance(refused, RequestProblem)
    assert "not signed" in refused.detail


async def test_where_no_other_plan_is_in_force_a_forged_one_is_not_compared() -> None:
    hub, service = await two_plans()
    model = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    await hub.delete(kinds.PLACEMENT_PLAN, "default-2", "default")
    await forge(hub, model, 7, "Applied")
    (item,) = (await service.placement_status("default")).not_compared
    assert (item.reason, "forged-7" in item.message) == ("RecordNotSigned", True)


async def test_without_a_key_a_plan_is_applied_and_its_record_says_less() -> None:
    hub = await hub_of()
    service = Optimizer(WithoutSecrets(hub), now=lambda: NOW)
    outcome = await applied(service, await planned(service, request("power")))
    (issue,) = outcome.issues
    assert issue.reason == "RecordNotSigned"
    assert RECORD_KEY_SECRET in issue.message
    refused = await optimizer(hub).plan_rollback(asked(to_revision=1))
    assert isinstance(refused, RequestProblem)
    assert refused.reason == "UnusableRecord"


async def test_who_may_not_read_the_key_compares_the_hub_with_no_record() -> None:
    hub, _ = await two_plans()
    status = await Optimizer(WithoutSecrets(hub), now=lambda: NOW).placement_status("default")
    (item,) = status.not_compared
    assert (item.reason, "default-2" in item.message) == ("RecordNotVerified", True)


async def test_a_key_that_is_none_is_named_and_nothing_is_written() -> None:
    hub, service = await two_plans()
    await hub.delete(kinds.SECRET, RECORD_KEY_SECRET, HUB_NAMESPACE)
    metadata = {"name": RECORD_KEY_SECRET, "namespace": HUB_NAMESPACE}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {"key": "c2hvcnQ="},
    }
    await hub.create(kinds.SECRET, secret)
    again = optimizer(hub)
    plan = await planned(service, request("performance"))
    before = await names(hub, kinds.PLACEMENT_PLAN)
    with pytest.raises(KubeError, match="no key of 32 bytes"):
        await again.apply(plan)
    assert await names(hub, kinds.PLACEMENT_PLAN) == before
