"""What a decision maker is told of runs: value against hindsight's best, moves, what was missing.

A row has the runs of one controller and setting, one for each seed; its figures are means over the
seeds, with their 95% confidence intervals by Student's t distribution.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from dsf.api.untrusted_text import counted
from dsf.cli.output import TextTable
from optimizer.twin.evaluation.figures import Estimate, SimulatedRow, SimulationResult
from optimizer.twin.evaluation.hindsight import BestMoment
from optimizer.twin.played import Loss, Played
from optimizer.twin.scenario import Scenario
from optimizer.wire.base import ResultPart

NAMES = {
    "Kept": "kept (PlacementOptimization)",
    "Naive": "naive (posts on a timer)",
    "Static": "static (posted once)",
    "Recorded": "as recorded",
}
HINDSIGHT = "best in hindsight"


class Hindsight(ResultPart):
    """What nobody can beat: with the true scores of a seed known beforehand.

    `within_budgets`: value x hours of plans that keep the budgets of moves; null without such
    budgets, or if it was not computed. `step_seconds`: scores are averaged over so long.
    """

    step_seconds: float
    moments: tuple[BestMoment, ...]
    within_budgets: float | None

    @property
    def value_hours(self) -> float:
        """The value x hours of plans that may change at each moment."""
        return sum(moment.value_hours for moment in self.moments)


class Run(NamedTuple):
    """A run of a scenario, what was set in it, and hindsight of its seed."""

    setting: Mapping[str, str]
    played: Played
    hindsight: Hindsight | None


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of values and half of its 95% confidence interval."""
    if len(values) < 2:  # noqa: PLR2004 - of one value nothing is known
        return Estimate(mean=fmean(values))
    from scipy import special  # noqa: PLC0415 - only where there are several seeds

    quantile = float(special.stdtrit(len(values) - 1, 0.975))
    return Estimate(mean=fmean(values), half_interval=quantile * stdev(values) / sqrt(len(values)))


def row(runs: Sequence[Run]) -> SimulatedRow:
    """Return the figures of the runs of one controller and setting."""
    played = [run.played for run in runs]
    losses = [loss for one in played for loss in one.losses]
    recoveries = [_recovery(one.losses) for one in played]
    known = [seconds for seconds in recoveries if seconds is not None]
    return SimulatedRow(
        controller=played[0].controller,
        setting=dict(runs[0].setting),
        value=estimate([one.value_hours / _hours(one) for one in played]),
        regret_percent=_regret(runs, lambda best: best.value_hours),
        regret_within_budgets_percent=_regret(runs, lambda best: best.within_budgets),
        moves=estimate([len(one.moves) for one in played]),
        moves_for_score=estimate(
            [sum(move.reason != "ClusterLost" for move in one.moves) for one in played]
        ),
        uncovered_minutes=estimate([one.unplaced_minutes for one in played]),
        recovery_seconds=estimate(known) if known else None,
        not_recovered=sum(loss.due is not None and loss.recovered is None for loss in losses),
        totals={name: estimate([one.totals[name] for one in played]) for name in played[0].totals},
        plans=estimate([one.plans for one in played]),
    )


def _hours(played: Played) -> float:
    return played.duration / 3600


def _recovery(losses: Iterable[Loss]) -> float | None:
    """Return the longest time from the end of a grace to the recovery."""
    return max(
        (
            max(0.0, loss.recovered - loss.due)
            for loss in losses
            if loss.recovered is not None and loss.due is not None
        ),
        default=None,
    )


def _regret(runs: Sequence[Run], best_of: Callable[[Hindsight], float | None]) -> Estimate | None:
    found = list[float]()
    for run in runs:
        best = run.hindsight and best_of(run.hindsight)
        if not best:
            return None
        found.append(100 * (best - run.played.value_hours) / abs(best))
    return estimate(found)


def simulation(
    groups: Sequence[Sequence[Run]], scenario: Scenario, notes: Sequence[str]
) -> SimulationResult:
    """Return the answer for groups of runs, one for each controller and setting."""
    first = groups[0]
    known = [run.hindsight for run in first if run.hindsight]
    within = [item.within_budgets for item in known if item.within_budgets is not None]
    hours = _hours(first[0].played)
    return SimulationResult(
        description=scenario.description,
        hours=hours,
        seeds=tuple(run.played.seed for run in first),
        best_value=estimate([item.value_hours / hours for item in known]) if known else None,
        best_value_within_budgets=(
            estimate([value / hours for value in within]) if len(within) == len(known) > 0 else None
        ),
        hindsight_step_seconds=max((item.step_seconds for item in known), default=None),
        rows=tuple(map(row, groups)),
        units={score.name: score.total for score in scenario.scores if score.total},
        notes=tuple(notes),
    )


def table(found: SimulationResult) -> str:
    """Return the answer as a table, with a row for hindsight's best, and its notes."""
    settings = list(dict.fromkeys(name for item in found.rows for name in item.setting))
    budgets = found.best_value_within_budgets is not None
    lost = any(item.recovery_seconds or item.not_recovered for item in found.rows)
    totals = list(found.units)
    columns = [
        "placed by",
        *map(str, settings),
        "value",
        "regret",
        *(["regret in budget"] if budgets else []),
        "moves",
        "for score",
        "uncovered",
        *(["recovery"] if lost else []),
        *(f"{name} ({found.units[name]})" for name in totals),
        "plans",
    ]
    lines = [
        [
            NAMES[item.controller],
            *(str(item.setting.get(name, "")) for name in settings),
            _cell(item.value, "{:.2f}"),
            _cell(item.regret_percent, "{:.2f}%"),
            *([_cell(item.regret_within_budgets_percent, "{:.2f}%")] if budgets else []),
            _cell(item.moves),
            _cell(item.moves_for_score),
            _cell(item.uncovered_minutes, "{:.1f} min"),
            *([_recovered(item)] if lost else []),
            *(_cell(item.totals.get(name), "{:.1f}") for name in totals),
            _cell(item.plans),
        ]
        for item in found.rows
    ]
    if found.best_value:
        best = [HINDSIGHT, *("" for _ in settings), _cell(found.best_value, "{:.2f}")]
        lines.append([*best, *("" for _ in columns[len(best) :])])
    title = f"{found.hours:.4g} h, {counted(len(found.seeds), 'seed')}"
    return "\n".join([str(TextTable(columns, lines, title)), *found.notes]) + "\n"


def _cell(value: Estimate | None, form: str = "{:.4g}") -> str:
    if value is None:
        return "-"
    shown = form.format(value.mean + 0.0)
    return shown if value.half_interval is None else f"{shown} ±{form.format(value.half_interval)}"


def _recovered(item: SimulatedRow) -> str:
    if item.not_recovered:
        return f"{item.not_recovered} not recovered"
    return _cell(item.recovery_seconds, "{:.0f} s")
