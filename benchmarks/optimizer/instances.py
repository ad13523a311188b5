"""Seeded instances of the placement problem, as plain arrays.

Clusters of three hardware levels with 1, 2, 4 or 8 GPUs and three candidate policies: whole GPUs
(one device each), 3g (two) or 2g (three). Workloads of eight profiles ask for 1, 2, 4 or 8 devices;
together they ask for 90% of what all clusters supply at two devices per GPU.

`prof`: a score depends on the workload's profile, the cluster's level and the device, as in fleets
of standard hardware. `dist`: every score is random around that. `rand`: every score is uniform.
Scores are whole numbers from 0 to 100.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optimizer.model.parameters import ClusterResource, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem

Kind = Literal["prof", "dist", "rand"]

DEVICES = ("all", "3g", "2g")
PER_GPU = (1, 2, 3)
GPUS = (1, 2, 4, 8)
SIZES = (1, 2, 4, 8)
LEVELS = 3
PROFILES = 8
_LOAD = 0.9
_NOISE = 15
_BEST_SCORE = 100


@dataclass(frozen=True, slots=True)
class Instance:
    """Devices per workload, GPUs per cluster, and scores [workload, cluster, device]."""

    name: str
    sizes: NDArray[np.int64]
    gpus: NDArray[np.int64]
    scores: NDArray[np.float64]

    @property
    def supplies(self) -> NDArray[np.int64]:
        """Devices that each policy supplies: [cluster, device]."""
        return self.gpus[:, None] * np.array(PER_GPU)


def instance(clusters: int, workloads: int, kind: Kind, seed: int = 1) -> Instance:
    """Return the instance of a size, a kind and a seed; the same every time."""
    random = np.random.default_rng([seed, clusters, workloads])
    gpus = random.choice(GPUS, clusters)
    sizes = _sizes(random, workloads, _LOAD * float(gpus.sum()) * PER_GPU[1])
    levels = random.integers(0, LEVELS, clusters)
    profiles = random.integers(0, PROFILES, workloads)
    scores = _scores(random, kind, profiles, levels)
    return Instance(f"{clusters}x{workloads} {kind}", sizes, gpus, scores)


def _sizes(random: np.random.Generator, workloads: int, demand: float) -> NDArray[np.int64]:
    """Draw sizes whose mean is that of the demand, as far as the sizes allow."""
    sizes = np.array(SIZES)
    low, high = 1e-3, 1e3
    for _ in range(60):
        tilt = (low * high) ** 0.5
        shares = tilt ** np.arange(len(sizes))
        mean = float((shares * sizes).sum() / shares.sum())
        low, high = (tilt, high) if mean < demand / workloads else (low, tilt)
    return random.choice(sizes, workloads, p=shares / shares.sum())


def _scores(
    random: np.random.Generator, kind: Kind, profiles: NDArray[np.int64], levels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return scores: larger devices and better hardware score higher, by profile."""
    full = random.integers(70, 96, (PROFILES, 1, 1))
    device = np.sort(random.integers(0, 45, (PROFILES, 1, len(DEVICES))), axis=2)
    level = np.sort(random.integers(0, 20, (PROFILES, LEVELS, 1)), axis=1)
    table = np.clip(full - device - level, 0, _BEST_SCORE)
    shape = (len(profiles), len(levels), len(DEVICES))
    if kind == "rand":
        return random.integers(0, _BEST_SCORE + 1, shape).astype(np.float64)
    scores = table[profiles[:, None], levels[None, :]].astype(np.float64)
    if kind == "dist":
        scores += random.integers(-_NOISE, _NOISE + 1, shape)
    return np.clip(scores, 0, _BEST_SCORE)


def problem(given: Instance) -> Problem:
    """Return an instance as the optimizer's problem."""
    clusters = range(len(given.gpus))
    slots = tuple(
        ClusterResource(cluster, "gpu", device) for cluster in clusters for device in DEVICES
    )
    options = tuple(
        ProblemPolicy(slot.cluster, "", slot.device, ((index, float(amount)),))
        for index, (slot, amount) in enumerate(zip(slots, given.supplies.ravel(), strict=True))
    )
    values = given.scores.reshape(len(given.sizes), len(slots)).copy()
    values[given.sizes[:, None] > given.supplies.ravel()[None, :]] = np.nan
    tasks = tuple(
        ProblemWorkload(f"w{index}", f"w{index}", "gpu", float(size))
        for index, size in enumerate(given.sizes)
    )
    names = tuple(f"c{cluster}" for cluster in clusters)
    return Problem(names, slots, options, tasks, values, np.zeros(len(slots)))
