"""The sample prediction against statsforecast: accuracy, speed and size of what is installed.

Accuracy: the mean absolute error of the horizon's mean in units of the mean change from step to
step, on the recordings, at every n-th step. Cost: CPU time for 5,000 series of 120 points
(extrapolated for libraries), in units of numpy's least squares on the same array. Run it by
`make benchmark-forecast`.
"""

import time
from collections.abc import Callable
from importlib.metadata import distributions
from typing import Any

import numpy as np
from statsforecast.models import AutoARIMA, AutoETS, AutoTheta, SimpleExponentialSmoothingOptimized

from benchmarks.forecast.cases import CASES
from benchmarks.forecast.speed import AHEAD, SERIES, STEPS, arrays, seconds
from sample_scorers.prediction.combination.forecast import forecast
from sample_scorers.prediction.combination.members import Floats

EVERY = {"build-machine": 16, "gpu-inference": 32, "shared-machine": 48, "aws-database": 5}
"""Steps between two windows: libraries need seconds for a hundred series."""

USUAL_EVERY = 12

TIMED = 20
"""Series whose forecast is timed, of the libraries."""

Forecast = Callable[[Floats, int], Floats]


def ours(windows: Floats, ahead: int) -> Floats:
    return forecast(windows, ahead).mean


def library(model: Any) -> Forecast:
    """Return forecasts of a model of statsforecast, which takes one series at a time."""

    def run(windows: Floats, ahead: int) -> Floats:
        return np.array([_mean(model, column, ahead) for column in filled(windows).T])

    return run


def _mean(model: Any, values: Floats, ahead: int) -> float:
    if values.min() == values.max():
        return float(values[-1])
    return float(np.mean(model.forecast(y=np.ascontiguousarray(values), h=ahead)["mean"]))


def filled(windows: Floats) -> Floats:
    """Return windows in which a hole has the value before it."""
    found = windows.copy()
    for step in range(1, len(found)):
        hole = np.isnan(found[step])
        found[step, hole] = found[step - 1, hole]
    return found


METHODS: dict[str, Forecast] = {
    "prediction": ours,
    "window mean": lambda windows, _: np.nanmean(windows, axis=0),
    "SES, optimized": library(SimpleExponentialSmoothingOptimized()),
    "AutoTheta": library(AutoTheta(season_length=1)),
    "AutoETS": library(AutoETS(season_length=1)),
    "AutoARIMA": library(AutoARIMA(season_length=1)),
}

LIBRARIES = list(METHODS.values())[2:]
"""Methods that take one series at a time."""


def cost(method: Forecast) -> float:
    """Return the cost of 5,000 series in units of least squares."""
    grid = arrays()["noise"]
    line = np.stack([np.ones(STEPS), np.arange(STEPS)], axis=1)
    fit = seconds(lambda: np.linalg.lstsq(line, grid, rcond=None))
    if method not in LIBRARIES:
        return seconds(lambda: method(grid, AHEAD)) / fit
    method(grid[:, :2], AHEAD)  # compiles and caches what the first call does
    start = time.process_time()
    method(grid[:, :TIMED], AHEAD)
    return (time.process_time() - start) * SERIES / TIMED / fit


def megabytes() -> tuple[float, float]:
    """Return the size of numpy, and of all that is installed with the libraries."""
    sizes = {
        one.metadata["Name"]: sum(
            file.locate().stat().st_size
            for file in one.files or ()
            if file.locate().is_file() and file.suffix != ".pyc"
        )
        / 1e6
        for one in distributions()
    }
    return sizes["numpy"], sum(sizes.values())


def main() -> None:
    print(f"{'method':16}" + "".join(f"{case.name:>20}" for case in CASES) + f"{'cost':>10}")
    windows = [
        (case.horizon // case.step, *case.windows(EVERY.get(case.name, USUAL_EVERY)))
        for case in CASES
    ]
    for name, method in METHODS.items():
        errors = [
            float(np.abs(method(past, ahead) - truth).mean()) for ahead, past, truth in windows
        ]
        print(
            f"{name:16}" + "".join(f"{error:20.3f}" for error in errors) + f"{cost(method):10.0f}"
        )
    numpy_size, all_sizes = megabytes()
    print(f"installed: numpy {numpy_size:.0f} MB; with statsforecast {all_sizes:.0f} MB")
    print("windows: " + ", ".join(str(past.shape[1]) for _, past, _ in windows))


if __name__ == "__main__":
    main()
