"""How far the summaries have come on the hub: which works carry which of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dsf.hub.render import Rendered, parts_of
from dsf.hub.snapshot import Work


@dataclass(frozen=True, slots=True)
class Reach:
    """On how many managed clusters a scorer should be, and on how many works it is."""

    desired: int = 0
    in_place: int = 0


def reach(desired: Mapping[str, Rendered], works: Mapping[str, Work]) -> dict[str, Reach]:
    """Return the reach of each desired scorer by name, from what is desired and observed."""
    rendered = {each.text: each for each in desired.values()}
    pairs = Counter((each.text, _seen(works.get(name))) for name, each in desired.items())
    there = {text: parts_of(text) for text in {seen for wanted, seen in pairs if wanted != seen}}
    result: dict[str, Reach] = {}
    for (wanted, seen), count in pairs.items():
        for name, part in rendered[wanted].parts.items():
            before = result.get(name, Reach())
            arrived = wanted == seen or part in there[seen]
            result[name] = Reach(before.desired + count, before.in_place + arrived * count)
    return result


def _seen(work: Work | None) -> str:
    """Return what a work carries; nothing where others have changed it."""
    return "" if work is None or work.drifted else work.text
