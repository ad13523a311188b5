"""What is asked about the truth of forecasts, and what the answer says entry by entry."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from dsf.agent.score.result_rules import ConversionSettings, entry_of
from dsf.agent.wire.bounded_json import decode_labels
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import Sample
from dsf.kube.redaction import NO_SPELLINGS

_SAMPLES = msgspec.json.Decoder(list[Sample])
_SAMPLE = msgspec.json.Decoder(Sample)


@dataclass(frozen=True, slots=True)
class TruthValues:
    """The truth of entries at the time of a scoring (`before`) and at the time it forecast."""

    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)


def truth_question(summary: ScorerSummary) -> ScorerSummary:
    """Return a summary with the truth's query as that of its (first) source, at one instant.

    Range queries would not do: the query frontends of Thanos and Mimir may move their times to
    multiples of the step. Raises ValueError if the scorer declares no forecast.
    """
    if summary.forecast is None:
        raise ValueError(f"scorer {summary.name} declares no forecast")
    update = {"source_query": summary.forecast.truth.query, "source_range": 0, "sources": ()}
    return summary.single_sources[0].model_copy(update=update)


def read_truth(series: Iterable[EncodedSeries], form: ConversionSettings) -> dict[str, float]:
    """Return the newest value of each series by the entry that its labels name.

    An entry that several series name has no truth: NaN.
    """
    found = dict[str, float]()
    for one in series:
        name = entry_of(decode_labels(msgspec.Raw(one.metric), NO_SPELLINGS), form)
        samples = [_SAMPLE.decode(one.values)] if one.instant else _SAMPLES.decode(one.values)
        if samples:
            found[name] = math.nan if name in found else _number(samples[-1][1])
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
