"""A DynamicScorer in another namespace than the controller's is told so, and used by nobody."""

import json
from functools import partial

from dsf.api.conditions import find
from dsf.hub.snapshot.summaries_work import summaries_text
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden
from dsf.kube.kinds import DYNAMIC_SCORER, EVENT, MANIFEST_WORK, NAMESPACE
from tests.dsf.hub.builders import scorer
from tests.dsf.hub.scoring_api import ScoringAPI, scoring_api
from tests.dsf.hub.test_run import controlled, register, two_clusters, until_ready
from tests.eventually import eventually
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call

TEAM = "team-a"


async def registered_elsewhere(hub: EmbeddedHub, api: ScoringAPI, name: str = "cpu") -> None:
    await hub.create(NAMESPACE, {"metadata": {"name": TEAM}})
    spec = scorer(url=api.config_url)["spec"]
    await hub.create(DYNAMIC_SCORER, {"metadata": {"name": name, "namespace": TEAM}, "spec": spec})


async def told(hub: EmbeddedHub, name: str = "cpu") -> bool:
    obj = await hub.get(DYNAMIC_SCORER, name, TEAM)
    ready = find((obj.get("status") or {}).get("conditions") or [], "Ready")
    return ready is not None and ready["reason"] == "OtherNamespace"


async def test_it_is_told_where_it_has_to_be_and_nothing_else_happens() -> None:
    hub = await two_clusters()
    async with scoring_api() as api, controlled(hub, resync_seconds=600):
        await registered_elsewhere(hub, api)
        await eventually(partial(told, hub))
        status = (await hub.get(DYNAMIC_SCORER, "cpu", TEAM))["status"]
        (ready,) = status["conditions"]
        assert "namespace open-cluster-management" in ready["message"]
        assert set(status) == {"conditions", "observedGeneration"}
        # One of the same name in the right namespace is used, and has its own status.
        await register(hub, "cpu", api)
        await until_ready(hub, "cpu")
        works = (await hub.list(MANIFEST_WORK)).items
        assert [len(json.loads(summaries_text(work))) for work in works] == [1, 1]
        assert (await hub.get(DYNAMIC_SCORER, "cpu", TEAM))["status"] == status
        assert (await hub.list(EVENT, TEAM)).items == ()


async def test_one_that_another_controller_uses_is_left_alone() -> None:
    hub = await two_clusters()
    async with scoring_api() as api:
        await registered_elsewhere(hub, api, "theirs")
        body = {"status": {"healthStatus": "Active"}}
        await hub.patch(DYNAMIC_SCORER, "theirs", body, TEAM, subresource="status")
        spec = scorer(url=api.config_url)["spec"]
        stray = {"metadata": {"name": "stray", "namespace": TEAM}, "spec": spec}
        await hub.create(DYNAMIC_SCORER, stray)
        async with controlled(hub, resync_seconds=600):
            await eventually(partial(told, hub, "stray"))
        assert not await told(hub, "theirs")


async def test_without_the_right_to_see_others_the_controller_works_as_before() -> None:
    hub = await two_clusters()

    def own_namespace_only(call: Call) -> Fault | None:
        elsewhere = call.kind == DYNAMIC_SCORER and call.namespace is None
        return Fault(Forbidden("not in all namespaces")) if elsewhere else None

    async with scoring_api() as api, controlled(Faulty(hub, own_namespace_only)):
        await register(hub, "cpu", api)
        await until_ready(hub, "cpu")
