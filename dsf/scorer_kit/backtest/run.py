"""A backtest from its settings to its report: which steps are asked, and what is made of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from dsf.scorer_kit.backtest.accuracy import comparison, loss_of, scorer_accuracy
from dsf.scorer_kit.backtest.calibration import intervals, quantile_shares
from dsf.scorer_kit.backtest.history import History, UnusableHistory
from dsf.scorer_kit.backtest.outcome import Answered, judged
from dsf.scorer_kit.backtest.regret import Choices, regrets
from dsf.scorer_kit.backtest.report import BacktestReport, Setting
from dsf.scorer_kit.backtest.simple_methods import Horizon, found_season, simple_methods

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

    @property
    def steps(self) -> Horizon:
        """The window and the horizon in steps, at least 1 each."""
        step = self.history.step
        return Horizon(max(self.window // step, 1), max(round(self.horizon / step), 1))

    def ends(self) -> Sequence[int]:
        """Return the steps before which windows end, evenly spaced. Raises UnusableHistory."""
        steps, history = self.steps, self.history
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
    season = plan.season // history.step or found_season(history)
    methods = simple_methods(steps, season or steps.window)
    loss, every = loss_of(plan.quantile), _every(answers)
    compared = (comparison(outcomes, one, loss, -(-steps.ahead // every)) for one in methods)
    truths = sum(
        one.mean(answer.end, answer.end + steps.ahead) is not None
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
            season=(season or 0) * history.step,
            part=plan.part,
            requests=len(answers),
            every=every * history.step,
            quantile=plan.quantile,
        ),
        scorer=scorer_accuracy(outcomes, loss),
        comparisons=[one for one in compared if one],
        shares=quantile_shares(outcomes),
        intervals=intervals(outcomes),
        choices=plan.choices,
        regrets=regrets(outcomes, methods, plan.choices),
        missing=truths - len(outcomes),
        strange=strange,
        outcomes=outcomes,
    )


def _part(possible: range, part: str) -> range:
    middle = len(possible) // 2
    return {"first": possible[:middle], "second": possible[middle:]}.get(part, possible)


def _every(answers: Sequence[Answered]) -> int:
    return answers[1].end - answers[0].end if len(answers) > 1 else 1
