"""What scores are compared with: the mean of the horizon, its maximum or quantile, or a query."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from dsf.scorer_kit.backtest.history import (
    History,
    PastSeries,
    SeriesIndex,
    UnusableHistory,
    Values,
)

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
