"""How much CPU the sample prediction needs, as a ratio to numpy's least squares on the same array.

The array has 5,000 series of 120 points; the least squares fit a line to each. Both run on one
thread (OPENBLAS_NUM_THREADS=1), because the threads of BLAS wait for each other on a busy machine.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.forecast.speed
"""

import time
from collections.abc import Callable

import numpy as np

from sample_scorers.prediction.combination.forecast import forecast
from sample_scorers.prediction.combination.members import Floats

QUANTILES = (0.05, 0.1, 0.5, 0.9, 0.95)
STEPS, SERIES, AHEAD = 120, 5_000, 20
MOST = 30.0
GAPS = 0.1
REPEATS = 7


def seconds(call: Callable[[], object]) -> float:
    """Return the least CPU seconds of some calls: what the work costs without disturbance."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def arrays() -> dict[str, Floats]:
    random = np.random.default_rng(1)
    noise = random.random((STEPS, SERIES))
    time_of = np.arange(STEPS)[:, None]
    wave = np.sin(2 * np.pi * time_of / random.integers(8, 40, SERIES))
    gaps = noise.copy()
    gaps[random.random(noise.shape) < GAPS] = np.nan
    return {"noise": noise, "each with a season": 2 + wave + 0.3 * noise, "with gaps": gaps}


def ratio(grid: Floats) -> float:
    """Return the cost of forecasts with quantiles, in units of the cost of least squares."""
    line = np.stack([np.ones(STEPS), np.arange(STEPS)], axis=1)
    whole = np.nan_to_num(grid)
    fit = seconds(lambda: np.linalg.lstsq(line, whole, rcond=None))

    def predict() -> None:
        found = forecast(grid, AHEAD)
        for probability in QUANTILES:
            found.quantile(probability)

    return seconds(predict) / fit


if __name__ == "__main__":
    for name, grid in arrays().items():
        found = ratio(grid)
        print(f"{SERIES:,} series of {STEPS} points, {name}: {found:.1f} times least squares")
        if found > MOST:
            print(f"  more than {MOST:.0f} times")
