"""Whether a scorer knows a history: it gets copies of it that it can't know, and must be as good.

One copy has other times, the other also has other values, and both are drawn anew in each backtest.
Who looks up what came true, recognises a window, or remembers an earlier backtest is worse there.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from dsf.scorer_kit.backtest.accuracy import TIE, Loss, smaller_loss
from dsf.scorer_kit.backtest.history import Answered, History, Judged, PastSeries, Values, judged
from dsf.scorer_kit.backtest.simple_methods import SimpleMethod

WEEK_SECONDS = 604_800
"""Times move by whole weeks, so that hours and weekdays stay what they were."""

_FEWEST_WEEKS, _MOST_WEEKS = 10, 200

_SMALLEST_FACTOR, _LARGEST_FACTOR = 0.6, 0.8
"""Below 1, so that percentages stay below 100."""

_NOISE = 0.1
"""Of the mean change from step to step."""

MOST_STEPS = 30
"""Steps that are asked again in each copy."""

CERTAIN = 0.01
"""A p-value below which an error is larger in a copy."""

MUCH_LARGER = 1.25
"""By how much it must be larger."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A history with other times, and maybe other values; `change` says which."""

    history: History
    change: str
    values: bool


def copies(history: History, random: np.random.Generator) -> list[Copy]:
    """Return a copy with other times, and one with other times and values.

    The values and their truth get one factor. Where the truth is the answer to a query, a factor
    would change it in an unknown way, so the values get noise and the truth stays.
    """
    moved, again = _moved(history, random), _moved(history, random)
    if history.measured:
        series = [replace(one, values=_noisy(one, random)) for one in history.series]
        change = "a tenth of the mean change from step to step added as noise"
    else:
        factor = round(random.uniform(_SMALLEST_FACTOR, _LARGEST_FACTOR), 2)
        series = [
            PastSeries(
                one.metric, [None if value is None else factor * value for value in one.values]
            )
            for one in history.series
        ]
        change = f"all values times {factor:g}"
    weeks = f"the times moved by {(moved.start - history.start) // WEEK_SECONDS:+} weeks"
    return [
        Copy(moved, weeks, values=False),
        Copy(replace(again, series=tuple(series)), f"{change} at other times", values=True),
    ]


def _moved(history: History, random: np.random.Generator) -> History:
    """Return the history some years earlier; later where that would be before 1970."""
    seconds = int(random.integers(_FEWEST_WEEKS, _MOST_WEEKS)) * WEEK_SECONDS
    back = history.start >= seconds
    return replace(history, start=history.start - seconds if back else history.start + seconds)


def _noisy(one: PastSeries, random: np.random.Generator) -> Values:
    size = _NOISE * PastSeries(one.metric, one.values).scale
    noise = random.normal(scale=size, size=len(one.values)) if size else [0.0] * len(one.values)
    return [
        None if value is None else value + float(more)
        for value, more in zip(one.values, noise, strict=True)
    ]


def steps_to_repeat(ends: Sequence[int], ahead: int) -> Sequence[int]:
    """Return the steps that are asked again: some of `ends`, a horizon apart where that is left."""
    every = ends[1] - ends[0] if len(ends) > 1 else 1
    return ends[:: max(-(-ahead // every), -(-len(ends) // MOST_STEPS))]


@dataclass(frozen=True, slots=True)
class CopyVerdict:
    """What a copy tells of a scorer: the scaled errors there, and in the history at the same steps.

    `error` is None if the scorer gave too few scores, or failed.
    """

    change: str
    error: float | None
    recorded: float | None
    implausible: bool
    message: str


def unanswered(copy: Copy, why: str) -> CopyVerdict:
    """Return the verdict on a scorer that failed in a copy: nothing is known."""
    said = f"with {copy.change} it fails: {why}"
    return CopyVerdict(copy.change, None, None, implausible=False, message=said)


def verdict(
    copy: Copy,
    answers: Sequence[Answered],
    outcomes: Sequence[Judged],
    methods: Sequence[SimpleMethod],
    loss: Loss,
    ahead: int,
) -> CopyVerdict:
    """Return what a copy tells of the scorer, whose scores in the history are in `outcomes`.

    It knows the history if its errors are significantly and much larger in the copy. With other
    values they may be, as long as it is still better than the simple methods.
    """
    ends = {answer.end for answer in answers}
    known = _losses([one for one in outcomes if one.end in ends], loss)
    again = _losses(judged(answers, copy.history.series, ahead), loss)
    both = [end for end in sorted(known) if end in again]
    if 2 * len(both) < len(known):
        said = f"{_KNOWN[copy.values]}: with {copy.change} it has scores at {len(both)} of"
        said = f"{said} {len(known)} steps"
        return CopyVerdict(copy.change, None, None, implausible=True, message=said)
    error = fmean([again[end] for end in both]) if both else 0.0
    recorded = fmean([known[end] for end in both]) if both else 0.0
    gaps = [known[end] - again[end] for end in both]
    overlap = -(-ahead // (both[1] - both[0])) if len(both) > 1 else 1
    p_value = smaller_loss([gap if abs(gap) >= TIE else 0.0 for gap in gaps], overlap)
    larger = p_value is not None and p_value < CERTAIN and error > MUCH_LARGER * recorded
    implausible = larger and not (copy.values and error < _best(outcomes, ends, methods, loss))
    said = f"with {copy.change} its scaled error is {error:.3g}, and {recorded:.3g} without"
    said = f"{_KNOWN[copy.values]}: {said}" if implausible else said
    return CopyVerdict(copy.change, error, recorded, implausible, said)


_KNOWN = {
    False: "the scorer knows this history by its times",
    True: "the scorer knows this history by its values, or works at its level of load only",
}


def _best(
    outcomes: Sequence[Judged], ends: set[int], methods: Sequence[SimpleMethod], loss: Loss
) -> float:
    """Return the least scaled error of the simple methods at some steps."""
    errors = []
    for method in methods:
        pairs = [(one, method.forecast(one.series, one.end)) for one in outcomes if one.end in ends]
        scaled = [
            loss(forecast, one.truth) / one.series.scale
            for one, forecast in pairs
            if forecast is not None and one.series.scale
        ]
        errors += [fmean(scaled)] if scaled else []
    return min(errors, default=0.0)


def _losses(outcomes: Sequence[Judged], loss: Loss) -> dict[int, float]:
    """Return the mean scaled loss of the scores at each step."""
    steps = defaultdict[int, list[float]](list)
    for one in outcomes:
        if one.series.scale > 0:
            steps[one.end].append(loss(one.said.score, one.truth) / one.series.scale)
    return {end: fmean(found) for end, found in steps.items()}
