"""What the best placements would have been worth to somebody who knew all scores beforehand.

Without a budget that is the sum of the best plans of all moments, which the product's solver
bounds. Within budgets of moves it is the bound that an integer program over all moments together
proves: no plans that keep the budgets are worth more. Moments say what could be decided when.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import ceil
from typing import NamedTuple

import numpy as np

from dsf.api.times import rfc3339
from dsf.kube.changes import Create
from dsf.kube.kinds import MANAGED_CLUSTER, POLICY, Kind
from dsf.kube.port import Object
from dsf.kube.selectors import valid_selector
from optimizer.candidates.fleet_candidates import with_candidates
from optimizer.candidates.layout_bounds import bounded_over_all_layouts
from optimizer.domain.arrays import Floats
from optimizer.domain.fleet import Fleet
from optimizer.domain.mig.gpu_pools import NO_COST
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.domain.settings import DEFAULTS
from optimizer.domain.solution import Assignment
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.rules import RULES
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.object_readers import labels_of, name_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.requested_gpus import mig_rules
from optimizer.solve.solver_adapters import maximise
from optimizer.solve.strategy import solve_problem
from optimizer.twin.fleet_objects import hub_objects, playable, spec_of, workload
from optimizer.twin.scenario import Scenario
from optimizer.twin.score_series import ScoreSeries
from optimizer.wire.placement_optimization import PlacementOptimizationSpec
from optimizer.wire.request import OptimizeRequest

MOST_MOMENTS = 300
MOST_VARIABLES = 400_000
"""Of all moments together: solving them takes about a minute."""


class DecisionMoment(NamedTuple):
    """What could be decided from a time on, for some seconds; no move costs anything.

    The fleet has all policies that may be enforced, those that are generated too.
    """

    begins: float
    seconds: float
    fleet: Fleet
    problem: Problem


def moments_of(scenario: Scenario, seed: int) -> tuple[float, tuple[DecisionMoment, ...]]:
    """Return over how many seconds scores are averaged, and when what could be decided.

    Nothing runs on a cluster while it is lost. Where true scores change more often than can be
    solved, they are averaged over several rounds. Raises ValueError.
    """
    observation, request = _observed(scenario)
    series = ScoreSeries(scenario, seed)
    scored = series.scored(spec_of(scenario))
    asked = {
        one: request.model_copy(update={"preference": one[0], "objectives": one[1:]})
        for one in dict.fromkeys(scored)
    }
    reads = {one: read_objects(observation, of, DEFAULTS) for one, of in asked.items()}
    rules = replace(mig_rules(request), costs=NO_COST)
    changes = _changed_rounds(scenario, series)
    size = max(1, len(observation.managed_clusters) * len(observation.workloads))
    rounds = ceil(len(changes) / min(MOST_MOMENTS, max(8, MOST_VARIABLES // size)))
    if rounds > 1:
        changes = list(range(0, series.rounds, rounds))
    changes += [at for at in range(1, series.rounds) if scored[at] != scored[at - 1]]
    edges = _edges(scenario, [at * series.interval for at in changes])
    tenures = {one.workload: one for one in scenario.tenures()}
    found = list[DecisionMoment]()
    for begins, ends in pairwise(edges):
        lost = scenario.failing("ClusterLost", begins)
        present = {name for name, one in tenures.items() if one.begins <= begins < one.ends}
        counts = scored[series.round_of(begins)]
        fleet, pools = reads[counts].fleet, reads[counts].pools
        fleet = replace(
            fleet,
            clusters=tuple(item for item in fleet.clusters if item.name not in lost),
            workloads=tuple(item for item in fleet.workloads if item.name in present),
            scores=_mean_scores(asked[counts], series, begins, ends),
        )
        fleet = with_candidates(fleet, pools, rules)
        found.append(DecisionMoment(begins, ends - begins, fleet, formulate(fleet)))
    return max(1, rounds) * series.interval, tuple(found)


def _observed(scenario: Scenario) -> tuple[Observation, OptimizeRequest]:
    """Return the fleet's objects with all workloads that ever exist, and the request for them."""
    spec = spec_of(scenario)
    found = defaultdict[Kind, list[Object]](list)
    for change in hub_objects(scenario, now=rfc3339(scenario.start)):
        if isinstance(change, Create):
            found[change.kind].append(change.obj)
    observation = Observation(
        managed_clusters=tuple(found[MANAGED_CLUSTER]),
        policies=tuple(found[POLICY]),
        workloads=tuple(map(workload, scenario.tenures())),
        observed_at=scenario.start,
    )
    if spec.target_workloads:
        return observation, playable(spec.request())
    selected = valid_selector(spec.workload_selector)
    workloads = [
        {"name": name_of(obj)} for obj in observation.workloads if selected.matches(labels_of(obj))
    ]
    return observation, playable(spec.request(targetWorkloads=workloads))


def _changed_rounds(scenario: Scenario, series: ScoreSeries) -> list[int]:
    """Return the rounds in which a true score differs from the round before, and the first."""
    differ = np.zeros(series.rounds - 1, dtype=np.bool_)
    for score in scenario.scores:
        true = np.nan_to_num(series.true(score.name)[score.device], nan=np.inf)
        differ |= (true[:, :, 1:] != true[:, :, :-1]).any(axis=(0, 1))
    return [0, *(np.nonzero(differ)[0] + 1).tolist()]


def _edges(scenario: Scenario, rounds: Iterable[float]) -> list[float]:
    """Return the times at which something changes, from 0 to the end."""
    ends = scenario.duration
    tenures = {time for one in scenario.tenures() for time in (one.begins, one.ends)}
    losses = {
        time
        for one in scenario.failures
        if one.type == "ClusterLost"
        for time in (one.at, one.until or ends)
    }
    every = {*tenures, *losses, *rounds, 0.0}
    return [*sorted(time for time in every if 0 <= time < ends), ends]


def _mean_scores(
    request: OptimizeRequest, series: ScoreSeries, begins: float, ends: float
) -> dict[str, ScoreMatrix]:
    """Return the true scores of a time, by the keys by which the request reads them."""
    rounds = slice(series.round_of(begins), max(ceil(ends / series.interval), 1))
    return {
        item.key: ScoreMatrix(
            series.groups,
            {place: at for at, place in enumerate(product(series.clusters, true))},
            np.stack([one[:, :, rounds].mean(axis=2) for one in true.values()], axis=1)
            .reshape(-1, len(series.groups))
            .T,
        )
        for _, item in request.read_scores
        for true in [series.true(item.score_name)]
    }


MOST_COLUMNS = 40_000
"""Variables of the integer program: more take minutes."""

SECONDS = 30.0
"""For the integer program, whose bound counts then, and for each moment, which takes less."""

_GAP = 1e-4


class PeriodBudget(NamedTuple):
    """The most moves in each period of so many seconds."""

    seconds: float
    moves: float


class BestMoment(NamedTuple):
    """A bound on the value of any plan from a time on, for some seconds."""

    begins: float
    seconds: float
    value: float

    @property
    def value_hours(self) -> float:
        """The value times the hours."""
        return self.value * self.seconds / 3600


def best_moments(moments: Iterable[DecisionMoment]) -> tuple[BestMoment, ...]:
    """Return a bound on the value of any plan at each moment; plans may change at each of them."""
    return tuple(BestMoment(moment.begins, moment.seconds, _bound(moment)) for moment in moments)


def _bound(moment: DecisionMoment) -> float:
    solver = DEFAULTS.solver
    found = solve_problem(moment.problem, solver=solver, time_limit_seconds=SECONDS, gap=_GAP)
    found = bounded_over_all_layouts(moment.fleet, found)
    return found.objective_value if found.bound is None else found.bound


def best_within_budgets(
    moments: Sequence[DecisionMoment], budgets: Sequence[PeriodBudget]
) -> float | None:
    """Return a bound on the value x hours of plans that keep budgets of moves.

    A replica that leaves a cluster where it could stay is a move, wherever it goes. Periods of a
    budget follow each other from time 0. None: too large, no bound was found in time, or not all
    layouts of GPUs are in the program.
    """
    columns = sum(moment.problem.size for moment in moments)
    if not moments or columns > MOST_COLUMNS or any(one.fleet.omitted_layouts for one in moments):
        return None
    objective, rows, moves = _integer_program(moments)
    rows += _budget_rows(budgets, moves)
    found = maximise(
        objective, rows, [1.0] * len(objective), solver=DEFAULTS.solver, seconds=SECONDS, gap=_GAP
    )
    return found.bound


_Row = tuple[Sequence[int], Sequence[float], float]


def _integer_program(
    moments: Sequence[DecisionMoment],
) -> tuple[Floats, list[_Row], list[tuple[float, int]]]:
    """Return objective, rows, and the variable of each possible move with its time."""
    weights, rows, firsts = list[Floats](), list[_Row](), list[int]()
    first = 0
    for moment in moments:
        firsts.append(first)
        weights.append(moment.problem.weights() * moment.seconds / 3600)
        rows += [
            ((row.columns + first).tolist(), row.coefficients.tolist(), row.limit)
            for rule in RULES
            for row in rule(moment.problem)
        ]
        first += moment.problem.size
    moves = list[tuple[float, int]]()
    placed = [_columns(item.problem, at) for item, at in zip(moments, firsts, strict=True)]
    for (before, now), moment in zip(pairwise(placed), moments[1:], strict=True):
        for place in before.keys() & now.keys():
            leaves = first + len(moves)
            members = [*before[place], *now[place], leaves]
            signs = [1.0] * len(before[place]) + [-1.0] * len(now[place]) + [-1.0]
            rows.append((members, signs, 0.0))
            moves.append((moment.begins, leaves))
    return np.concatenate([*weights, np.zeros(len(moves))]), rows, moves


def _columns(problem: Problem, first: int) -> dict[tuple[str, str], list[int]]:
    """Return the variables of each workload and cluster, numbered from `first` on."""
    found = defaultdict[tuple[str, str], list[int]](list)
    for number, variable in enumerate(problem.variables):
        if isinstance(variable, Assignment):
            found[variable.workload, variable.cluster].append(first + number)
    return found


def _budget_rows(
    budgets: Iterable[PeriodBudget], moves: Sequence[tuple[float, int]]
) -> Iterator[_Row]:
    for budget in budgets:
        periods = defaultdict[int, list[int]](list)
        for at, column in moves:
            periods[int(at // budget.seconds)].append(column)
        for members in periods.values():
            yield members, [1.0] * len(members), budget.moves


def period_budgets(spec: PlacementOptimizationSpec, replicas: int) -> list[PeriodBudget]:
    """Return the budgets for moves to better places that always count."""
    return [
        PeriodBudget(item.period.total_seconds(), item.most(replicas))
        for item in spec.budgets
        if item.schedule is None and "BetterScore" in item.reasons
    ]
