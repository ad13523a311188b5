"""Generated histories: seasons of an hour, a day, a week and none, with gaps, shifts, weekdays."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsf.scorer_kit.backtest.history import History, PastSeries

HOUR, DAY, WEEK = 3_600, 86_400, 604_800
STEPS = {
    HOUR: (15, 30, 60, 300),
    DAY: (15, 60, 300, 900, 1_800, 3_600),
    WEEK: (60, 300, 900, 1_800, 3_600),
    0: (15, 60, 300, 900, 3_600),
}
"""Steps of the histories of each season, in seconds."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Drawn:
    """A history and its true season in seconds, 0 without one; `how` says how it was made."""

    season: int
    history: History
    how: str


def drawn(index: int) -> Drawn:
    """Return the history of a number, the same in each run."""
    random = np.random.default_rng(index)
    season = list(STEPS)[index % len(STEPS)]
    step = int(random.choice(STEPS[season]))
    cycles = random.uniform(2.2, 6)
    count = max(int(cycles * season / step), 1_000)
    times = np.arange(count) * step + int(random.integers(0, WEEK))
    values = _season(random, times, season) if season else _without_season(random, count)
    weekdays, shift, gaps = random.random(3) < (0.6, 0.4, 0.4)
    if season == DAY and weekdays:
        weekend = times // DAY % 7 >= 5
        values = (values + 2.5) * np.where(weekend, random.uniform(0.4, 0.8), 1)
    if shift:
        at = random.integers(count // 4, 3 * count // 4)
        values[at:] += random.uniform(1, 5) * values.std()
    if gaps:
        values[random.random(count) < 0.05] = np.nan
        for start in random.integers(0, count, 5):
            values[start : start + count // 33] = np.nan
    kept = tuple(None if np.isnan(value) else float(value) for value in values + 10)
    how = f"{season=} {step=} {count=} {weekdays=} {shift=} {gaps=}"
    return Drawn(season, History(step, (PastSeries({}, kept),)), how)


def _season(random: np.random.Generator, times: Floats, season: int) -> Floats:
    """Return a wave, busy halves, a profile, or two waves; with noise of up to 70%."""
    phase = 2 * np.pi * times / season
    profile = np.append(levels := random.normal(size=8), levels[0])
    shapes = (
        np.sin(phase),
        np.maximum(0, np.sin(phase)),
        np.interp(times % season / season, np.linspace(0, 1, 9), profile),
        np.sin(phase) + 0.5 * np.sin(2 * phase + 1),
    )
    values: Floats = shapes[random.integers(len(shapes))]
    return values + random.normal(size=len(times)) * random.uniform(0.05, 0.7) * values.std()


def _without_season(random: np.random.Generator, count: int) -> Floats:
    """Return noise, a random walk, or something between them."""
    noise = random.normal(size=count)
    kept = random.choice((0, 0.5, 0.9, 0.99, 1))
    for index in range(1, count):
        noise[index] += kept * noise[index - 1]
    found: Floats = noise / noise.std()
    return found
