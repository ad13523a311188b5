"""How far the ManifestWorks on the hub already carry each scorer's current summary."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dsf.hub.distribute.rendered_summaries import RenderedSummaries, parts_of
from dsf.hub.snapshot.summaries_work import SummariesWork


@dataclass(frozen=True, slots=True)
class Rollout:
    """How many ManifestWorks should carry a scorer's current summary, and how many do."""

    desired: int = 0
    in_place: int = 0


def rollouts(
    desired: Mapping[str, RenderedSummaries], works: Mapping[str, SummariesWork]
) -> dict[str, Rollout]:
    """Return the rollout of each desired scorer by name; both arguments are by managed cluster.

    Compares parts only in works that differ from what is desired.
    """
    total = Counter[str]()
    for names, count in Counter(each.names for each in desired.values()).items():
        total.update(dict.fromkeys(names, count))
    missing = _missing(desired, works)
    return {name: Rollout(count, count - missing[name]) for name, count in total.items()}


def _missing(
    desired: Mapping[str, RenderedSummaries], works: Mapping[str, SummariesWork]
) -> Counter[str]:
    """Return by scorer how many works lack its current summary."""
    differing = Counter(
        (each, text)
        for cluster, each in desired.items()
        if (text := _text(works.get(cluster))) != each.text
    )
    present = {text: parts_of(text) for _, text in differing}
    missing = Counter[str]()
    for (each, text), count in differing.items():
        lacking = (name for name, part in each.parts().items() if part not in present[text])
        missing.update(dict.fromkeys(lacking, count))
    return missing


def _text(work: SummariesWork | None) -> str:
    """Return what a work carries; empty if somebody else has changed it."""
    return "" if work is None or work.drifted else work.text
