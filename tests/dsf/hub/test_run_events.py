"""The controller records transitions as Events, which `kubectl describe` shows."""

from functools import partial

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import DYNAMIC_SCORER, EVENT
from dsf.kube.port import Object
from tests.dsf.hub.builders import HUB
from tests.dsf.hub.scoring_api import ScoringAPI, scoring_api
from tests.dsf.hub.test_run import (
    asked_again,
    controlled,
    named,
    register,
    two_clusters,
    until_ready,
)
from tests.eventually import eventually


async def events(hub: EmbeddedHub, name: str) -> dict[tuple[str, str], Object]:
    """Return the events about a scorer by type and reason."""
    found = (await hub.list(EVENT, HUB)).items
    return {
        (event["type"], event["reason"]): event
        for event in found
        if event["involvedObject"]["name"] == name
    }


async def told(hub: EmbeddedHub, name: str, reason: str) -> bool:
    return any(reason == told for _, told in await events(hub, name))


async def test_what_breaks_and_what_is_mended_is_told_and_nothing_while_it_stays() -> None:
    hub = await two_clusters()
    async with scoring_api() as api, scoring_api(named("other")) as other, controlled(hub):
        await register(hub, "cpu", api)
        await register(hub, "other", other)
        await until_ready(hub, "cpu", "other")
        api.body = b"<html>"
        await eventually(partial(told, hub, "cpu", "NotJSON"))
        await asked_again(api)
        broken = (await events(hub, "cpu"))["Warning", "NotJSON"]
        assert broken["count"] == 1
        assert api.config_url in broken["message"]
        scorer = await hub.get(DYNAMIC_SCORER, "cpu", HUB)
        assert broken["involvedObject"]["uid"] == scorer["metadata"]["uid"]
        api.body = named("cpu_score").body
        await until_ready(hub, "cpu")
        await eventually(partial(told, hub, "cpu", "Synced"))
        assert not [type_ for type_, _ in await events(hub, "other") if type_ == "Warning"]


async def test_a_restart_tells_nothing_again() -> None:
    hub = await two_clusters()
    async with scoring_api(ScoringAPI(body=b"<html>")) as api:
        await register(hub, "cpu", api)
        async with controlled(hub):
            await eventually(partial(told, hub, "cpu", "NotJSON"))
        before = await events(hub, "cpu")
        async with controlled(hub):
            await asked_again(api)
        assert await events(hub, "cpu") == before
