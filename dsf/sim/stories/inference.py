"""Story 1 of the proposal: inference on different accelerators, by the tokens that money buys.

The clusters, their GPUs and costs by the time of day are recordings.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from dsf.cli.output import TextTable
from dsf.scorer_kit.prometheus_replay import RecordedSeries, Recording
from dsf.sim.demo.scorers import prometheus_source
from dsf.sim.stories.story import (
    SCORING_INTERVAL,
    Moment,
    MomentResult,
    Narration,
    PlacedWorkload,
    Results,
    Story,
    gpus,
    moves,
    rollout_sentences,
)

WATTS_PER_KILOWATT = 1000
SECONDS_PER_HOUR = 3600

STEP_SECONDS = 60
MOMENT_STEPS = 10
"""Samples of each moment, and of the window of a query: no window has samples of two moments."""

REQUESTS = 8
"""Requests that each trial replica works on."""


@dataclass(frozen=True, slots=True)
class Serving:
    """How an app runs on a GPU: tokens per second, watts, and the GPU's activity (0 to 1)."""

    tokens: float
    watts: float
    activity: float


@dataclass(frozen=True, slots=True)
class GpuCluster:
    """A cluster of one kind of GPU, as its Prometheus measures it at a moment.

    `gpu_cost` is money for an hour of a GPU, and `energy_price` for a kilowatt-hour.
    """

    product: str
    gpus: int
    gpu_cost: float
    energy_price: float
    serving: Mapping[str, Serving]

    @property
    def model(self) -> str:
        """The short name of the GPU, such as H100."""
        return self.product.split("-")[1]

    def million_tokens_for_money(self, app: str) -> float:
        """Return tokens of an hour / (GPU for an hour + energy * its price), in millions."""
        one = self.serving[app]
        money = self.gpu_cost + one.watts / WATTS_PER_KILOWATT * self.energy_price
        return one.tokens * SECONDS_PER_HOUR / 1e6 / money


GpuClusters = Mapping[str, GpuCluster]

MORNING: GpuClusters = {
    "north": GpuCluster(
        "NVIDIA-H100-80GB-HBM3",
        1,
        1.20,
        0.15,
        {
            "chat": Serving(1500, 640, 0.94),
            "code": Serving(2600, 560, 0.81),
            "summary": Serving(3000, 420, 0.55),
        },
    ),
    "west": GpuCluster(
        "NVIDIA-A100-SXM4-80GB",
        2,
        0.70,
        0.15,
        {
            "chat": Serving(800, 370, 0.97),
            "code": Serving(1500, 330, 0.90),
            "summary": Serving(1900, 260, 0.72),
        },
    ),
    "south": GpuCluster(
        "NVIDIA-L40S",
        2,
        0.45,
        0.15,
        {
            "chat": Serving(300, 320, 0.99),
            "code": Serving(900, 290, 0.96),
            "summary": Serving(1300, 230, 0.88),
        },
    ),
}
"""The fleet at the first moment. All figures are invented; the ranking of the GPUs is plausible."""

NORTH, SOUTH = MORNING["north"], MORNING["south"]
DEAR_ENERGY = {**MORNING, "north": replace(NORTH, energy_price=0.45)}
HOT_SOUTH = {
    **DEAR_ENERGY,
    "south": replace(SOUTH, serving={**SOUTH.serving, "summary": Serving(950, 230, 0.88)}),
}
CHEAP_ENERGY = {**HOT_SOUTH, "north": NORTH}

DAY: Mapping[str, GpuClusters] = {
    "09:00": MORNING,
    "17:00": DEAR_ENERGY,
    "19:00": HOT_SOUTH,
    "22:00": CHEAP_ENERGY,
}
"""The fleet by the time of day."""

APPS = tuple(NORTH.serving)

DEVICE_LABELS = "Hostname, gpu, GPU_I_ID, GPU_I_PROFILE, exported_namespace, exported_pod"
QUERIES = {
    "tokens": "sum by (namespace, pod) (irate(vllm:generation_tokens_total[2m]))",
    "running": "sum by (namespace, pod) (vllm:num_requests_running)",
    "activity": f"max by ({DEVICE_LABELS}) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)",
    "power": "max by (Hostname, gpu) (DCGM_FI_DEV_POWER_USAGE)",
    "cost": 'label_replace(max by (node) (node_gpu_hourly_cost), "Hostname", "$1", "node", "(.*)")',
    "price": "max(energy_price_per_kwh)",
}
"""The queries of the sample ai_workload's `/efficiency/config`, by what they measure."""


def recording(name: str) -> Recording:
    """Return what a cluster's Prometheus answers: a trial replica of each app on a GPU each."""
    measured = [fleet[name] for fleet in DAY.values()]
    found: dict[str, list[RecordedSeries]] = {signal: [] for signal in QUERIES}

    def add(signal: str, values: Iterable[float], **labels: str) -> None:
        lasting = tuple(value for value in values for _ in range(MOMENT_STEPS))
        found[signal].append(RecordedSeries(labels, lasting))

    add("cost", [one.gpu_cost for one in measured], Hostname=name)
    add("price", [one.energy_price for one in measured])
    for number, app in enumerate(APPS):
        served = [one.serving[app] for one in measured]
        gpu = {"Hostname": name, "gpu": str(number)}
        pod = {"namespace": "trial", "pod": f"{app}-0"}
        owner = {f"exported_{label}": value for label, value in pod.items()}
        add("tokens", [one.tokens for one in served], **pod)
        add("running", [REQUESTS for _ in served], **pod)
        add("activity", [one.activity for one in served], **gpu, **owner)
        add("power", [one.watts for one in served], **gpu)
    answers = {QUERIES[signal]: tuple(series) for signal, series in found.items()}
    return Recording(STEP_SECONDS, answers)


def bought(fleet: GpuClusters, running: Mapping[str, Iterable[str]]) -> float:
    """Return the million tokens that a unit of money buys, the mean of the apps where they run."""
    return fmean(
        fleet[name].million_tokens_for_money(app)
        for app, names in running.items()
        for name in names
    )


PRODUCT_LABEL = "nvidia.com/gpu.product"

SCORE = "inference_efficiency"

MOST_TOKENS = 10.0
"""Million tokens for a unit of money that are published as 100."""

MOVE_COST = 1
"""Points of score that a move must gain."""


def narrate(results: Results) -> Narration:
    """Tell the newest moment: what changed, the scores, what runs where and why."""
    now = results[-1]
    times = [result.time for result in results]
    yield ""
    if len(times) == 1:
        yield f"{now.time}: what each cluster measures"
        yield from _measured(DAY[now.time])
    else:
        yield from (f"{now.time}: {one}" for one in changes(DAY[times[-2]], DAY[now.time]))
    yield _score_table(now)
    yield ""
    yield from (_why(one) for one in now.placed)
    sentences = [_move(results, *one) for one in moves(results)]
    if sentences:
        yield from (*sentences, *rollout_sentences(now))


def _measured(fleet: GpuClusters) -> Iterator[TextTable]:
    yield TextTable(
        ("cluster", "accelerator", "GPUs", "GPU hour", "kWh"),
        [
            (name, one.product, str(one.gpus), f"{one.gpu_cost:.2f}", f"{one.energy_price:.2f}")
            for name, one in fleet.items()
        ],
    )
    yield TextTable(
        ("app", *fleet),
        [(app, *(_served(one.serving[app]) for one in fleet.values())) for app in APPS],
    )


def _served(one: Serving) -> str:
    return f"{one.tokens:g} tokens/s, {one.watts:g} W, {one.activity:.0%} busy"


def changes(before: GpuClusters, after: GpuClusters) -> Iterator[str]:
    """Return a sentence for each figure that differs between two moments."""
    for name, now in after.items():
        old = before[name]
        if now.energy_price != old.energy_price:
            yield f"in {name} a kWh costs {now.energy_price:.2f} instead of {old.energy_price:.2f}"
        if now.gpu_cost != old.gpu_cost:
            yield f"in {name} a GPU hour costs {now.gpu_cost:.2f} instead of {old.gpu_cost:.2f}"
        for app, served in now.serving.items():
            if served != old.serving[app]:
                yield f"in {name} {app} has {_served(served)}; it had {_served(old.serving[app])}"


def _score_table(result: MomentResult) -> TextTable:
    fleet = DAY[result.time]
    return TextTable(
        ("efficiency", *(f"{name} ({one.model})" for name, one in fleet.items())),
        [(app, *(str(result.scores[f"{app};all"][name]) for name in fleet)) for app in APPS],
    )


def _why(one: PlacedWorkload) -> str:
    sentence = f"{one.workload} runs on {one.cluster}: {one.score:g} there"
    if one.runner_up_score is not None:
        sentence += f", {one.runner_up_score:g} on {one.runner_up}"
    if one.loss is not None:
        sentence += f"; the best plan without this place is worth {one.loss:g} less"
    return sentence


def _move(results: Results, workload: str, source: str, target: str) -> str:
    before, after = (one.scores[f"{workload};all"] for one in results[-2:])
    sentence = (
        f"{workload} moves from {source} (was {before[source]}, is {after[source]})"
        f" to {target} (was {before[target]}, is {after[target]})"
    )
    made_room = after[target] <= after[source]
    return (
        f"{sentence}: it makes room, because the sum over all apps counts"
        if made_room
        else sentence
    )


def conclude(results: Results) -> Narration:
    """Tell what the money buys at each moment, and would buy had nothing moved."""
    yield "million tokens that a unit of money buys, mean of the apps:"
    yield TextTable(
        ("time", "where they ran", "had nothing moved"),
        [
            (
                result.time,
                *(f"{bought(DAY[result.time], one.running):.2f}" for one in (result, results[0])),
            )
            for result in results
        ],
    )


INFERENCE = Story(
    title="Inference on different accelerators: each app where money buys the most tokens",
    opening=(
        "Three clusters have different GPUs. Trial replicas show how each app runs on each.",
        "The sample ai_workload joins tokens, activity, power, and the costs of GPU and energy,",
        "each from a source of its own (spec.sources of the DynamicScorer).",
        "Efficiency is tokens divided by money, for the GPU and its energy.",
        f"{MOST_TOKENS:g} million tokens for a unit of money are published as 100.",
        f"A PlacementOptimization keeps them placed: a move must gain over {MOVE_COST} point.",
    ),
    cluster_labels={name: {PRODUCT_LABEL: one.product} for name, one in MORNING.items()},
    recordings={name: recording(name) for name in MORNING},
    scorer="ai_workload",
    options=(),
    dynamic_scorer={
        "description": "Million tokens for a unit of money",
        "displayName": "Inference efficiency",
        "unit": "Mtokens per unit of money",
        "direction": "HigherIsBetter",
        "range": {"min": 0},
        "sources": [
            {
                "name": signal,
                **prometheus_source(
                    query, window=(MOMENT_STEPS - 1) * STEP_SECONDS, step=STEP_SECONDS
                ),
            }
            for signal, query in QUERIES.items()
        ],
        "scoring": {
            "path": "/efficiency/scoring",
            "params": {"name": SCORE, "interval": SCORING_INTERVAL},
            "normalize": {"min": 0, "max": MOST_TOKENS},
        },
        "scoreDimensionFormat": "${app};${device}",
    },
    score_name=SCORE,
    workloads=APPS,
    request={
        "clusters": [
            {"name": name, "allocatable": [gpus(one.gpus)]} for name, one in MORNING.items()
        ],
        "targetWorkloads": [{"name": app, "moveCost": MOVE_COST} for app in APPS],
        "preference": {"addonPlacementScore": SCORE},
        "explain": True,
    },
    moments=tuple(Moment(time, number * MOMENT_STEPS - 1) for number, time in enumerate(DAY, 1)),
    narrate=narrate,
    conclude=conclude,
)
