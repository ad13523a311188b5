"""The figures of a backtest, as text or for JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dsf.cli.output import TextTable
from dsf.scorer_kit.backtest.accuracy import (
    TIE,
    Accuracy,
    Choices,
    Comparison,
    Interval,
    QuantileShare,
    Regret,
    comparison,
    intervals,
    loss_of,
    quantile_shares,
    regrets,
    scorer_accuracy,
)
from dsf.scorer_kit.backtest.history import Answered, Judged, UnusableHistory, judged
from dsf.scorer_kit.backtest.plan import QUERY, BacktestPlan
from dsf.scorer_kit.backtest.plausibility import Copy, CopyVerdict, unanswered, verdict
from dsf.scorer_kit.backtest.simple_methods import found_seasons, seasonal_naive, simple_methods

SIGNIFICANT = 0.05
"""A p-value below which a difference is called significant, as is usual."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What was replayed; times are in seconds, and `season` is 0 if the history has none.

    `part` is "all", "first" or "second": a half of the steps. `truth` is "query" for
    `forecast.truth.query`, else "mean", "max", "min" or such as "p90", of the horizon.
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
    truth: str


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
    copies: Sequence[CopyVerdict] = ()

    @property
    def better_than_all(self) -> bool:
        """Whether the scorer has a smaller error than each simple method."""
        ratios = [one.ratio for one in self.comparisons]
        return bool(ratios) and all(ratio is not None and ratio < 1 for ratio in ratios)

    @property
    def implausible(self) -> str:
        """Why the scorer knows the history; empty if nothing says so."""
        called = [one.message for one in self.copies if one.implausible]
        return f"implausible forecasts: {called[0]}" if called else ""

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
            "copies": [asdict(one) for one in self.copies],
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
        query = setting.truth == QUERY
        truth = "forecast.truth.query" if query else f"{setting.truth} of the horizon"
        season = f"{setting.season} s" if setting.season else "none found"
        part = "" if setting.part == "all" else f", over the {setting.part} half"
        return (
            f"{setting.history}: {setting.series} series of {setting.steps} steps of"
            f" {setting.step} s\nwindow {setting.window} s, horizon {setting.horizon} s,"
            f" season {season}, truth: {truth}"
            f"\n{setting.requests} requests, one every {setting.every} s{part}"
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
        found = [sentence for sentence, count in said.items() if count]
        if not self.implausible:
            found += [f"In a copy of the history {one.message}." for one in self.copies]
        return found


def _scaled(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _better(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    if abs(ratio - 1) < TIE:
        return "as good"
    return f"{1 - ratio:.0%} better" if ratio <= 1 else f"{ratio - 1:.0%} worse"


def _significance(p_value: float | None) -> str:
    if p_value is None:
        return "- (too little history)"
    shown = f"{p_value:.3f}" if p_value >= 1e-3 else "<0.001"  # noqa: PLR2004  # shown digits
    if p_value < SIGNIFICANT:
        return f"{shown} better"
    return f"{shown} worse" if p_value > 1 - SIGNIFICANT else f"{shown} not significant"


def report(plan: BacktestPlan, answers: Sequence[Answered]) -> BacktestReport:
    """Return the figures of the answers. Raises UnusableHistory if none can be judged."""
    history, steps = plan.history, plan.steps
    outcomes = judged(answers, history.series, steps.ahead)
    strange = sum(answer.strange for answer in answers)
    if not outcomes:
        raise UnusableHistory(
            f"none of the {strange} results has the labels of a series: results need the labels"
            " of the series that they are of"
            if strange
            else "no score could be judged: there are no results, or no samples after the windows"
        )
    given = plan.season // history.step
    season, *longer = [given] if given else found_seasons(history) or [0]
    simple = simple_methods(steps, season or steps.window)
    methods = simple + [
        seasonal_naive(f"seasonal naive, {lag * history.step} s", steps, lag) for lag in longer
    ]
    every = answers[1].end - answers[0].end if len(answers) > 1 else 1
    loss = loss_of(plan.quantile)
    compared = (comparison(outcomes, one, loss, -(-steps.ahead // every)) for one in methods)
    truths = sum(
        one.came_true(answer.end, steps.ahead) is not None
        for answer in answers
        for one in history.series
    )
    return BacktestReport(
        setting=Setting(
            history=plan.name,
            series=len(history.series),
            steps=len(history),
            holes=history.holes,
            step=history.step,
            window=steps.window * history.step,
            horizon=steps.ahead * history.step,
            season=season * history.step,
            part=plan.part,
            requests=len(answers),
            every=every * history.step,
            quantile=plan.quantile,
            truth=plan.truth,
        ),
        scorer=scorer_accuracy(outcomes, loss),
        comparisons=[one for one in compared if one],
        shares=quantile_shares(outcomes, plan.quantile),
        intervals=intervals(outcomes),
        choices=plan.choices,
        regrets=regrets(outcomes, simple, plan.choices),
        missing=truths - len(outcomes),
        strange=strange,
        outcomes=outcomes,
    )


def with_copy(
    done: BacktestReport, plan: BacktestPlan, copy: Copy, answers: Sequence[Answered] | str
) -> BacktestReport:
    """Return a report with what the answers to a copy of its history tell, or why none came."""
    if isinstance(answers, str):
        return replace(done, copies=[*done.copies, unanswered(copy, answers)])
    steps = plan.steps
    methods = simple_methods(steps, done.setting.season // plan.history.step or steps.window)
    found = verdict(copy, answers, done.outcomes, methods, loss_of(plan.quantile), steps.ahead)
    return replace(done, copies=[*done.copies, found])
