"""What a backtest does with a history, and at which steps it asks the scorer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsf.scorer_kit.backtest.accuracy import Choices
from dsf.scorer_kit.backtest.history import History, UnusableHistory
from dsf.scorer_kit.backtest.simple_methods import Horizon
from dsf.scorer_kit.backtest.truth import MEAN, QUERY, of_horizon

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
