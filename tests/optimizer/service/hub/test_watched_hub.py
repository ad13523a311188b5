"""The watched hub answers as the API server does, says how old that is, and asks it otherwise."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dsf.api.names import ROOT_POLICY_LABEL
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, Gone, NotFound, Unreachable
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Lister, Object, list_objects
from dsf.runtime.backoff import Backoff
from optimizer.service.hub.read_age import measured_age
from optimizer.service.hub.watched_hub import WATCHED, WatchedHub
from tests.dsf.sim.builders import make
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.open_watches import OpenWatches
from tests.kube_wrappers.wrapper import Call, Wrapper
from tests.optimizer.hubs import hub_of

pytestmark = pytest.mark.virtual_time

SCORE, CLUSTER = kinds.ADD_ON_PLACEMENT_SCORE, kinds.MANAGED_CLUSTER


@asynccontextmanager
async def watching(kube: Kube, *watched: Kind, **options: Any) -> AsyncIterator[WatchedHub]:
    """Yield a hub once it has some kinds in memory, or does not get them."""
    hub = WatchedHub(kube, unwatched=Backoff(5.0, 10.0), **options)
    task = asyncio.create_task(hub.run())
    await asyncio.sleep(0)
    hub.watch(*watched)
    await asyncio.sleep(1)
    yield hub
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def plain(objects: list[Object]) -> list[Object]:
    """Objects without what the watched hub leaves out."""
    kept = []
    for obj in objects:
        metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
        kept.append({**obj, "metadata": metadata})
    return kept


async def paged(lister: Lister, kind: Kind, limit: int) -> list[Object]:
    found, token = list[Object](), ""
    while True:
        page = await lister.list(kind, limit=limit, continue_token=token)
        assert len(page.items) <= limit
        found += page.items
        token = page.continue_token
        if not token:
            return found


SELECTIONS: tuple[tuple[Kind, dict[str, Any]], ...] = (
    (CLUSTER, {}),
    (CLUSTER, {"labels": "name=worker01"}),
    (CLUSTER, {"labels": "name in (worker01, elsewhere),!missing"}),
    (CLUSTER, {"fields": "metadata.name!=worker01"}),
    (kinds.POLICY, {"labels": f"!{ROOT_POLICY_LABEL}"}),
    (kinds.POLICY, {"namespace": "default"}),
    (kinds.POLICY, {"namespace": "nowhere", "labels": f"!{ROOT_POLICY_LABEL}"}),
    (SCORE, {}),
    (SCORE, {"namespace": "worker02"}),
    (SCORE, {"fields": "metadata.name=performance"}),
    (kinds.PLACEMENT_PLAN, {}),
)


@pytest.mark.parametrize(("kind", "asked"), SELECTIONS)
async def test_it_lists_what_the_api_server_lists(kind: Kind, asked: dict[str, Any]) -> None:
    api = await hub_of()
    for name in ("a-b", "a"):  # etcd orders by namespace/name, and "-" is less than "/"
        await api.create(kinds.NAMESPACE, make(kinds.NAMESPACE, name))
        await api.create(SCORE, make(SCORE, "odd", name))
    async with watching(api, *WATCHED) as hub:
        assert plain(await list_objects(hub, kind, **asked)) == plain(
            await list_objects(api, kind, **asked)
        )


async def test_pages_follow_each_other_without_a_gap() -> None:
    api = await hub_of()
    async with watching(api, SCORE) as hub:
        whole = plain(await list_objects(api, SCORE))
        for limit in (1, 2, 3, 100):
            assert plain(await paged(hub, SCORE, limit)) == whole


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"name": "a;b", "value": -100}, {"name": "é", "value": 100}],
        [{"name": "a\0b", "value": 1}, {"name": "c", "value": 2}],
    ],
)
async def test_entries_are_listed_as_they_were_published(entries: list[Object]) -> None:
    api = await hub_of()
    await api.patch(
        SCORE,
        "performance",
        {"status": {"scores": entries, "validUntil": "2026-01-01T00:00:00Z"}},
        "worker01",
        subresource="status",
    )
    async with watching(api, SCORE) as hub:
        assert plain(await list_objects(hub, SCORE)) == plain(await list_objects(api, SCORE))


async def test_readers_share_one_watch_and_read_the_api_server_no_more() -> None:
    api = await hub_of()
    watches = OpenWatches(api)
    counting = Counting(watches)
    async with watching(counting, *WATCHED) as hub:
        counting.calls.clear()
        for kind, asked in SELECTIONS[:5]:
            await asyncio.gather(*(list_objects(hub, kind, **asked) for _ in range(3)))
        assert not counting.calls
        assert set(watches.most.values()) == {1}


async def test_a_kind_is_not_watched_until_somebody_reads_it() -> None:
    counting = Counting(await hub_of())
    async with watching(counting) as hub:
        told = list[tuple[str, str]]()
        hub.on_change(CLUSTER, told.append)
        await asyncio.sleep(1000)
        assert not counting.calls
        await hub.list(CLUSTER)
        await asyncio.sleep(1)
        assert set(told) == {("", "worker01"), ("", "worker02")}


async def test_each_change_is_told_once() -> None:
    api = await hub_of()
    async with watching(api, *WATCHED) as hub:
        told = list[tuple[Kind, tuple[str, str]]]()
        for kind in WATCHED:
            hub.on_change(kind, lambda key, kind=kind: told.append((kind, key)))
        await api.patch(CLUSTER, "worker01", {"metadata": {"labels": {"zone": "a"}}})
        status = {"status": {"scores": [{"name": "x", "value": 1}]}}
        await api.patch(SCORE, "performance", status, "worker02", subresource="status")
        policy = (await api.list(kinds.POLICY)).items[0]["metadata"]["name"]
        await api.delete(kinds.POLICY, policy, "default")
        await asyncio.sleep(1)
        assert sorted(told, key=str) == sorted(
            [
                (CLUSTER, ("", "worker01")),
                (SCORE, ("worker02", "performance")),
                (kinds.POLICY, ("default", policy)),
            ],
            key=str,
        )


async def test_the_next_reading_has_what_was_written_through_it() -> None:
    """Also where events come late: a reading waits for them, or lists again after a deletion."""
    api = await hub_of()
    async with watching(LateEvents(api), CLUSTER) as hub:
        writer = hub.noting(api)
        await writer.patch(CLUSTER, "worker01", {"metadata": {"labels": {"zone": "a"}}})
        found = await list_objects(hub, CLUSTER, labels="zone=a")
        assert [obj["metadata"]["name"] for obj in found] == ["worker01"]
        await writer.create(CLUSTER, make(CLUSTER, "worker03"))
        assert len(await list_objects(hub, CLUSTER)) == 3
        await writer.delete(CLUSTER, "worker03")
        assert len(await list_objects(hub, CLUSTER)) == 2
        await api.create(CLUSTER, make(CLUSTER, "worker04"))
        hub.wrote(CLUSTER, None)
        assert len(await list_objects(hub, CLUSTER)) == 3


async def test_of_two_writes_the_newer_is_waited_for_whichever_is_answered_first() -> None:
    api = await hub_of()
    async with watching(LateEvents(api), CLUSTER) as hub:
        written = [
            await api.patch(CLUSTER, "worker01", {"metadata": {"labels": {"zone": zone}}})
            for zone in ("a", "b")
        ]
        for obj in reversed(written):
            hub.wrote(CLUSTER, obj["metadata"]["resourceVersion"])
        assert await list_objects(hub, CLUSTER, labels="zone=b")


async def test_what_was_read_grows_old_while_an_answer_is_made_of_it() -> None:
    async with watching(await hub_of(), CLUSTER) as hub:
        with measured_age() as age:
            await list_objects(hub, CLUSTER)
        await asyncio.sleep(70)
        await hub.list(CLUSTER)
        assert age.seconds is not None
        assert age.seconds >= 70


class LateEvents(Wrapper):
    """An API server whose events take a second."""

    async def watch(self, kind: Kind, *args: Any, **options: Any) -> Any:
        async for event in super().watch(kind, *args, **options):
            await asyncio.sleep(1)
            yield event


class Away(Wrapper):
    """An API server that can be away, or serve a kind no more, or let nobody watch."""

    def __init__(self, inner: EmbeddedHub) -> None:
        super().__init__(inner)
        self.hub = inner
        self.error: Exception | None = None
        self.verbs: tuple[str, ...] = ("list", "watch")
        self.kind: Kind | None = None

    def before(self, call: Call) -> None:
        if self.error and call.verb in self.verbs and self.kind in (None, call.kind):
            raise self.error

    def leave(self, error: Exception, *verbs: str, kind: Kind | None = None) -> None:
        self.error, self.verbs, self.kind = error, verbs or self.verbs, kind
        self.hub.end_watches()


async def test_its_age_grows_while_the_api_server_is_away_until_nobody_is_told() -> None:
    api = Away(await hub_of())
    async with watching(api, CLUSTER, max_age_seconds=90) as hub:
        api.leave(Unreachable("connection refused"))
        await asyncio.sleep(60)
        with measured_age() as age:
            assert len(await list_objects(hub, CLUSTER)) == 2
        assert age.seconds is not None
        assert 60 <= age.seconds <= 62
        await asyncio.sleep(31)
        with pytest.raises(Unreachable):
            await list_objects(hub, CLUSTER)
        assert not hub.is_watched(CLUSTER)
        await api.hub.delete(CLUSTER, "worker01")
        api.error = None
        await asyncio.sleep(30)
        with measured_age() as age:
            assert len(await list_objects(hub, CLUSTER)) == 1
        assert age.seconds is not None
        assert age.seconds <= 30


async def test_bookmarks_alone_keep_it_young() -> None:
    api = Counting(await hub_of())
    async with watching(api, CLUSTER) as hub:
        api.calls.clear()
        for _ in range(100):
            await asyncio.sleep(37)
            with measured_age() as age:
                await list_objects(hub, CLUSTER)
            assert age.seconds is not None
            assert age.seconds <= 60
        assert api.calls["list", CLUSTER.resource] == 0


class Silent(Wrapper):
    """An API server whose watches hang: they bring nothing, and do not end."""

    async def watch(self, *args: Any, **options: Any) -> Any:
        async for event in super().watch(*args, **options):
            await asyncio.sleep(1e6)
            yield event


async def test_a_watch_that_hangs_is_noticed_and_opened_again() -> None:
    api = Counting(Silent(await hub_of()))
    async with watching(api, CLUSTER) as hub:
        await api.create(CLUSTER, make(CLUSTER, "worker03"))
        await asyncio.sleep(120)
        assert len(await list_objects(hub, CLUSTER)) == 3, "read from the API server"
        await asyncio.sleep(1)
        with measured_age() as age:
            assert len(await list_objects(hub, CLUSTER)) == 3
        assert age.seconds == pytest.approx(1, abs=0.5)
        assert api.calls["watch", CLUSTER.resource] == 2


async def test_it_follows_although_each_watch_is_cut_at_its_first_event() -> None:
    api = await hub_of()

    def cut(call: Call) -> Fault | None:
        broken = call.verb == "watch" and call.number % 3
        return Fault(Unreachable("connection reset"), "after") if broken else None

    async with watching(Faulty(api, cut), CLUSTER, SCORE) as hub:
        for number in range(20):
            await api.create(CLUSTER, make(CLUSTER, f"more-{number:02}"))
            await asyncio.sleep(3)
        await asyncio.sleep(60)
        assert plain(await list_objects(hub, CLUSTER)) == plain(await list_objects(api, CLUSTER))


async def test_a_watch_that_is_too_far_behind_lists_again() -> None:
    api = EmbeddedHub(history=5)
    behind = Away(api)
    async with watching(behind, CLUSTER) as hub:
        behind.leave(Unreachable("connection refused"))
        for number in range(30):
            await api.create(CLUSTER, make(CLUSTER, f"cluster-{number:02}"))
        behind.error = None
        await asyncio.sleep(60)
        assert len(await list_objects(hub, CLUSTER)) == 30


async def test_a_kind_may_be_removed_and_installed_later() -> None:
    api = await hub_of()
    crd = await api.get(kinds.CUSTOM_RESOURCE_DEFINITION, kinds.DYNAMIC_SCORER.resource)
    made = make(kinds.DYNAMIC_SCORER, "a", "open-cluster-management")
    spec = {"description": "d", "configURL": "http://a/config"}
    async with watching(api, kinds.DYNAMIC_SCORER, max_age_seconds=90) as hub:
        await api.create(kinds.DYNAMIC_SCORER, {**made, "spec": spec})
        await asyncio.sleep(1)
        assert len(await list_objects(hub, kinds.DYNAMIC_SCORER)) == 1
        await api.delete(kinds.CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"])
        await asyncio.sleep(60)
        with pytest.raises(NotFound):
            await list_objects(hub, kinds.DYNAMIC_SCORER)
        metadata = {"name": crd["metadata"]["name"]}
        await api.create(
            kinds.CUSTOM_RESOURCE_DEFINITION, {"metadata": metadata, "spec": crd["spec"]}
        )
        await api.create(kinds.DYNAMIC_SCORER, {**made, "spec": spec})
        assert len(await list_objects(hub, kinds.DYNAMIC_SCORER)) == 1
        await asyncio.sleep(60)
        assert hub.is_watched(kinds.DYNAMIC_SCORER)
        assert len(await list_objects(hub, kinds.DYNAMIC_SCORER)) == 1


async def test_what_may_not_be_watched_is_read_and_watched_once_it_may() -> None:
    api = Away(await hub_of())
    api.leave(Forbidden("managedclusters is forbidden"), "watch", kind=CLUSTER)
    counting = Counting(api)
    async with watching(counting, CLUSTER, SCORE) as hub:
        assert hub.is_watched(SCORE)
        with measured_age() as age:
            assert len(await list_objects(hub, CLUSTER)) == 2
        assert age.seconds is None
        counting.calls.clear()
        await asyncio.sleep(100)
        tries = counting.calls["list", CLUSTER.resource]
        assert 0 < tries <= 20, "a kind that can't be watched is not listed all the time"
        api.error = None
        await asyncio.sleep(20)
        assert hub.is_watched(CLUSTER)


async def test_ten_thousand_objects_may_be_deleted_at_once() -> None:
    api = EmbeddedHub()
    for number in range(10_000):
        await api.create(kinds.NAMESPACE, make(kinds.NAMESPACE, f"c{number}"))
        await api.create(SCORE, make(SCORE, "score", f"c{number}"))
    async with watching(api, SCORE) as hub:
        gone = list[tuple[str, str]]()
        hub.on_change(SCORE, gone.append)
        for number in range(10_000):
            await api.delete(SCORE, "score", f"c{number}")
        await asyncio.sleep(10)
        assert await list_objects(hub, SCORE) == []
        assert len(set(gone)) == 10_000


@pytest.mark.parametrize(("limit", "kept"), [(24, True), (23, False), (0, False)])
async def test_scores_of_more_entries_than_fit_are_read(limit: int, kept: bool) -> None:
    """The guide's hub has 4 scores of 6 entries."""
    api = await hub_of()
    async with watching(api, SCORE, score_entries=limit) as hub:
        assert hub.is_watched(SCORE) == kept
        assert plain(await list_objects(hub, SCORE)) == plain(await list_objects(api, SCORE))
        for cluster in ("worker01", "worker02"):
            more = [{"name": f"n{number}", "value": number} for number in range(7)]
            status = {"status": {"scores": more}}
            await api.patch(SCORE, "performance", status, cluster, subresource="status")
        await asyncio.sleep(1)
        assert not hub.is_watched(SCORE)
        assert plain(await list_objects(hub, SCORE)) == plain(await list_objects(api, SCORE))


async def test_scores_may_be_listed_again_although_both_lists_do_not_fit() -> None:
    api = await hub_of()
    async with watching(api, SCORE, score_entries=24) as hub:
        for _ in range(3):
            hub.wrote(SCORE, None)
            await list_objects(hub, SCORE)
        assert hub.is_watched(SCORE)


async def test_kinds_of_namespaces_are_watched_in_those_only() -> None:
    api = Counting(await hub_of())
    kind = kinds.MANAGED_CLUSTER_SET_BINDING
    async with watching(api, kind, namespaces=("default",)) as hub:
        api.calls.clear()
        with measured_age() as age:
            await list_objects(hub, kind, "default")
        assert age.seconds is not None
        with measured_age() as age:
            await list_objects(hub, kind, "elsewhere")
            await list_objects(hub, kind)
        assert age.seconds is None
        assert api.calls["list", kind.resource] == 2


async def test_a_list_whose_cache_is_lost_begins_again() -> None:
    api = Away(await hub_of())
    async with watching(api, SCORE, max_age_seconds=90) as hub:
        page = await hub.list(SCORE, limit=1)
        api.leave(Unreachable("connection refused"))
        await asyncio.sleep(100)
        with pytest.raises(Gone):
            await hub.list(SCORE, limit=1, continue_token=page.continue_token)
