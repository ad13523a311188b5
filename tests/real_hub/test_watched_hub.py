"""The optimizer's watched hub over a real kube-apiserver: it shows what the API server lists."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dsf.kube import kinds
from dsf.kube.access_reviews import UserInfo
from dsf.kube.client.connect import connect
from dsf.kube.port import list_objects
from optimizer.service.hub.read_age import measured_age
from optimizer.service.hub.watched_hub import WatchedHub
from tests.eventually import eventually

if TYPE_CHECKING:
    from dsf.kube.port import Lister, Object

    from .harness.hub import Hub

NAMESPACE, READER = "watched-hub", "watched-hub-reader"
SCORE, PLACEMENT = kinds.ADD_ON_PLACEMENT_SCORE, kinds.PLACEMENT
RBAC = "rbac.authorization.k8s.io/v1"


def test_what_was_written_is_read_from_memory_as_the_api_server_has_it(hub: Hub) -> None:
    asyncio.run(_written_and_read(hub))


async def _written_and_read(hub: Hub) -> None:
    async with connect(hub.admin_kubeconfig) as kube:
        await kube.create(kinds.NAMESPACE, {"metadata": {"name": NAMESPACE}})
        watched = WatchedHub(kube)
        running = asyncio.create_task(watched.run())
        await asyncio.sleep(0)
        watched.watch(SCORE, PLACEMENT)

        async def all_is_watched() -> bool:
            return watched.is_watched(SCORE) and watched.is_watched(PLACEMENT)

        await eventually(all_is_watched)
        writer = watched.noting(kube)
        for number in range(20):
            name = f"score-{number:02}"
            await writer.create(SCORE, {"metadata": {"name": name, "namespace": NAMESPACE}})
            entries = [{"name": f"app{at};all", "value": at - number} for at in range(30)]
            status = {"status": {"scores": entries, "validUntil": "2099-01-01T00:00:00Z"}}
            await writer.patch(SCORE, name, status, NAMESPACE, subresource="status")
            with measured_age() as age:
                found = await list_objects(watched, SCORE, NAMESPACE)
            assert age.seconds is not None, "it was read from memory"
            assert len(found) == number + 1
            assert found[-1]["status"]["scores"] == entries
        await _same(watched, kube)
        for number in range(20):
            await writer.delete(SCORE, f"score-{number:02}", NAMESPACE)
        assert await list_objects(watched, SCORE, NAMESPACE) == []
        await _same(watched, kube)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _same(watched: Lister, kube: Lister) -> None:
    for kind in (SCORE, PLACEMENT):
        assert _plain(await list_objects(watched, kind)) == _plain(await list_objects(kube, kind))


def _plain(objects: list[Object]) -> list[Object]:
    def metadata(obj: Object) -> Object:
        return {name: value for name, value in obj["metadata"].items() if name != "managedFields"}

    return [{**obj, "metadata": metadata(obj)} for obj in objects]


def test_who_may_list_and_not_watch_reads_the_api_server(hub: Hub) -> None:
    group = "cluster.open-cluster-management.io"
    rule = {"apiGroups": [group], "resources": [SCORE.plural], "verbs": ["list"]}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": READER}}
    hub.apply({**role, "rules": [rule]})
    bound = {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": READER}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": READER}
    hub.apply({**bound, "roleRef": reference, "subjects": [subject]})
    asyncio.run(_only_listed(hub))


async def _only_listed(hub: Hub) -> None:
    async with connect(hub.admin_kubeconfig) as kube:
        reader = kube.impersonating(UserInfo(READER, "", ()))
        watched = WatchedHub(reader)
        running = asyncio.create_task(watched.run())
        await asyncio.sleep(0)
        watched.watch(SCORE)
        for _ in range(20):
            await asyncio.sleep(0.1)
            found = await list_objects(watched, SCORE)
        assert not watched.is_watched(SCORE)
        assert _plain(found) == _plain(await list_objects(kube, SCORE))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
