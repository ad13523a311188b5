"""The controller sends scorers the manifests of an embedded hub that they ask for."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest

from dsf.api.scoring.scorer_summary import ScorerSummary, load_summaries
from dsf.hub.snapshot.summaries_work import summaries_text
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.api_server import WriteOptions
from dsf.kube.errors import BadRequest, Forbidden, NotFound
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET,
    POLICY,
)
from tests.dsf.hub.builders import api_config, scorer
from tests.dsf.hub.scoring_api import ScoringAPI, scoring_api
from tests.dsf.hub.snapshot.test_manifests import SECRET, deployment, workload
from tests.dsf.hub.test_run import (
    WORK,
    add_namespace,
    condition,
    controlled,
    fresh,
    register,
    two_clusters,
    until_distributed,
    until_ready,
    until_reason,
)
from tests.eventually import eventually
from tests.kube_wrappers.wrapper import Answer, Call, Wrapper

SUPPLY = {
    "resource-supply-kind": "gpu",
    "resource-supply-device": "3g.48gb",
    "resource-supply-amount": "2",
}


@pytest.fixture
async def hub() -> EmbeddedHub:
    kube = await two_clusters()
    await add_namespace(kube, "team")
    return kube


def asking(**context: Any) -> ScoringAPI:
    config = {**api_config("perf"), "source": {"type": "None"}, "context": context}
    return ScoringAPI(body=json.dumps(config).encode())


async def add_workload(kube: EmbeddedHub) -> None:
    obj = workload(deployment())
    spec = {**obj["spec"], "placementRefs": [{"name": "placement-app01"}]}
    await kube.create(MANIFEST_WORK_REPLICA_SET, {**fresh(obj), "spec": spec})


async def add_policy(kube: EmbeddedHub, name: str = "policy-3g", **labels: str) -> None:
    metadata = {"name": name, "namespace": "team", "labels": {**SUPPLY, **labels}}
    spec = {"disabled": False, "policy-templates": []}
    await kube.create(POLICY, {"metadata": metadata, "spec": spec})


async def sent(kube: EmbeddedHub, cluster: str = "c1") -> ScorerSummary | None:
    try:
        work = await kube.get(MANIFEST_WORK, WORK, cluster)
    except NotFound:
        return None
    found = load_summaries(summaries_text(work))
    assert isinstance(found, tuple)
    return found[0] if found else None


async def test_workloads_and_devices_are_sent_again_when_they_change(hub: EmbeddedHub) -> None:
    await add_workload(hub)
    api = asking(workloads={"fields": ["image", "requests"]}, devices=True)
    async with scoring_api(api), controlled(hub, manifest_namespaces=("team",)):
        await register(hub, "perf", api)
        await until_distributed(hub, c1=["perf"], c2=["perf"])
        await until_ready(hub, "perf")
        first = await sent(hub)
        assert first is not None
        (found,) = first.context_workloads
        assert (found.app, found.requests) == ("app01", {"gpu": "2"})
        assert first.context_devices == ()
        await add_policy(hub)

        async def supplied() -> bool:
            both = [await sent(hub, name) for name in ("c1", "c2")]
            return all(one and [d.device for d in one.context_devices] for one in both)

        await eventually(supplied)
        await hub.delete(MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "team")

        async def gone() -> bool:
            one = await sent(hub)
            return one is not None and not one.context_workloads

        await eventually(gone)
        works = (await hub.list(MANIFEST_WORK)).items
        assert SECRET not in json.dumps(works)


async def test_each_cluster_gets_its_own_labels_and_claims(hub: EmbeddedHub) -> None:
    await hub.patch(MANAGED_CLUSTER, "c1", {"metadata": {"labels": {"region": "eu", "own": "x"}}})
    claims = {"status": {"clusterClaims": [{"name": "id.k8s.io", "value": "4711"}]}}
    await hub.patch(MANAGED_CLUSTER, "c2", claims, subresource="status")
    api = asking(cluster=True, labels=["region"], claims=["id.k8s.io"])
    async with scoring_api(api), controlled(hub):
        await register(hub, "perf", api)
        await until_distributed(hub, c1=["perf"], c2=["perf"])
        first, second = await sent(hub, "c1"), await sent(hub, "c2")
        assert first is not None
        assert second is not None
        assert (first.context_labels, first.context_claims) == ({"region": "eu"}, {})
        assert (second.context_labels, second.context_claims) == ({}, {"id.k8s.io": "4711"})
        await hub.patch(MANAGED_CLUSTER, "c2", {"metadata": {"labels": {"region": "us"}}})

        async def moved() -> bool:
            one = await sent(hub, "c2")
            return one is not None and one.context_labels == {"region": "us"}

        await eventually(moved)


async def test_a_config_that_asks_for_secrets_is_refused_or_named(hub: EmbeddedHub) -> None:
    environment, secrets = asking(workloads={"fields": ["env"]}), asking(secrets=True)
    async with (
        scoring_api(environment),
        scoring_api(secrets),
        controlled(hub, manifest_namespaces=("team",)),
    ):
        await register(hub, "environment", environment)
        message = await until_reason(hub, "environment", "ConfigSynced", "InvalidConfig")
        assert "context.workloads.fields.0" in message
        await register(hub, "secrets", secrets)
        message = await until_reason(hub, "secrets", "ContextAvailable", "UnknownContext")
        assert "context.secrets" in message


async def test_kubectl_refuses_a_field_of_a_context_that_does_not_exist(hub: EmbeddedHub) -> None:
    """Kubectl asks for strict validation."""
    obj = fresh(scorer(context={"secrets": True}))
    with pytest.raises(BadRequest, match=r'unknown field "spec.context.secrets"'):
        await hub.create(DYNAMIC_SCORER, obj, options=WriteOptions(field_validation="Strict"))


class WithoutRight(Wrapper):
    """A hub on which the controller may not list policies."""

    def before(self, call: Call) -> None:
        if call.kind == POLICY:
            raise Forbidden("policies is forbidden")


@pytest.mark.virtual_time
async def test_a_missing_right_holds_up_no_other_scorer(hub: EmbeddedHub) -> None:
    """Nothing is probed in virtual time: only that the first plan is made."""
    async with controlled(WithoutRight(hub), manifest_namespaces=("team",)):
        await asyncio.sleep(60)
        found = await condition(hub, "dynamic-scoring-config", "Ready")
        assert found["reason"] == "Distributed"
        assert {
            work["metadata"]["namespace"] for work in (await hub.list(MANIFEST_WORK)).items
        } == {"c1", "c2"}


class SlowList(Wrapper):
    """A hub that takes a while to list policies."""

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        if (call.verb, call.kind) == ("list", POLICY):
            await asyncio.sleep(0.5)
        return await answering


async def test_a_restart_withdraws_no_scorer_while_manifests_are_listed(hub: EmbeddedHub) -> None:
    await add_policy(hub)
    api = asking(devices=True)
    async with scoring_api(api):
        async with controlled(hub, manifest_namespaces=("team",)):
            await register(hub, "perf", api)
            await until_distributed(hub, c1=["perf"], c2=["perf"])
            await until_ready(hub, "perf")
        before = (await hub.list(MANIFEST_WORK)).items
        asked = len(api.asked)
        async with controlled(SlowList(hub), manifest_namespaces=("team",)):

            async def probed() -> bool:
                return len(api.asked) >= asked + 6

            await eventually(probed)
        assert (await hub.list(MANIFEST_WORK)).items == before
