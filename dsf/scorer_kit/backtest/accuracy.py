"""How far forecasts were from the truth: losses, tests, calibration, and regret of choices."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy import special

from dsf.agent.score.forecasts import quantile_loss
from dsf.scorer_kit.backtest.history import Judged
from dsf.scorer_kit.backtest.simple_methods import SimpleMethod

TIE = 1e-3
"""Of the mean change from step to step: losses of a step that differ by less are equal.

Scorers round, and floating point does: such differences are consistent, and would be significant.
"""

FEWEST_HORIZONS = 4
"""Horizons that do not overlap, below which a test says nothing."""


def smaller_loss(differences: Sequence[float], overlap: int) -> float | None:
    """Return the p-value of "the expected difference is not negative"; None with too little data.

    `differences` are losses of the one minus losses of the other, in the order of time. `overlap`
    is the number of consecutive ones whose horizons overlap, at least 1.
    """
    count = len(differences)
    if count < FEWEST_HORIZONS * overlap or count <= 1:
        return None
    mean = fmean(differences)
    centred = [value - mean for value in differences]
    variance = _covariance(centred, 0) + 2 * math.fsum(
        (1 - lag / overlap) * _covariance(centred, lag) for lag in range(1, overlap)
    )
    if variance <= 0:
        return 0.5 if mean == 0 else float(mean > 0)
    small = (count + 1 - 2 * overlap + overlap * (overlap - 1) / count) / count
    statistic = mean / math.sqrt(variance / count) * math.sqrt(max(small, 0.0))
    return float(special.stdtr(count - 1, statistic))


def _covariance(centred: Sequence[float], lag: int) -> float:
    pairs = zip(centred[lag:], centred, strict=False)
    return math.fsum(after * before for after, before in pairs) / len(centred)


Loss = Callable[[float, float], float]
"""The loss of a forecast and the truth."""


def loss_of(quantile: float) -> Loss:
    """Return twice the pinball loss of a quantile: for the median, the absolute error."""
    return lambda forecast, truth: 2 * quantile_loss(quantile, truth, forecast)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The errors of one method.

    `error` is the mean loss, in the unit of the scores. `scaled` is the mean over the series of
    that divided by their mean change from step to step (MASE); None if all are constant.
    """

    method: str
    count: int
    error: float
    scaled: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A simple method, and the scorer at the same steps.

    `p_value` is small if the scorer's expected error is smaller; None with too little history.
    """

    simple: Accuracy
    scorer: Accuracy
    p_value: float | None

    @property
    def ratio(self) -> float | None:
        """The scorer's scaled error divided by the method's: below 1 the scorer is better."""
        if self.scorer.scaled is None or not self.simple.scaled:
            return None
        return self.scorer.scaled / self.simple.scaled


def scorer_accuracy(outcomes: Sequence[Judged], loss: Loss) -> Accuracy:
    """Return the errors of the scores themselves."""
    return _accuracy("scorer", outcomes, [loss(one.said.score, one.truth) for one in outcomes])


def comparison(
    outcomes: Sequence[Judged], method: SimpleMethod, loss: Loss, overlap: int
) -> Comparison | None:
    """Compare with a simple method where both have a forecast; None if that is nowhere.

    `overlap` is the number of consecutive steps whose horizons overlap.
    """
    forecasts = [(one, method.forecast(one.series, one.end)) for one in outcomes]
    pairs = [(one, forecast) for one, forecast in forecasts if forecast is not None]
    if not pairs:
        return None
    both = [one for one, _ in pairs]
    simple = [loss(forecast, one.truth) for one, forecast in pairs]
    scorer = [loss(one.said.score, one.truth) for one in both]
    differences = _by_step(both, [mine - its for mine, its in zip(scorer, simple, strict=True)])
    unequal = [value if abs(value) >= TIE else 0.0 for value in differences]
    return Comparison(
        _accuracy(method.name, both, simple),
        _accuracy("scorer", both, scorer),
        smaller_loss(unequal, overlap),
    )


def _accuracy(method: str, outcomes: Sequence[Judged], losses: Sequence[float]) -> Accuracy:
    each = defaultdict[int, list[float]](list)
    scales = dict[int, float]()
    for one, loss in zip(outcomes, losses, strict=True):
        if one.series.scale > 0:
            each[id(one.series)].append(loss)
            scales[id(one.series)] = one.series.scale
    scaled = [fmean(found) / scales[name] for name, found in each.items()]
    return Accuracy(method, len(losses), fmean(losses), fmean(scaled) if scaled else None)


def _by_step(outcomes: Sequence[Judged], losses: Sequence[float]) -> list[float]:
    """Return the mean over the series of scaled losses at each step."""
    steps = defaultdict[int, list[float]](list)
    for one, loss in zip(outcomes, losses, strict=True):
        if one.series.scale > 0:
            steps[one.end].append(loss / one.series.scale)
    return [fmean(steps[end]) for end in sorted(steps)]


_TOUCHING = 1e-9
"""Relative distance within which a truth counts as on a bound: rounding in JSON and sums."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A central interval: the share it promises, the share it held, and its mean width."""

    level: float
    coverage: float
    width: float
    count: int


@dataclass(frozen=True, slots=True)
class QuantileShare:
    """A probability, and the share of the truths that were not above that quantile."""

    probability: float
    below: float
    count: int


def quantile_shares(outcomes: Sequence[Judged], declared: float = 0.5) -> list[QuantileShare]:
    """Return the share of the truths at or below each quantile; a calibrated one has its own.

    A score is the `declared` quantile where no other value is; of the default, 0.5, it need not be.
    """
    below = defaultdict[float, list[bool]](list)
    for one in outcomes:
        score = () if declared == 1 / 2 else ((declared, one.said.score),)
        for probability, value in dict((*score, *one.said.quantiles)).items():
            below[probability].append(one.truth <= value + _margin(value, one.truth))
    return [
        QuantileShare(probability, fmean(below[probability]), len(below[probability]))
        for probability in sorted(below)
    ]


def intervals(outcomes: Sequence[Judged]) -> list[Interval]:
    """Return the intervals between quantiles p and 1 - p, the widest first."""
    found = defaultdict[float, list[tuple[bool, float]]](list)
    for one in outcomes:
        values = {round(probability, 6): value for probability, value in one.said.quantiles}
        for lower, low in values.items():
            high = values.get(round(1 - lower, 6))
            if lower < 1 / 2 and high is not None:
                inside = (
                    low - _margin(low, one.truth) <= one.truth <= high + _margin(high, one.truth)
                )
                found[round(1 - 2 * lower, 6)].append((inside, high - low))
    return [
        Interval(
            level,
            fmean([inside for inside, _ in found[level]]),
            fmean([width for _, width in found[level]]),
            len(found[level]),
        )
        for level in sorted(found, reverse=True)
    ]


def _margin(bound: float, truth: float) -> float:
    return _TOUCHING * max(abs(bound), abs(truth))


FEWEST_CHOICES = 2


@dataclass(frozen=True, slots=True)
class Regret:
    """The mean loss of one way to choose, in the unit of the truth, and how often it was best."""

    method: str
    loss: float
    best: float


@dataclass(frozen=True, slots=True)
class Choices:
    """How choices are made: by which label ("" for one choice per series), and which is best."""

    label: str
    lowest: bool


def regrets(
    outcomes: Sequence[Judged], methods: Sequence[SimpleMethod], choices: Choices
) -> list[Regret]:
    """Return the regret of the scorer, of each simple method, and of a choice at random.

    At each step the choice with the lowest (or highest) value is taken; it loses the distance of
    its truth from the best truth of that step. Values of one choice are added up. A step counts if
    there are two choices, and if all methods have a value for each series.
    """
    steps = defaultdict[int, list[Judged]](list)
    for one in outcomes:
        steps[one.end].append(one)
    values: dict[str, Callable[[Judged], float | None]] = {"scorer": lambda one: one.said.score}
    for method in methods:
        values[method.name] = _forecast_of(method)
    losses = defaultdict[str, list[float]](list)
    for step in steps.values():
        for name, loss in _losses(step, values, choices).items():
            losses[name].append(loss)
    return [
        Regret(name, fmean(found), fmean([name != _RANDOM and loss == 0 for loss in found]))
        for name, found in losses.items()
    ]


_RANDOM = "at random"


def _forecast_of(method: SimpleMethod) -> Callable[[Judged], float | None]:
    return lambda one: method.forecast(one.series, one.end)


def _losses(
    step: Sequence[Judged], values: Mapping[str, Callable[[Judged], float | None]], choices: Choices
) -> dict[str, float]:
    """Return the loss of each method at one step; empty if the step does not count."""
    sign = 1 if choices.lowest else -1
    truth = _summed(step, lambda one: one.truth, choices.label)
    found = {name: _summed(step, value, choices.label) for name, value in values.items()}
    if truth is None or len(truth) < FEWEST_CHOICES:
        return {}
    known = {name: each for name, each in found.items() if each is not None}
    if len(known) < len(found):
        return {}
    best = min(sign * value for value in truth.values())
    taken = {  # of equal choices the first by name
        name: min((sign * value, choice) for choice, value in each.items())[1]
        for name, each in known.items()
    }
    losses = {name: sign * truth[choice] - best for name, choice in taken.items()}
    return {**losses, _RANDOM: fmean([sign * value - best for value in truth.values()])}


def _summed(
    step: Sequence[Judged], value: Callable[[Judged], float | None], label: str
) -> dict[str, float] | None:
    """Return the sum of the values of each choice; None if one is missing."""
    sums = dict[str, float]()
    for one in step:
        found = value(one)
        if found is None:
            return None
        name = one.series.metric.get(label, "") if label else repr(sorted(one.series.labels))
        sums[name] = sums.get(name, 0.0) + found
    return sums
