"""A story as data: what is started, the moments at which is planned, and how it is narrated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsf.api.names import HUB_NAMESPACE
from dsf.api.scoring.placement_scores import ByDimension
from dsf.api.untrusted_text import listed
from dsf.cli.output import TextTable
from dsf.kube.kinds import CONFIG_MAP, DYNAMIC_SCORER, PLACEMENT_OPTIMIZATION
from dsf.kube.port import Object
from dsf.scorer_kit.prometheus_replay import Recording
from dsf.sim.demo.clusters import WORKLOAD_NAMESPACE, ClusterLabels, replica_set

SCORING_INTERVAL = 1
"""Seconds between two rounds of an agent: short, because a moment lasts as long as a round."""

OPTIMIZATION = "story"
"""Name of the PlacementOptimization that keeps the workloads of a story placed."""

Narration = Iterable[str | TextTable]
"""Sentences and tables, in their order."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of day, and the newest step of the recordings that is known then."""

    time: str
    step: int


@dataclass(frozen=True, slots=True)
class PlacedWorkload:
    """A workload on a cluster, its score there, and the plan's own reason, if it was explained.

    `loss` is what the plan would lose without this place; None if it was not computed.
    """

    workload: str
    cluster: str
    score: float
    runner_up: str = ""
    runner_up_score: float | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """What one step of a rollout starts and stops: pairs of a workload and a cluster."""

    start: tuple[tuple[str, str], ...]
    stop: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MomentResult:
    """What came of a moment.

    `scores` has the values by entry and cluster. `running` has the clusters on which each workload
    runs once the rollout has ended, and `fewest` on how few it ran meanwhile.
    """

    time: str
    scores: ByDimension
    placed: tuple[PlacedWorkload, ...]
    steps: tuple[RolloutStep, ...]
    running: Mapping[str, tuple[str, ...]]
    fewest: Mapping[str, int]


Results = Sequence[MomentResult]
"""The results of all moments so far; the newest is the last."""


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario of the demo, and its narration.

    `scorer` is the module of a sample scorer, and `options` are its options. `narrate` tells the
    newest of the results, and `conclude` what all of them come to.
    """

    title: str
    opening: tuple[str, ...]
    cluster_labels: ClusterLabels
    recordings: Mapping[str, Recording]
    scorer: str
    options: tuple[str, ...]
    dynamic_scorer: Mapping[str, Any]
    score_name: str
    workloads: tuple[str, ...]
    request: Mapping[str, Any]
    moments: tuple[Moment, ...]
    narrate: Callable[[Results], Narration]
    conclude: Callable[[Results], Narration]

    def kept(self) -> Object:
        """Return what keeps the workloads placed: the request, declared once.

        Scores decide at once: each moment stands for an hour or more, and has no noise.
        """
        at_once = {"stabilizationWindowSeconds": 0, "leastGain": 0, "variationMultiple": 0}
        return PLACEMENT_OPTIMIZATION.object(
            metadata={"name": OPTIMIZATION, "namespace": WORKLOAD_NAMESPACE},
            spec={
                **{name: part for name, part in self.request.items() if name != "explain"},
                "mode": "Apply",
                "rollout": "Stepwise",
                "minReadySeconds": 0,
                "hysteresis": at_once,
                "triggers": {"scoreChange": 1},
            },
        )

    def registered(self, url: str) -> Object:
        """Return the DynamicScorer for the scorer at a base URL."""
        spec = {"configURL": f"{url}/config", "configSyncMode": "None", "location": "External"}
        return DYNAMIC_SCORER.object(
            metadata={"name": self.scorer.replace("_", "-"), "namespace": HUB_NAMESPACE},
            spec={**spec, "scoreDestination": "AddOnPlacementScore", **self.dynamic_scorer},
        )


def story_workload(name: str) -> Object:
    """Return the ManifestWorkReplicaSet of a workload that needs one GPU."""
    config_map = CONFIG_MAP.object(
        metadata={"name": name, "namespace": WORKLOAD_NAMESPACE}, data={"model": name}
    )
    return replica_set(name, name, 1, config_map)


def gpus(amount: int) -> dict[str, Any]:
    """Return what a cluster of whole GPUs supplies."""
    return {"kind": "gpu", "device": "all", "amount": amount}


def moves(results: Results) -> list[tuple[str, str, str]]:
    """Return workload, old and new cluster of each one that the newest plan moves."""
    if len(results) == 1:
        return []
    before = {one.workload: one.cluster for one in results[-2].placed}
    return [
        (one.workload, before[one.workload], one.cluster)
        for one in results[-1].placed
        if before.get(one.workload, one.cluster) != one.cluster
    ]


def rollout_sentences(result: MomentResult) -> list[str]:
    """Return a sentence for each step of a rollout, and on how few clusters the workloads ran."""
    sentences = [
        f"step {number}: "
        + ", ".join(
            [f"start {workload} on {cluster}" for workload, cluster in step.start]
            + [f"stop {workload} on {cluster}" for workload, cluster in step.stop]
        )
        for number, step in enumerate(result.steps, 1)
    ]
    interrupted = sorted(name for name, clusters in result.fewest.items() if not clusters)
    meanwhile = (
        f"{listed(interrupted)} did not run" if interrupted else "every workload kept running"
    )
    return [*sentences, f"meanwhile {meanwhile}"]
