"""How good the sample prediction is on the recordings: the table in docs/how-to/backtest.md.

The figures are those of `dsf scorer backtest`, without HTTP: the scorer forecasts all windows of a
recording in one pass.

    python -m benchmarks.forecast.shipped
"""

import numpy as np

from benchmarks.forecast.cases import CASES, Case
from dsf.scorer_kit.backtest.accuracy import Choices
from dsf.scorer_kit.backtest.history import Answered, History, Said
from dsf.scorer_kit.backtest.plan import PARTS, BacktestPlan
from dsf.scorer_kit.backtest.replay import recorded
from dsf.scorer_kit.backtest.report import BacktestReport, report
from sample_scorers.prediction.combination.forecast import forecast
from sample_scorers.prediction.combination.score import QUANTILES

EVERY_STEP = 1_000
"""More requests than a recording has steps."""

SMALLEST_SHOWN = 0.01

COLUMNS = ("recording", "part", "last value", "window mean", "seasonal naive", "90% interval")


def measured(case: Case, part: str) -> BacktestReport:
    """Return the backtest of the sample prediction on a part of a recording."""
    _, history = recorded(case.path, "", case.step)
    plan = BacktestPlan(
        case.name,
        history,
        case.window,
        case.horizon,
        Choices("", lowest=True),
        requests=EVERY_STEP,
        part=part,
    )
    return report(plan, answers(history, plan))


def answers(history: History, plan: BacktestPlan) -> list[Answered]:
    """Return what the scorer answers at each step of a plan."""
    rows = np.array([one.values for one in history.series], dtype=np.float64)
    ends = plan.ends()
    windows = np.concatenate([rows[:, end - plan.steps.window : end] for end in ends]).T
    found = forecast(windows, plan.steps.ahead)
    bounds = np.stack([found.quantile(each) for each in QUANTILES], axis=1).tolist()
    said = [
        Said(mean, tuple(zip(QUANTILES, levels, strict=True)))
        for mean, levels in zip(found.mean.tolist(), bounds, strict=True)
    ]
    count = len(history.series)
    return [
        Answered(
            end,
            {one.labels: said[index * count + place] for place, one in enumerate(history.series)},
        )
        for index, end in enumerate(ends)
    ]


def table() -> str:
    """Return the table in Markdown."""
    rows = [_row(case, part) for case in CASES for part in (PARTS[:1] if case.untouched else PARTS)]
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(case: Case, part: str) -> tuple[str, ...]:
    found = measured(case, part)
    (interval, *_) = found.intervals
    said = {"all": "all", "first": "first half", "second": "second half"}
    return (
        case.name,
        said[part],
        *(
            f"{1 - (one.ratio or 0):.0%} ({'-' if one.p_value is None else _shown(one.p_value)})"
            for one in found.comparisons
        ),
        f"{interval.coverage:.0%}",
    )


def _shown(p_value: float) -> str:
    return f"{p_value:.2f}" if p_value >= SMALLEST_SHOWN else "<0.01"


if __name__ == "__main__":
    print(table())
