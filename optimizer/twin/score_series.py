"""What the scores of a scenario are, round by round: the true ones, and those that are published.

A round lasts a scoring interval. Series have the axes [clusters, groups of workloads, rounds].
"""

from collections.abc import Mapping
from datetime import timedelta
from math import ceil
from statistics import NormalDist

import numpy as np

from optimizer.domain.arrays import Bools, Floats, members_by_key
from optimizer.domain.fleet import Objective
from optimizer.twin.scenario import (
    AnySignal,
    Constant,
    Diurnal,
    Noise,
    Recorded,
    Scenario,
    ScenarioScore,
    Shift,
)
from optimizer.wire.placement_optimization import PlacementOptimizationSpec
from optimizer.wire.request import Preference

DAY_SECONDS = 86_400.0
LOWEST, HIGHEST = -100.0, 100.0
"""What an AddOnPlacementScore can hold."""


class ScoreSeries:
    """The series of all scores of a scenario by name and device, drawn with a seed.

    `clusters` and `groups` are the positions of cluster names and of workload groups. A score that
    does not exist is NaN. Values are within what OCM allows, not yet rounded.
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.clusters = {name: at for at, name in enumerate(scenario.cluster_names)}
        self.groups = {group.name: at for at, group in enumerate(scenario.workloads)}
        self.interval = float(scenario.scoring_interval)
        self.rounds = ceil(scenario.duration / self.interval) + 1
        self._scenario = scenario
        self.devices = tuple(dict.fromkeys(score.device for score in scenario.scores))
        self._true = dict[tuple[str, str], Floats]()
        self._published = dict[tuple[str, str], Floats]()
        for number, score in enumerate(scenario.scores):
            self._draw(score, (seed, number))

    def round_of(self, time: float) -> int:
        """Return the round that a time belongs to; of a time after the end: the last one."""
        return min(int(time // self.interval), self.rounds - 1)

    def true(self, score: str) -> dict[str, Floats]:
        """Return what the score of what runs really is, [clusters, groups, rounds] by device."""
        return _by_device(self._true, score)

    def published(self, score: str) -> dict[str, Floats]:
        """Return what the scoring API answers, [clusters, groups, rounds] by device."""
        return _by_device(self._published, score)

    def scored(self, spec: PlacementOptimizationSpec) -> list[tuple[Preference, ...]]:
        """Return the scores that count in each round, which schedules may change."""
        starts = (
            self._scenario.start + timedelta(seconds=at * self.interval)
            for at in range(self.rounds)
        )
        counting = (spec.open_schedule(at) or spec for at in starts)
        return [(one.preference, *one.objectives) for one in counting]

    def worth(self, spec: PlacementOptimizationSpec) -> dict[str, Floats]:
        """Return what the true scores are worth together, [clusters, groups, rounds] by device.

        NaN where one of them does not exist.
        """
        shape = len(self.clusters), len(self.groups), self.rounds
        nothing = np.full(shape, np.nan)
        found = {device: np.zeros(shape) for device in self.devices}
        by_scores = members_by_key((scored, at) for at, scored in enumerate(self.scored(spec)))
        for scored, rounds in by_scores.items():
            for item in scored:
                objective = Objective(
                    item.key, item.weight, item.minimum, item.maximum, item.invert
                )
                true = self.true(item.score_name)
                for device, total in found.items():
                    own = objective.values(true.get(device, nothing))
                    total[:, :, rounds] += own[:, :, rounds]
        return found

    def _draw(self, score: ScenarioScore, seed: tuple[int, int]) -> None:
        ahead = ceil(score.forecast.horizon / self.interval) if score.forecast else 0
        real = np.zeros((len(self.clusters), len(self.groups), self.rounds + ahead))
        wrong = np.zeros_like(real)
        for number, signal in enumerate(score.signals):
            random = np.random.default_rng((*seed, number))
            drawn = np.where(
                self._applies(signal)[:, :, None], self._signal(signal, real, random), 0
            )
            if signal.error:
                wrong += drawn
            else:
                real += drawn
        said = real[:, :, ahead:] + wrong[:, :, ahead:]
        if score.forecast and score.forecast.deviation:
            random = np.random.default_rng((*seed, len(score.signals)))
            bound = NormalDist().inv_cdf(score.forecast.quantile)
            errors = random.standard_normal(said.shape) + bound
            said = said + score.forecast.deviation * errors
        key = score.name, score.device
        self._true[key] = np.clip(real[:, :, : self.rounds], LOWEST, HIGHEST)
        self._published[key] = np.clip(said, LOWEST, HIGHEST)

    def _applies(self, signal: AnySignal) -> Bools:
        """Return to which clusters and groups a signal applies, [clusters, groups]."""
        clusters = self._scenario.named_clusters(signal.clusters)
        own = np.array([name in clusters for name in self.clusters])
        groups = self._scenario.named_groups(signal.workloads)
        return np.outer(own, np.array([name in groups for name in self.groups]))

    def _signal(self, signal: AnySignal, like: Floats, random: np.random.Generator) -> Floats:
        times: Floats = np.arange(like.shape[2], dtype=np.float64) * self.interval
        match signal:
            case Constant():
                most = signal.least if signal.most is None else signal.most
                return random.uniform(signal.least, most, like.shape[:2])[:, :, None]
            case Diurnal():
                start = self._scenario.start
                midnight = start.hour * 3600 + start.minute * 60 + start.second
                peaks = signal.peak + random.uniform(-1, 1, like.shape[:1]) * signal.spread
                day = (midnight + times[None, :] - peaks[:, None]) / DAY_SECONDS
                return signal.height * np.cos(2 * np.pi * day)[:, None, :]
            case Shift():
                last = np.inf if signal.until is None else signal.until
                return np.where((times >= signal.at) & (times < last), signal.by, 0.0)[
                    None, None, :
                ]
            case Noise():
                return _noise(signal, like.shape, random)
            case Recorded():
                return self._recorded(signal, like, times)

    def _recorded(self, signal: Recorded, like: Floats, times: Floats) -> Floats:
        found = np.full_like(like, np.nan)
        for series in signal.series:
            at = np.searchsorted(series.times, times, side="right") - 1
            values = np.where(at < 0, np.nan, np.array(series.values)[np.maximum(at, 0)])
            groups = slice(None) if not series.workload else self.groups[series.workload]
            found[self.clusters[series.cluster], groups] = values
        return found


def _by_device(series: Mapping[tuple[str, str], Floats], score: str) -> dict[str, Floats]:
    return {device: found for (name, device), found in series.items() if name == score}


def _noise(signal: Noise, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    match signal.shape:
        case "Normal":
            new = random.normal(0.0, signal.size, shape)
        case "Uniform":
            new = random.uniform(-signal.size, signal.size, shape)
        case "Spikes":
            hit = random.random(shape) < 1 / signal.one_in
            new = np.where(hit, random.choice([-signal.size, signal.size], shape), 0.0)
    fresh = (1 - signal.kept**2) ** 0.5
    for at in range(1, shape[2] if signal.kept else 0):
        new[:, :, at] = signal.kept * new[:, :, at - 1] + fresh * new[:, :, at]
    return new
