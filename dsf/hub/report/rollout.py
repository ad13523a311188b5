"""How far the summaries have come on the hub: which works carry which of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dsf.hub.distribute.rendered_summaries import RenderedSummaries, parts_of
from dsf.hub.snapshot.summaries_work import SummariesWork


@dataclass(frozen=True, slots=True)
class Rollout:
    """On how many managed clusters a scorer should be, and on how many works it is."""

    desired: int = 0
    in_place: int = 0


def rollouts(
    desired: Mapping[str, RenderedSummaries], works: Mapping[str, SummariesWork]
) -> dict[str, Rollout]:
    """Return the reach of each desired scorer by name, from what is desired and observed.

    Only works that differ from what is desired are looked into.
    """
    wanted = Counter(each.names for each in desired.values())
    total = Counter[str]()
    for names, count in wanted.items():
        total.update(dict.fromkeys(names, count))
    return {
        name: Rollout(total[name], total[name] - late)
        for name, late in _late(desired, works, total)
    }


def _late(
    desired: Mapping[str, RenderedSummaries],
    works: Mapping[str, SummariesWork],
    total: Mapping[str, int],
) -> list[tuple[str, int]]:
    """Return by scorer how many works lack what is desired of it."""
    late = Counter[str]()
    differing = Counter(
        (each, seen)
        for cluster, each in desired.items()
        if (seen := _seen(works.get(cluster))) != each.text
    )
    there = {seen: parts_of(seen) for _, seen in differing}
    for (each, seen), count in differing.items():
        lacking = (name for name, part in each.parts().items() if part not in there[seen])
        late.update(dict.fromkeys(lacking, count))
    return [(name, late[name]) for name in total]


def _seen(work: SummariesWork | None) -> str:
    """Return what a work carries; nothing where others have changed it."""
    return "" if work is None or work.drifted else work.text
