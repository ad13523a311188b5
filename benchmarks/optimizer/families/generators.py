"""Seeded instances in families that differ in what makes a placement problem hard.

A score is that of the workload's profile on the cluster's hardware level and device, plus noise per
cluster and noise per score. Some profiles can't use some devices. Scores are whole numbers from 0
to 100.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.optimizer.instances import DEVICES, PER_GPU, Instance, problem
from optimizer.model.problem import Problem

_BEST_SCORE = 100


@dataclass(frozen=True, slots=True)
class Family:
    """What the instances of a family have in common.

    `sizes`, `gpus`: devices that a workload asks for and GPUs of a cluster, drawn with equal
    probability; the GPUs are then scaled to the load. `load`: devices asked for, as a share of the
    supply at two devices per GPU. `levels`, `profiles`: how many there are. `unusable`: probability
    that a profile can't use a device. `score_noise`, `cluster_noise`: the most that noise adds or
    takes. `priorities`: how many. `replicas`: the most replicas of a workload.
    """

    sizes: tuple[int, ...] = (1, 2, 4, 8)
    gpus: tuple[int, ...] = (1, 2, 4, 8)
    load: float = 0.9
    levels: int = 3
    profiles: int = 8
    unusable: float = 0.0
    score_noise: int = 10
    cluster_noise: int = 0
    priorities: int = 1
    replicas: int = 1


FAMILIES: Mapping[str, Family] = {
    "unusable": Family(unusable=0.3),
    "level": Family(unusable=0.3, score_noise=0),
    "uneven": Family(sizes=(1, 1, 1, 2, 3, 5, 7, 11), gpus=(2, 3, 5, 8, 16), unusable=0.15),
    "cluster": Family(unusable=0.2, score_noise=3, cluster_noise=12),
    "equal": Family(gpus=(4, 8), levels=2, profiles=4, unusable=0.2, score_noise=0, replicas=3),
    "tight": Family(load=1.6, unusable=0.2),
    "loose": Family(load=0.5, unusable=0.2, cluster_noise=5),
    "tiers": Family(load=1.2, unusable=0.2, priorities=3),
}
"""The families by name."""


def draw(name: str, clusters: int, workloads: int, seed: int) -> Problem:
    """Return the problem of a family, a size and a seed; the same every time."""
    family = FAMILIES[name]
    random = np.random.default_rng([seed, clusters, workloads, *name.encode()])
    profile = random.integers(0, family.profiles, workloads)
    level = random.integers(0, family.levels, clusters)
    gpus, sizes = _amounts(random, family, clusters, workloads)
    scores = _table(random, family)[profile[:, None], level[None, :]]
    scores += _noise(random, family.cluster_noise, (1, clusters, 1))
    scores += _noise(random, family.score_noise, scores.shape)
    scores = np.clip(scores, 0, _BEST_SCORE)
    given = problem(Instance(f"{name} {clusters}x{workloads} {seed}", sizes, gpus, scores))
    copies = random.integers(1, family.replicas + 1, workloads).tolist()
    priorities = random.integers(0, family.priorities, workloads).tolist()
    tasks = zip(given.workloads, copies, priorities, strict=True)
    return replace(
        given,
        workloads=tuple(replace(task, replicas=often, priority=own) for task, often, own in tasks),
    )


def _amounts(
    random: np.random.Generator, family: Family, clusters: int, workloads: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the GPUs of clusters and the sizes of workloads, so that the load is the family's."""
    sizes = random.choice(family.sizes, workloads)
    gpus = random.choice(family.gpus, clusters)
    asked = float(sizes.sum()) * (1 + family.replicas) / 2
    scale = asked / (family.load * float(gpus.sum()) * PER_GPU[1])
    return np.maximum(1, np.rint(gpus * scale).astype(np.int64)), sizes


def _table(random: np.random.Generator, family: Family) -> NDArray[np.float64]:
    """Return the score of each profile, level and device; NaN where a device can't be used."""
    full = random.integers(70, 101, (family.profiles, 1, 1))
    level = np.sort(random.integers(0, 25, (family.profiles, family.levels, 1)), axis=1)
    device = np.sort(random.integers(0, 45, (family.profiles, 1, len(DEVICES))), axis=2)
    table = np.clip(full - level - device, 0, _BEST_SCORE).astype(np.float64)
    unusable = random.random((family.profiles, len(DEVICES))) < family.unusable
    unusable[np.arange(family.profiles), random.integers(0, len(DEVICES), family.profiles)] = False
    table[np.broadcast_to(unusable[:, None, :], table.shape)] = np.nan
    return table


def _noise(random: np.random.Generator, most: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    drawn: NDArray[np.int64] = random.integers(-most, most + 1, shape)
    return drawn.astype(np.float64)
