"""Scores are read page by page, also if pages are empty and if continue tokens expire."""

from collections.abc import Collection
from typing import Any

import pytest

from dsf.kube.errors import Gone
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, Kind
from dsf.kube.port import Kube, ObjectList
from optimizer.domain.settings import OptimizerSettings
from optimizer.plan.plan import Plan
from optimizer.service.hub.score_pages import score_pages
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.observation import Observation
from optimizer.wire.request_problem import RequestProblem
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call, Wrapper
from tests.optimizer.build import NOW, guide, managed_cluster, request, score
from tests.optimizer.hubs import hub_of

CLUSTERS = tuple(f"c{index:02}" for index in range(25))


async def pages(kube: Kube, names: Collection[str] = ()) -> list[list[tuple[str, str]]]:
    """The names and clusters of each page."""
    return [
        [(obj["metadata"]["name"], obj["metadata"]["namespace"]) for obj in page]
        async for page in score_pages(kube, names)
    ]


class Old:
    """Says that a token is too old, for these of the pages of scores, counted from 1."""

    def __init__(self, *which: int) -> None:
        self._which = which
        self._lists = 0

    def __call__(self, call: Call) -> Fault | None:
        if call.kind != ADD_ON_PLACEMENT_SCORE:
            return None
        self._lists += 1
        return Fault(Gone("too old")) if (self._lists + 1) // 2 in self._which else None


async def test_pages_grow_where_objects_are_small() -> None:
    found = await pages(await hub_of(guide(CLUSTERS)))
    assert [len(page) for page in found] == [10, 40]
    assert len({item for page in found for item in page}) == 50


async def test_pages_of_small_objects_leave_room_for_large_ones_behind_them() -> None:
    names = [f"c{index:03}" for index in range(170)]
    empty = tuple(score(name, "performance", {}) for name in names)
    clusters = tuple(managed_cluster(name) for name in names)
    hub = await hub_of(Observation(managed_clusters=clusters, scores=empty))
    assert [len(page) for page in await pages(hub)] == [10, 40, 100, 20]


async def test_few_names_are_listed_one_by_one_and_no_others() -> None:
    hub = await hub_of(guide(CLUSTERS))
    found = await pages(hub, {"power", "nobody"})
    assert [[name for name, _ in page] for page in found] == [[], ["power"] * 10, ["power"] * 15]
    many = await pages(hub, {"power", "a", "b", "c"})
    assert sum(map(len, many)) == 50


async def test_pages_shrink_where_objects_are_large() -> None:
    hub = await hub_of(guide(CLUSTERS[:12]))
    found = [len(page) async for page in score_pages(hub, entries=20)]  # of objects with 6
    assert found == [10, 3, 3, 3, 3, 2]


async def test_where_a_token_is_too_old_all_is_read_again_and_counts_once() -> None:
    hub = await hub_of(guide(CLUSTERS))
    asked = request("performance", CLUSTERS)
    plain = await Optimizer(hub, now=lambda: NOW).plan(asked)
    again = await Optimizer(Faulty(hub, Old(2)), now=lambda: NOW).plan(asked)
    assert isinstance(plain, Plan)
    assert isinstance(again, Plan)
    assert again.digest == plain.digest
    with pytest.raises(Gone):
        await Optimizer(Faulty(hub, Old(2, 4, 6)), now=lambda: NOW).plan(asked)


async def test_entries_that_are_listed_again_are_counted_once() -> None:
    hub = await hub_of(guide(CLUSTERS))
    just = OptimizerSettings(max_listed=25 * 6)
    plain = await Optimizer(hub, just, now=lambda: NOW).scores(name="power")
    again = await Optimizer(Faulty(hub, Old(2)), just, now=lambda: NOW).scores(name="power")
    assert not isinstance(again, RequestProblem)
    assert again == plain
    assert len(again) == 25


class Restarted(Wrapper):
    """Says once that the token of the second page of scores is too old: a score was deleted."""

    def __init__(self, inner: Kube, cluster: str) -> None:
        super().__init__(inner)
        self._left = [None, cluster]

    async def list(self, kind: Kind, namespace: str | None = None, **asked: Any) -> ObjectList:
        deleted = self._left.pop(0) if kind == ADD_ON_PLACEMENT_SCORE and self._left else None
        if deleted:
            await self._inner.delete(kind, "performance", deleted)
            raise Gone("too old")
        return await self._inner.list(kind, namespace, **asked)


async def test_a_score_that_is_gone_when_all_is_read_again_is_forgotten() -> None:
    asked = request("performance", CLUSTERS)
    hub = await hub_of(guide(CLUSTERS))
    plan = await Optimizer(Restarted(hub, "c03"), now=lambda: NOW).plan(asked)
    assert isinstance(plan, Plan)
    assert [(issue.reason, issue.cluster) for issue in plan.issues] == [
        ("MissingScoreObject", "c03")
    ]
    hub = await hub_of(guide(CLUSTERS))
    found = await Optimizer(Restarted(hub, "c03"), now=lambda: NOW).scores(name="performance")
    assert not isinstance(found, RequestProblem)
    assert "c03" not in {item.cluster for item in found}


async def test_scores_of_a_request_that_is_too_large_are_not_read() -> None:
    # The first list is that of the resource usage scores.
    hub = Faulty(await hub_of(guide(CLUSTERS)), Old(*range(2, 9)))
    service = Optimizer(hub, OptimizerSettings(max_places=1), now=lambda: NOW)
    refused = await service.plan(request("performance", CLUSTERS))
    assert isinstance(refused, RequestProblem)
    assert refused.reason == "TooManyPlaces"
