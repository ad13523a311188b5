"""The recordings with the window, the step and the horizon that suit each: seconds."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sample_scorers.prediction.combination.members import Floats

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "dsf" / "scorer_kit" / "recordings"


@dataclass(frozen=True, slots=True)
class Case:
    """A recording; nobody looked at an `untouched` one before the method was final."""

    name: str
    window: int
    step: int
    horizon: int
    untouched: bool = False

    @property
    def path(self) -> Path:
        return RECORDINGS / f"{self.name}.json"

    def windows(self, every: int = 1) -> tuple[Floats, Floats]:
        """Return windows as [step, window], and the means that came true after them."""
        (query,) = json.loads(self.path.read_text())["queries"]
        rows = np.array([one["values"] for one in query["series"]], dtype=np.float64)
        length, ahead = self.window // self.step, self.horizon // self.step
        ends = range(length, rows.shape[1] - ahead + 1, every)
        windows = np.concatenate([rows[:, end - length : end] for end in ends]).T
        truths = np.concatenate([np.nanmean(rows[:, end : end + ahead], axis=1) for end in ends])
        scale = np.nanmean(np.abs(np.diff(rows, axis=1)), axis=1)
        known = np.tile(scale, len(ends)) > 0
        unit = np.tile(scale, len(ends))[known]
        return windows[:, known] / unit, truths[known] / unit


CASES = (
    Case("build-machine", 3600, 30, 600),
    Case("aws-load-balancer", 86_400, 300, 3600),
    Case("gpu-inference", 18_000, 60, 900),
    Case("shared-machine", 600, 5, 100),
    Case("aws-database", 28_800, 300, 3600, untouched=True),
)
