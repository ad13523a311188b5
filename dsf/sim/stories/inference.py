"""Story 1 of the proposal: inference on different accelerators, by the tokens that money buys."""

from collections.abc import Iterator

from dsf.cli.output import TextTable
from dsf.sim.stories.gpu_clusters import (
    APPS,
    DAY,
    MOMENT_STEPS,
    MORNING,
    QUERIES,
    STEP_SECONDS,
    GpuClusters,
    Serving,
    bought,
    recording,
)
from dsf.sim.stories.story import (
    SCORING_INTERVAL,
    Moment,
    MomentResult,
    Narration,
    PlacedWorkload,
    Results,
    Story,
    moves,
    prometheus_source,
    rollout_sentences,
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
    told = [_move(results, *one) for one in moves(results)]
    if told:
        yield from (*told, *rollout_sentences(now))


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
    told = f"{one.workload} runs on {one.cluster}: {one.score:g} there"
    if one.runner_up_score is not None:
        told += f", {one.runner_up_score:g} on {one.runner_up}"
    if one.loss is not None:
        told += f"; the best plan without this place is worth {one.loss:g} less"
    return told


def _move(results: Results, workload: str, source: str, target: str) -> str:
    before, after = (one.scores[f"{workload};all"] for one in results[-2:])
    told = (
        f"{workload} moves from {source} (was {before[source]}, is {after[source]})"
        f" to {target} (was {before[target]}, is {after[target]})"
    )
    made_room = after[target] <= after[source]
    return f"{told}: it makes room, because the sum over all apps counts" if made_room else told


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
        f"The optimizer plans at each time. A move must gain more than {MOVE_COST} point.",
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
            {"name": name, "allocatable": f"gpu/all={one.gpus}"} for name, one in MORNING.items()
        ],
        "targetWorkloads": [{"name": app, "moveCost": MOVE_COST} for app in APPS],
        "preference": {"addonPlacementScore": SCORE},
        "explain": True,
    },
    moments=tuple(Moment(time, number * MOMENT_STEPS - 1) for number, time in enumerate(DAY, 1)),
    narrate=narrate,
    conclude=conclude,
)
