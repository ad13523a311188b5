"""What an agent's rules did to the results of a round: counted, in words, and read back.

The agent writes the words into the condition Scored of an AddOnPlacementScore, which has no field
for counts. The hub reads the counts from it, so both use this module.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, get_args

from dsf.api.plural import counted
from dsf.api.scoring.dimension_format import PLACEHOLDERS

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
            rule: int(found[1]) for rule, words in _COUNTS.items() if (found := words.search(text))
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
        said = _REMARKS[rule].format(self.counts[rule])
        named = rule == "MissingLabel" and self.missing
        return f"{said} ({', '.join(map(str, self.missing))})" if named else said
