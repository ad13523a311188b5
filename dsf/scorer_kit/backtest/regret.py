"""What choices by a scorer's values would have lost against the best in hindsight."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dsf.scorer_kit.backtest.accuracy import mean
from dsf.scorer_kit.backtest.outcome import Judged
from dsf.scorer_kit.backtest.simple_methods import SimpleMethod

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
        Regret(name, mean(found), mean([name != _RANDOM and loss == 0 for loss in found]))
        for name, found in losses.items()
    ]


_RANDOM = "at random"


def _forecast_of(method: SimpleMethod) -> Callable[[Judged], float | None]:
    return lambda one: method.forecast(one.series, one.end)


def _losses(
    step: Sequence[Judged],
    values: Mapping[str, Callable[[Judged], float | None]],
    choices: Choices,
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
    taken = {name: _taken(each, sign) for name, each in known.items()}
    losses = {name: sign * truth[choice] - best for name, choice in taken.items()}
    return {**losses, _RANDOM: mean([sign * value - best for value in truth.values()])}


def _taken(values: Mapping[str, float], sign: int) -> str:
    """Return the choice of the least value times `sign`; of equal ones the first by name."""
    return min(values, key=lambda choice: (sign * values[choice], choice))


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
