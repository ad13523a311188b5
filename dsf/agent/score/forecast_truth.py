"""What is asked about the truth of forecasts, and what the answer says entry by entry."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from dsf.agent.score.result_rules import ConversionSettings, entry_of
from dsf.agent.wire.bounded_json import decode_labels
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.agent.wire.foreign_text import NO_SECRETS
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import Sample

_SAMPLES = msgspec.json.Decoder(list[Sample])
_SAME_TIME = 0.5


@dataclass(frozen=True, slots=True)
class TruthValues:
    """The truth of entries at the time of a scoring (`before`) and at the time it forecast."""

    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)


def truth_question(summary: ScorerSummary) -> ScorerSummary:
    """Return a summary whose source query is that of the truth: two samples, a horizon apart.

    Raises ValueError if the scorer declares no forecast.
    """
    if summary.forecast is None:
        raise ValueError(f"scorer {summary.name} declares no forecast")
    path, mark, parameters = summary.source_endpoint.partition("?")
    if path.endswith("/query"):
        path = f"{path}_range"  # a scorer of instant values asks the other path
    horizon = summary.forecast.horizon
    return summary.model_copy(
        update={
            "source_endpoint": f"{path}{mark}{parameters}",
            "source_query": summary.forecast.truth.query,
            "source_range": horizon,
            "source_step": horizon,
        }
    )


def read_truth(
    series: Iterable[EncodedSeries], form: ConversionSettings, *, before: float, after: float
) -> TruthValues:
    """Return the values at two times (unix seconds) by the entry that the labels of a series name.

    An entry that several series name has no truth: NaN.
    """
    found, named = TruthValues(), set[str]()
    for one in series:
        name = entry_of(decode_labels(msgspec.Raw(one.metric), NO_SECRETS), form)
        samples = () if one.instant else _SAMPLES.decode(one.values)
        for time, text in samples:
            for values, wanted in ((found.before, before), (found.after, after)):
                if abs(time - wanted) < _SAME_TIME:
                    values[name] = math.nan if name in named else _number(text)
        named.add(name)
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
