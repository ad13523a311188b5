"""What a scorer said at each step of a history, and what came true after it."""

from collections.abc import Sequence
from dataclasses import dataclass

from dsf.scorer_kit.backtest.history import Labels, PastSeries

Quantiles = tuple[tuple[float, float], ...]
"""Pairs of a probability and a value, ascending."""


@dataclass(frozen=True, slots=True)
class Said:
    """The score of one series, and the quantiles of its forecast, empty without any."""

    score: float
    quantiles: Quantiles = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer: the scores by the labels of their series, after the step before `end`.

    `strange` is the number of results with other labels than those of a series.
    """

    end: int
    said: dict[Labels, Said]
    strange: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """A score and what came true, of one series after the step before `end`."""

    end: int
    series: PastSeries
    said: Said
    truth: float


def judged(answers: Sequence[Answered], series: Sequence[PastSeries], ahead: int) -> list[Judged]:
    """Return each score that has a truth: the mean of the `ahead` steps after its window."""
    found = list[Judged]()
    for answer in answers:
        for one in series:
            said = answer.said.get(one.labels)
            truth = one.mean(answer.end, answer.end + ahead)
            if said is not None and truth is not None:
                found.append(Judged(answer.end, one, said, truth))
    return found
