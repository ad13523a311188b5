"""Which summaries each managed cluster gets, and how far they have come."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from dsf.api.invalid import Invalid
from dsf.api.scoring_config import DynamicScoringConfigSpec, Mask
from dsf.api.summary import ScorerSummary, dump_summaries, load_summaries
from dsf.hub.registration import is_leaving, problem
from dsf.hub.snapshot import Object
from dsf.hub.work import summaries_text


@dataclass(frozen=True, slots=True)
class Reach:
    """On how many managed clusters a scorer should be, and on how many works it is."""

    desired: int = 0
    in_place: int = 0


def masks(config: Object) -> tuple[Mask, ...] | Invalid:
    """Return the masks of a DynamicScoringConfig."""
    try:
        return DynamicScoringConfigSpec.model_validate(config.get("spec") or {}).all_masks
    except ValidationError as error:
        return Invalid("InvalidSpec", f"spec: {problem(error)}")


def accepted(clusters: Iterable[Object]) -> list[str]:
    """Return the names of the managed clusters that the hub accepts and keeps."""
    return sorted(
        str(cluster["metadata"]["name"])
        for cluster in clusters
        if (cluster.get("spec") or {}).get("hubAcceptsClient") and not is_leaving(cluster)
    )


def texts(
    summaries: Sequence[ScorerSummary], clusters: Iterable[str], masks: Iterable[Mask]
) -> dict[str, str]:
    """Return `data.summaries` by managed cluster; clusters with equal masks share one text."""
    known = {summary.score_name for summary in summaries}
    masked: dict[str, set[str]] = defaultdict(set)
    for mask in masks:
        if mask.score_name in known:
            masked[mask.cluster_name].add(mask.score_name)
    made: dict[frozenset[str], str] = {}
    result = {}
    for cluster in clusters:
        hidden = frozenset(masked.get(cluster, ()))
        if hidden not in made:
            made[hidden] = dump_summaries(s for s in summaries if s.score_name not in hidden)
        result[cluster] = made[hidden]
    return result


def reach(desired: Mapping[str, str], works: Iterable[Object]) -> dict[str, Reach]:
    """Return the reach of each desired scorer by name, from the texts desired and observed."""
    observed = {str(work["metadata"]["namespace"]): summaries_text(work) for work in works}
    pairs = Counter((text, observed.get(cluster, "")) for cluster, text in desired.items())
    read = {text: _by_name(text) for pair in pairs for text in pair}
    result: dict[str, Reach] = {}
    for (wanted, seen), count in pairs.items():
        for name, summary in read[wanted].items():
            before = result.get(name, Reach())
            there = count if read[seen].get(name) == summary else 0
            result[name] = Reach(before.desired + count, before.in_place + there)
    return result


def unmatched(
    masks: Sequence[Mask], clusters: Iterable[Object], score_names: Iterable[str]
) -> list[str]:
    """Return, for each mask that can match nothing, which mask it is and why."""
    known = {str(cluster["metadata"]["name"]) for cluster in clusters}
    scores = set(score_names)
    result = []
    for mask in masks:
        if mask.cluster_name not in known:
            result.append(f"no managed cluster is named {mask.cluster_name!r}")
        elif mask.score_name not in scores:
            result.append(f"no score is named {mask.score_name!r}")
    return list(dict.fromkeys(result))


def _by_name(text: str) -> dict[str, ScorerSummary]:
    summaries = load_summaries(text) if text else ()
    return {} if isinstance(summaries, Invalid) else {item.name: item for item in summaries}
