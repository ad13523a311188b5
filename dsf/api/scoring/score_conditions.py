"""Conditions of an AddOnPlacementScore that carry figures in their words, and are read back.

The object has no field for figures. The agent writes what its rules did to the results of a round
into the condition Scored, and how past forecasts fared into the condition Trusted. `Adjustments`
and `read_record` read them: the agent after a restart, the hub and the optimizer.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self, get_args

from dsf.api.conditions import Condition, conditions_of, find
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.api.times import read_time, rfc3339
from dsf.api.untrusted_text import counted

Rule = Literal[
    "NotFinite",
    "OutsideDeclaredRange",
    "LabelCut",
    "MissingLabel",
    "Duplicate",
    "OutOfRange",
    "SeriesLimit",
    "EntryCut",
]
RULES: tuple[Rule, ...] = get_args(Rule)

LABEL_LIMIT = 256
"""Characters of one label: the contract of the gauge `dynamic_score`."""

_REMARKS: Mapping[Rule, str] = {
    "NotFinite": "dropped {} scores that are not finite",
    "OutsideDeclaredRange": "{} scores are outside the declared range",
    "LabelCut": f"cut labels of {{}} results to {LABEL_LIMIT} characters",
    "MissingLabel": "{} results lack a label that scoreDimensionFormat names",
    "Duplicate": "dropped {} results with the name of an earlier one",
    "OutOfRange": "clamped {} scores to -100..100",
    "SeriesLimit": "left out {} label sets beyond the limit of a score: return fewer results",
    "EntryCut": "left out {} entries that do not fit into one object",
}

_NUMBER = r"(\d{1,9})"
_TOTALS = re.compile(rf"{_NUMBER} results? became {_NUMBER} entr(?:y|ies): ")
_COUNTS: Mapping[Rule, re.Pattern[str]] = {
    rule: re.compile(re.escape(remark).replace(r"\{\}", _NUMBER))
    for rule, remark in _REMARKS.items()
}
_MISSING = re.compile(r"scoreDimensionFormat names \(([A-Za-z, ]{1,200})\)")


@dataclass(frozen=True, slots=True)
class Adjustments:
    """For each rule how many results it affected; of how many, and how many entries were left.

    `results` is None where an older agent does not say it. `missing` are the labels that results
    lacked.
    """

    counts: Mapping[Rule, int] = field(default_factory=dict)
    results: int | None = None
    entries: int = 0
    missing: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return what a text of this module says; None if it says nothing of the kind."""
        counts = {
            rule: int(count[1]) for rule, words in _COUNTS.items() if (count := words.search(text))
        }
        if not counts:
            return None
        totals, missing = _TOTALS.match(text), _MISSING.search(text)
        named = missing[1].split(", ") if missing else ()
        return cls(
            counts,
            int(totals[1]) if totals else None,
            int(totals[2]) if totals else 0,
            tuple(label for label in named if label in PLACEHOLDERS),
        )

    def __str__(self) -> str:
        """Return it on one line; the counts in the order of the rules."""
        remarks = [self._remark(rule) for rule in RULES if self.counts.get(rule)]
        if self.results is None:
            return "; ".join(map(str, remarks))
        became = "1 entry" if self.entries == 1 else f"{self.entries} entries"
        totals = f"{counted(self.results, 'result')} became {became}"
        return f"{totals}: {'; '.join(map(str, remarks))}"

    def _remark(self, rule: Rule) -> str:
        remark = _REMARKS[rule].format(self.counts[rule])
        named = rule == "MissingLabel" and self.missing
        return f"{remark} ({', '.join(map(str, self.missing))})" if named else remark


TRUSTED = "Trusted"
BETTER, NO_BETTER = "BetterThanLastValue", "NoBetterThanLastValue"
INSUFFICIENT, NO_TRUTH = "InsufficientEvidence", "TruthUnavailable"

HALF_LIFE = 6.0
"""Horizons after which an error counts half.

A perfect scorer that goes mad has trust 0 after about seven horizons: one until its first mad
forecast is judged, and six until such forecasts are half of the evidence.
"""

MIN_EVIDENCE = 2.0
"""Horizons of evidence from which trust is known: fewer could be luck."""

MAX_ERROR = 1000.0
"""The largest error that is written; the trust is 0 from 1 on."""

_RECORD = re.compile(
    r"trust (?:unknown|[01]\.\d{3}); error of forecasts (?P<horizon>\d{1,6}) s ahead:"
    r" (?P<error>\d{1,4}\.\d{3}) times last value's;"
    r" evidence: (?P<evidence>\d{1,3}\.\d\d) horizons until (?P<until>[0-9TZ:-]{20})"
)
"""The beginning of a message: what follows may quote others."""


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """The errors of a scorer's forecasts, compared with those of the last value.

    `share`: the weighted mean, over the judged rounds, of the scorer's error divided by the sum of
    both errors: 0 is perfect, 0.5 as good as the last value. `evidence`: the sum of the weights, in
    horizons; it halves every `HALF_LIFE` horizons. `until`: the newest time for which forecasts
    were judged, in unix seconds. `horizon` is in seconds.
    """

    horizon: int
    share: float = 0.0
    evidence: float = 0.0
    until: float = -math.inf

    @property
    def error(self) -> float:
        """The scorer's error divided by that of the last value; infinite if only it erred."""
        return self.share / (1 - self.share) if self.share < 1 else math.inf

    @property
    def trust(self) -> float | None:
        """max(0, 1 - error), from 0 to 1; None unless there is enough evidence."""
        return max(0.0, 1 - self.error) if self.evidence >= MIN_EVIDENCE else None

    def aged(self, now: float) -> Self:
        """Return the record with the evidence that is left at `now` (unix seconds)."""
        spent = max(0.0, now - self.until) / (self.horizon * HALF_LIFE)
        return replace(self, evidence=self.evidence * 2**-spent if self.evidence else 0.0)


def trust_condition(record: TrackRecord, now: float, unread: str = "") -> Condition:
    """Return the condition `Trusted` of a record at `now` (unix seconds).

    The message has the evidence of the newest judgement; the status goes by what is left of it.
    `unread` says why the truth could not be read or compared lately; empty if it could.
    """
    trust = record.aged(now).trust
    message = _summary(record, trust)
    if unread:
        message = f"{message}; the truth could not be compared: {unread}"
    if trust is None:
        return Condition(TRUSTED, "Unknown", NO_TRUTH if unread else INSUFFICIENT, message)
    if trust == 0:
        return Condition(TRUSTED, "False", NO_BETTER, message)
    return Condition(TRUSTED, "True", BETTER, message)


def _summary(record: TrackRecord, trust: float | None) -> str:
    if not record.evidence:
        return f"trust unknown: no forecast {record.horizon} s ahead has been judged yet"
    known = "unknown" if trust is None else f"{trust:.3f}"
    until = rfc3339(datetime.fromtimestamp(record.until, UTC))
    return (
        f"trust {known}; error of forecasts {record.horizon} s ahead:"
        f" {min(record.error, MAX_ERROR):.3f} times last value's;"
        f" evidence: {record.evidence:.2f} horizons until {until}"
    )


def read_record(obj: Mapping[str, Any]) -> TrackRecord | None:
    """Return the record in the conditions of an AddOnPlacementScore; None if it has none."""
    condition = find(conditions_of(obj), TRUSTED) or {}
    record = _RECORD.match(str(condition.get("message") or ""))
    until = read_time(record["until"]) if record else None
    if record is None or until is None or not int(record["horizon"]):
        return None
    error = float(record["error"])
    return TrackRecord(
        horizon=int(record["horizon"]),
        share=error / (1 + error),
        evidence=float(record["evidence"]),
        until=until.timestamp(),
    )


def read_trust(obj: Mapping[str, Any]) -> float | None:
    """Return the trust, from 0 to 1, that an AddOnPlacementScore tells; None if it is unknown."""
    condition = find(conditions_of(obj), TRUSTED) or {}
    record = read_record(obj) if condition.get("status") in {"True", "False"} else None
    return max(0.0, 1 - record.error) if record else None
