"""After computed changes are applied on the embedded hub, no change is left."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.apply import WriteLimiter, apply
from dsf.kube.changes import Change, Create, Delete, Patch, diff
from dsf.kube.concurrency_limit import ConcurrencyBounds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import AlreadyExists, NotFound, Unreachable
from dsf.kube.kinds import CONFIG_MAP, NAMESPACE, Kind
from dsf.kube.port import Kube, Object, Subresource
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty, at
from tests.kube_wrappers.wrapper import Wrapper

short = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2"]), max_size=3)
metadata = st.fixed_dictionaries({}, optional={"labels": short, "annotations": short})
fields = st.fixed_dictionaries({}, optional={"data": short})
collections = st.dictionaries(st.sampled_from("xyz"), st.tuples(metadata, fields), max_size=3)
Collection = dict[str, tuple[dict[str, object], dict[str, object]]]


def config_maps(collection: Collection) -> list[Object]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "ns", **metadata},
            **fields,
        }
        for name, (metadata, fields) in collection.items()
    ]


@given(before=collections, after=collections)
def test_any_collection_leads_to_any_other_and_stays_there(
    before: Collection, after: Collection
) -> None:
    async def main() -> None:
        hub = EmbeddedHub()
        await hub.create(NAMESPACE, {"metadata": {"name": "ns"}})
        for desired in (config_maps(before), config_maps(after)):
            kube = Counting(hub)
            changes = diff(CONFIG_MAP, desired, (await hub.list(CONFIG_MAP, "ns")).items)
            outcomes = await apply(kube, changes)
            assert [outcome.error for outcome in outcomes] == [None] * len(changes)
            assert kube.writes == len(changes)
            observed = (await hub.list(CONFIG_MAP, "ns")).items
            assert diff(CONFIG_MAP, desired, observed) == []
            assert {obj["metadata"]["name"] for obj in observed} == {
                obj["metadata"]["name"] for obj in desired
            }

    asyncio.run(main())


class Overlapping(Wrapper):
    """Yields in every write, and keeps how many were under way at once, and their order."""

    def __init__(self, inner: Kube) -> None:
        super().__init__(inner)
        self.now = self.most = 0
        self.log: list[tuple[str, str, str]] = []

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        async with self._under_way("create", kind, obj["metadata"]["name"]):
            return await super().create(kind, obj)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: Subresource | None = None,
    ) -> Object:
        async with self._under_way("patch", kind, name):
            return await super().patch(kind, name, patch, namespace, subresource=subresource)

    @asynccontextmanager
    async def _under_way(self, verb: str, kind: Kind, name: str) -> AsyncIterator[None]:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(int(name[1:]) % 5):
            await asyncio.sleep(0)
        self.log.append((verb, kind.kind, name))
        yield
        self.now -= 1


async def test_many_at_a_time_but_one_object_in_order_and_one_kind_after_the_other() -> None:
    hub = EmbeddedHub()
    names = [f"n{number}" for number in range(20)]
    namespaces: list[Change] = [
        Create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in names
    ]
    maps: list[Change] = [
        change
        for name in names
        for change in (
            Create(CONFIG_MAP, {"metadata": {"name": name, "namespace": name}}),
            Patch(CONFIG_MAP, name, name, {"data": {"x": "1"}}),
            Patch(CONFIG_MAP, name, name, {"data": {"x": "2"}}),
        )
    ]
    last: list[Change] = [Patch(NAMESPACE, "n0", None, {"metadata": {"labels": {"last": "1"}}})]
    kube = Overlapping(hub)
    changes = [*namespaces, *maps, *last]
    limiter = WriteLimiter(ConcurrencyBounds(8, 8))
    outcomes = await apply(kube, changes, limiter=limiter)
    assert [outcome.change for outcome in outcomes] == changes
    assert [outcome.error for outcome in outcomes] == [None] * len(changes)
    assert kube.most == 8
    assert [kind for _, kind, _ in kube.log] == [change.kind.kind for change in changes]
    for name in names:
        assert (await hub.get(CONFIG_MAP, name, name))["data"] == {"x": "2"}


@pytest.fixture
async def hub() -> EmbeddedHub:
    """A hub with a namespace."""
    hub = EmbeddedHub()
    await hub.create(NAMESPACE, {"metadata": {"name": "ns"}})
    return hub


def named(name: str, **data: str) -> Object:
    return config_maps({name: ({}, {"data": data})})[0]


async def test_an_object_that_was_written_meanwhile_is_not_deleted(hub: EmbeddedHub) -> None:
    read = await hub.create(CONFIG_MAP, named("x", a="1"))
    uid, version = read["metadata"]["uid"], read["metadata"]["resourceVersion"]
    await hub.patch(CONFIG_MAP, "x", {"data": {"a": "2"}}, "ns")
    [stale] = await apply(hub, [Delete(CONFIG_MAP, "x", "ns", uid, version)])
    assert stale.error is None
    kept = await hub.get(CONFIG_MAP, "x", "ns")
    assert kept["data"] == {"a": "2"}
    await apply(hub, [Delete(CONFIG_MAP, "x", "ns", uid, kept["metadata"]["resourceVersion"])])
    assert (await hub.list(CONFIG_MAP, "ns")).items == ()


async def test_a_change_that_fails_holds_up_no_other(hub: EmbeddedHub) -> None:
    error = Unreachable("reset")
    kube = Faulty(hub, at({2: Fault(error)}))
    changes = [Create(CONFIG_MAP, named(name)) for name in "abc"]
    assert [outcome.error for outcome in await apply(kube, changes)] == [None, error, None]
    assert [obj["metadata"]["name"] for obj in (await hub.list(CONFIG_MAP, "ns")).items] == [*"ac"]


async def test_what_has_happened_already_is_no_error(hub: EmbeddedHub) -> None:
    for name in ("same", "successor", "theirs"):
        await hub.create(CONFIG_MAP, named(name, x="1"))
    before = await hub.list(CONFIG_MAP)
    outcomes = await apply(
        hub,
        [
            Create(CONFIG_MAP, named("same", x="1")),
            Create(CONFIG_MAP, named("theirs", x="ours")),
            Patch(CONFIG_MAP, "missing", "ns", {"data": {}}),
            Delete(CONFIG_MAP, "gone", "ns"),
            Delete(CONFIG_MAP, "successor", "ns", uid="of-its-predecessor"),
        ],
    )
    errors = [type(outcome.error) for outcome in outcomes]
    assert errors == [type(None), AlreadyExists, NotFound, type(None), type(None)]
    assert await hub.list(CONFIG_MAP) == before
