"""What a backtest does with a history: its steps, and what the scores are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from dsf.scorer_kit.backtest.accuracy import Choices
from dsf.scorer_kit.backtest.history import (
    History,
    PastSeries,
    SeriesIndex,
    UnusableHistory,
    Values,
)
from dsf.scorer_kit.backtest.simple_methods import Horizon

MEAN, QUERY = "mean", "query"
"""The mean of the horizon; the answer to `forecast.truth.query` at its end."""


def of_horizon(history: History, truth: str, ahead: int) -> History:
    """Return a history whose truth is "max", "min" or a quantile such as "p90" of `ahead` steps.

    A step has one if half of the horizon that ends with it has samples.
    """
    if truth == MEAN:
        return history
    series = tuple(replace(one, truth=_rolled(one.values, truth, ahead)) for one in history.series)
    return replace(history, series=series)


def _rolled(values: Values, truth: str, ahead: int) -> Values:
    column, least = pl.Series(values, dtype=pl.Float64), -(-ahead // 2)
    if truth == "max":
        found = column.rolling_max(ahead, min_samples=least)
    elif truth == "min":
        found = column.rolling_min(ahead, min_samples=least)
    else:
        share = float(truth[1:]) / 100
        found = column.rolling_quantile(share, "linear", window_size=ahead, min_samples=least)
    return found.to_list()


def of_query(series: Sequence[PastSeries], answers: Sequence[PastSeries]) -> tuple[PastSeries, ...]:
    """Return series with the answers to the query of the truth, which have the same steps.

    An answer is of the series with its labels, or with those that name an entry. Raises
    UnusableHistory if there is none, if none is of a series, or if two are of one.
    """
    if not answers:
        raise UnusableHistory(
            "forecast.truth.query has no series in the history: correct it, or set --truth mean"
        )
    index = SeriesIndex(series)
    found = dict[frozenset[tuple[str, str]], Values]()
    for one in answers:
        labels = index.find(one.metric)
        if labels in found:
            raise UnusableHistory(
                "two series of forecast.truth.query are of one series: add them up"
            )
        if labels is not None:
            found[labels] = one.values
    if not found:
        raise UnusableHistory(
            f"none of the {len(answers)} series of forecast.truth.query has the labels of a series"
            " that the scorer gets: give both the same, or set --truth mean"
        )
    none = (None,) * max(len(one.values) for one in series)
    return tuple(replace(one, truth=found.get(one.labels, none)) for one in series)


PARTS = ("all", "first", "second")
"""Parts of the steps that a backtest can use: all, or a half of them."""


@dataclass(frozen=True, slots=True)
class BacktestPlan:
    """What a backtest does with a history; window, horizon and season are in seconds.

    `season` is 0 to look for one. `requests` is the most that are sent. `quantile` is the one that
    the scores are of the truth.
    """

    name: str
    history: History
    window: int
    horizon: int
    choices: Choices
    season: int = 0
    requests: int = 300
    part: str = "all"
    quantile: float = 0.5
    truth: str = MEAN

    @property
    def steps(self) -> Horizon:
        """The window and the horizon in steps, at least 1 each."""
        step = self.history.step
        return Horizon(max(self.window // step, 1), max(round(self.horizon / step), 1))

    def judged_by(self, truth: str | None) -> "BacktestPlan":
        """Return the plan with a truth; by default the history's own, else the mean."""
        if self.history.measured:
            return replace(self, truth=QUERY)
        history = of_horizon(self.history, truth or MEAN, self.steps.ahead)
        return replace(self, history=history, truth=truth or MEAN)

    def ends(self) -> Sequence[int]:
        """Return the steps before which windows end, evenly spaced. Raises UnusableHistory."""
        steps, history = self.steps, self.history
        if self.season > len(history) * history.step:
            raise UnusableHistory(
                f"--season: {self.season} s are longer than the history of"
                f" {len(history) * history.step} s"
            )
        last = len(history) - steps.ahead
        if last < steps.window:
            needed = (steps.window + steps.ahead) * history.step
            raise UnusableHistory(
                f"{self.name} has {len(history) * history.step} s of history: a window of"
                f" {steps.window * history.step} s and a horizon of {steps.ahead * history.step} s"
                f" need {needed} s"
            )
        possible = _part(range(steps.window, last + 1), self.part)
        return possible[:: -(-len(possible) // self.requests)]


def _part(possible: range, part: str) -> range:
    middle = len(possible) // 2
    return {"first": possible[:middle], "second": possible[middle:]}.get(part, possible)
