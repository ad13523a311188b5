"""The result of a backtest: as text, and as a document for JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dsf.cli.text_table import TextTable
from dsf.scorer_kit.backtest.accuracy import Accuracy, Comparison
from dsf.scorer_kit.backtest.calibration import Interval, QuantileShare
from dsf.scorer_kit.backtest.outcome import Judged
from dsf.scorer_kit.backtest.regret import Choices, Regret

SIGNIFICANT = 0.05
"""A p-value below which a difference is called significant, as is usual."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What was replayed; times are in seconds, and `season` is 0 if the history has none.

    `part` is "all", "first" or "second": a half of the steps.
    """

    history: str
    series: int
    steps: int
    holes: int
    step: int
    window: int
    horizon: int
    season: int
    part: str
    requests: int
    every: int
    quantile: float


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """The figures of a backtest, and the outcomes that they are made of.

    `missing` counts series without a score at a step, `strange` results that belong to no series.
    """

    setting: Setting
    scorer: Accuracy
    comparisons: Sequence[Comparison]
    shares: Sequence[QuantileShare]
    intervals: Sequence[Interval]
    choices: Choices
    regrets: Sequence[Regret]
    missing: int
    strange: int
    outcomes: Sequence[Judged]

    def document(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "setting": asdict(self.setting),
            "scorer": asdict(self.scorer),
            "comparisons": [
                {
                    **asdict(one.simple),
                    "scorer": asdict(one.scorer),
                    "ratio": one.ratio,
                    "pValue": one.p_value,
                }
                for one in self.comparisons
            ],
            "quantiles": [asdict(one) for one in self.shares],
            "intervals": [asdict(one) for one in self.intervals],
            "choices": asdict(self.choices),
            "regret": [asdict(one) for one in self.regrets],
            "missingScores": self.missing,
            "strangeResults": self.strange,
        }

    def text(self) -> str:
        """Return the figures as tables with a sentence for what limits them."""
        parts = [self._heading(), self._errors()]
        if self.shares:
            parts.append(self._calibration())
        if self.regrets:
            parts.append(self._regret())
        return "\n\n".join([*parts, *self._limits()]) + "\n"

    def _heading(self) -> str:
        setting = self.setting
        season = f"{setting.season} s" if setting.season else "none found"
        part = "" if setting.part == "all" else f", over the {setting.part} half"
        return (
            f"{setting.history}: {setting.series} series of {setting.steps} steps of"
            f" {setting.step} s\nwindow {setting.window} s, horizon {setting.horizon} s,"
            f" season {season}; {setting.requests} requests, one every {setting.every} s{part}"
        )

    def _errors(self) -> str:
        quantile = self.setting.quantile
        error = "mean absolute error" if quantile == 1 / 2 else f"error as the {quantile} quantile"
        rows = [["scorer", f"{self.scorer.error:.4g}", _scaled(self.scorer.scaled), "", ""]]
        rows += [
            [
                one.simple.method,
                f"{one.simple.error:.4g}",
                _scaled(one.simple.scaled),
                _better(one.ratio),
                _significance(one.p_value),
            ]
            for one in self.comparisons
        ]
        columns = ["forecast", error, "scaled error", "the scorer is", "p-value"]
        return str(TextTable(columns, rows))

    def _calibration(self) -> str:
        below = [
            [f"{one.probability:g}", f"{one.below:.1%}", str(one.count)] for one in self.shares
        ]
        inside = [
            [f"{one.level:.0%}", f"{one.coverage:.1%}", f"{one.width:.4g}"]
            for one in self.intervals
        ]
        tables = [TextTable(["quantile", "truth at or below", "truths"], below)]
        if inside:
            tables.append(TextTable(["interval", "truth inside", "mean width"], inside))
        return "\n\n".join(map(str, tables))

    def _regret(self) -> str:
        which = "lowest" if self.choices.lowest else "highest"
        what = f"value of {self.choices.label}" if self.choices.label else "series"
        rows = [
            [one.method, f"{one.loss:.4g}", f"{one.best:.0%}" if one.best else "-"]
            for one in self.regrets
        ]
        columns = [f"choose the {what} with the {which}", "mean regret", "best choice"]
        return str(TextTable(columns, rows))

    def _limits(self) -> list[str]:
        said = {
            f"{self.setting.holes} steps of the history have no sample: they were not sent, and a"
            " horizon counts if half of its steps have one.": self.setting.holes,
            f"{self.missing} times a series had a truth and no score.": self.missing,
            f"{self.strange} results have the labels of no series: they count for nothing."
            "": self.strange,
        }
        return [sentence for sentence, count in said.items() if count]


def _scaled(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _better(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{1 - ratio:.0%} better" if ratio <= 1 else f"{ratio - 1:.0%} worse"


def _significance(p_value: float | None) -> str:
    if p_value is None:
        return "- (too little history)"
    shown = f"{p_value:.3f}" if p_value >= 1e-3 else "<0.001"  # noqa: PLR2004  # shown digits
    if p_value < SIGNIFICANT:
        return f"{shown} better"
    return f"{shown} worse" if p_value > 1 - SIGNIFICANT else f"{shown} not significant"
