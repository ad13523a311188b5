"""Which scores decide for the Workloads of a LocalQueue: an annotation, and published scores."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, NamedTuple

from pydantic import AliasChoices, ConfigDict, Field

from dsf.api.names import GROUP, score_object_name
from dsf.api.pod_spec import read_part
from dsf.api.scoring.placement_scores import valid_until
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.api.wire_model import WireModel
from dsf.kube.port import Object
from dsf.kube.yaml_documents import parsed_json

PREFERENCES_ANNOTATION = f"{GROUP}/preferences"
"""The annotation of a LocalQueue: a JSON list of scores and their weights."""

MOST_PREFERENCES = 20


class QueuePreference(WireModel):
    """A score of clusters, as in a request: it is maximised, or minimised with `invert`."""

    model_config = ConfigDict(extra="forbid")

    score: Annotated[
        str,
        Field(
            min_length=1,
            max_length=253,
            validation_alias=AliasChoices("addonPlacementScore", "addOnPlacementScore"),
        ),
    ]
    entry: str = ""
    weight: float = Field(1.0, ge=0, le=1e6)
    invert: bool = False


class _Preferences(WireModel):
    preferences: tuple[QueuePreference, ...] = Field(min_length=1, max_length=MOST_PREFERENCES)


Preferences = tuple[QueuePreference, ...] | InvalidInput | None
"""What a LocalQueue prefers; None: it does not say."""


def read_preferences(queue: Object) -> Preferences:
    """Return the preferences of a LocalQueue, or what is wrong with its annotation."""
    text = (queue["metadata"].get("annotations") or {}).get(PREFERENCES_ANNOTATION)
    if text is None:
        return None
    try:
        parsed = parsed_json(text)
    except (ValueError, RecursionError) as error:
        return InvalidInput("Unreadable", f"it is no JSON: {error}")
    read = read_part(_Preferences, {"preferences": parsed}, "")
    return read if isinstance(read, InvalidInput) else read.preferences


class ScoreEntries(NamedTuple):
    """The entries of an AddOnPlacementScore by name; `until` None: valid without end."""

    entries: Mapping[str, int]
    until: datetime | None


def read_score(obj: Object) -> ScoreEntries:
    """Return the entries of an AddOnPlacementScore."""
    entries = (obj.get("status") or {}).get("scores") or ()
    return ScoreEntries({item["name"]: item["value"] for item in entries}, valid_until(obj))


FindScore = Callable[[str, str], ScoreEntries | None]
"""Returns the AddOnPlacementScore of a managed cluster with a name, or None."""


def weighted_score(
    cluster: str, preferences: tuple[QueuePreference, ...], find: FindScore, now: datetime
) -> float | str:
    """Return the sum of weight x value of a managed cluster's scores, or why it has none.

    The value of a score with `invert` is negative. A cluster that lacks one of the scores has none.
    """
    total = 0.0
    for each in preferences:
        name = score_object_name(each.score)
        found = find(cluster, name)
        if found is None:
            return f"no AddOnPlacementScore {UntrustedName(name)}"
        if found.until is not None and found.until <= now:
            return f"AddOnPlacementScore {UntrustedName(name)} expired at {rfc3339(found.until)}"
        value = found.entries.get(each.entry)
        if not each.entry and len(found.entries) == 1:
            value = next(iter(found.entries.values()))
        if value is None:
            asked = f"no entry {UntrustedName(each.entry)}" if each.entry else "not just one entry"
            return f"AddOnPlacementScore {UntrustedName(name)} has {asked}"
        total += each.weight * (-value if each.invert else value)
    return total
