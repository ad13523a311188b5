"""Generates the load of radio sites by the quarter hour: the same seed gives the same load.

Load = idle load + busy hours of the site, each a bell curve, times the day's factor + noise that
fades (an AR(1) process). In percent of the GPU that the radio software shares with others.
"""

import math
from dataclasses import dataclass
from random import Random

STEP_SECONDS = 900
STEPS_PER_HOUR = 3600 // STEP_SECONDS
STEPS_PER_DAY = 24 * STEPS_PER_HOUR

IDLE_LOAD = 12.0
"""Percent: signals that a site sends without any user."""

DAY_FACTOR_SPREAD = 0.06
"""Standard deviation of the factor by which days differ."""

NOISE, NOISE_KEPT = 2.5, 0.7
"""Standard deviation of new noise in a quarter hour, in percent, and the part that stays of it."""

LEAST_LOAD, MOST_LOAD = 2.0, 98.0


@dataclass(frozen=True, slots=True)
class BusyHour:
    """A time of day around which a site is busy: `height` in percent, `width` in hours."""

    hour: float
    height: float
    width: float

    def at(self, hour: float) -> float:
        """Return the load that it adds at an hour of the day."""
        apart = abs(hour - self.hour)
        return self.height * math.exp(-0.5 * (min(apart, 24 - apart) / self.width) ** 2)


def ran_load(busy: tuple[BusyHour, ...], days: int, seed: str) -> tuple[float, ...]:
    """Return the mean load of each quarter hour of `days` days, and of the one before them."""
    random, noise, factor = Random(seed), 0.0, 1.0  # noqa: S311 - no secret
    loads = []
    for step in range(days * STEPS_PER_DAY + 1):
        if step % STEPS_PER_DAY == 1:
            factor = random.gauss(1.0, DAY_FACTOR_SPREAD)
        noise = NOISE_KEPT * noise + random.gauss(0.0, NOISE)
        hour = (step - 0.5) / STEPS_PER_HOUR % 24
        load = IDLE_LOAD + factor * sum(one.at(hour) for one in busy) + noise
        loads.append(round(min(max(load, LEAST_LOAD), MOST_LOAD), 1))
    return tuple(loads)
