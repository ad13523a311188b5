"""Scores are read page by page, whatever the pages hold and whenever a token grows too old."""

from collections.abc import Collection

import pytest

from dsf.kube.errors import Gone
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Kube
from dsf.kube.wrappers import Call, Fault, Faulty
from optimizer.observe import score_pages
from optimizer.plan import Plan
from optimizer.service import Optimizer
from tests.optimizer.build import NOW, guide, request
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
        await pages(Faulty(hub, Old(2, 4, 6)))
