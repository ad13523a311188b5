"""Fleets whose GPUs MIG divides: the twin generates their policies as the optimizer does."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from dsf.cli.prometheus import series_of
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.embedded import EmbeddedHub
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.observation import Observation
from optimizer.twin.engine import play
from optimizer.twin.evaluation.hindsight import best_moments, moments_of
from optimizer.twin.evaluation.recorded_hub import record_of_hub
from optimizer.twin.evaluation.recording import recording_of
from optimizer.twin.fleet_objects import hub_objects, spec_of
from optimizer.twin.fleet_objects import workload as twin_workload
from optimizer.twin.scenario import Scenario
from tests.objects_with_status import create_with_status
from tests.optimizer import build
from tests.optimizer.build import NOW
from tests.optimizer.hubs import hub_of
from tests.optimizer.twin.fleets import scenario

CLUSTERS = "worker01", "worker02"
APPS = {"web": "app01", "job": "app02"}
SCORES: Mapping[str, Mapping[str, int]] = {
    "worker01": {"app01;all": 50, "app01;3g.48gb": 40, "app02;3g.48gb": 45, "app02;1g.12gb": 30},
    "worker02": {"app01;all": 55, "app01;3g.48gb": 20, "app02;3g.48gb": 41, "app02;1g.12gb": 42},
}
MODEL = {"model": "H100-96GB"}
LABELS = {"nvidia.com/gpu.product": "NVIDIA-GH200-480GB", "nvidia.com/gpu.count": "2"}
BUSY = {"gpu": 0, "profile": "3g.48gb", "start": 0, "busy": True}
USED = {"gpu": 0, "profile": "3g.48gb", "start": 4, "workload": "web"}

FLEETS: Mapping[str, dict[str, Any]] = {
    "described": {"gpus": [MODEL]},
    "two of a pool, and one of another": {
        "gpus": [{**MODEL, "count": 2, "node": "gpu-1"}, {**MODEL, "node": "gpu-2", "pool": "b"}]
    },
    "in use": {"gpus": [{**MODEL, "instances": [BUSY, USED]}]},
    "whole, one by others": {
        "gpus": [
            {
                **MODEL,
                "count": 2,
                "instances": [
                    {"gpu": 0, "profile": "all", "busy": True},
                    {"gpu": 1, "profile": "all"},
                ],
            }
        ]
    },
    "discovered": {},
}


async def divided_hub(fleet: str) -> tuple[EmbeddedHub, Plan]:
    """A hub whose GPUs a plan of the optimizer divides, and that plan."""
    labels = LABELS if fleet == "discovered" else {}
    clusters = [build.managed_cluster(name, name=name) for name in CLUSTERS]
    for one in clusters:
        one["metadata"]["labels"] |= labels
    hub = await hub_of(
        Observation(
            managed_clusters=tuple(clusters),
            workloads=(build.workload("web", "app01", 1), build.workload("job", "app02", 2)),
            scores=tuple(build.score(name, "fit", of) for name, of in SCORES.items()),
        )
    )
    asked = build.request(
        "fit",
        clusters=[{"name": name, **FLEETS[fleet]} for name in CLUSTERS],
        targetWorkloads=[{"name": "web"}, {"name": "job"}],
        mig={"discover": fleet == "discovered", "reconfigureCost": 3},
    )
    optimizer = Optimizer(hub, now=lambda: NOW)
    made = await optimizer.plan(asked)
    assert isinstance(made, Plan)
    await optimizer.apply(made)
    return hub, made


async def recorded(hub: EmbeddedHub) -> Scenario:
    """The scenario of two hours in which the scores of the hub stayed as they are."""
    times = [NOW.timestamp() + step * 300 for step in range(25)]
    found = [
        {
            "metric": {
                "ds_cluster": cluster,
                "ds_app": entry.partition(";")[0],
                "ds_device": entry.partition(";")[2],
                "ds_score_name": "fit",
            },
            "values": [[time, str(value)] for time in times],
        }
        for cluster, entries in SCORES.items()
        for entry, value in entries.items()
    ]
    series = series_of({"resultType": "matrix", "result": found}, "here")
    return recording_of(*await record_of_hub(hub, "default", "default"), series).scenario


async def twin_hub(played: Scenario) -> EmbeddedHub:
    """What the hub of the twin has at the start of a recording, its first scores included."""
    hub = EmbeddedHub(now=lambda: NOW)
    await apply(hub, hub_objects(played, now="2026-11-20T12:00:00Z"))
    for tenure in played.tenures():
        await hub.create(kinds.MANIFEST_WORK_REPLICA_SET, twin_workload(tenure))
    for cluster, entries in SCORES.items():
        own = {
            f"{workload};{key.partition(';')[2]}": value
            for workload, app in APPS.items()
            for key, value in entries.items()
            if key.startswith(app)
        }
        await create_with_status(
            hub, kinds.ADD_ON_PLACEMENT_SCORE, build.score(cluster, "fit", own)
        )
    return hub


@pytest.mark.parametrize("fleet", FLEETS)
async def test_at_the_recorded_moment_the_twin_plans_what_the_optimizer_did(fleet: str) -> None:
    hub, made = await divided_hub(fleet)
    assert made.solution.decision.policies
    played = await recorded(hub)
    workloads = [{"name": one.workload} for one in played.tenures()]
    asked = spec_of(played).request(targetWorkloads=workloads, optimization="default")
    again = await Optimizer(await twin_hub(played), now=lambda: NOW).plan(asked)  # type: ignore[arg-type]
    assert isinstance(again, Plan)
    assert again.solution.decision == made.solution.decision
    assert again.solution.objective_value == made.solution.objective_value
    mine, its = (
        {obj["metadata"]["name"]: obj["spec"] for obj in one.manifests if obj["kind"] == "Policy"}
        for one in (again, made)
    )
    assert mine == its


def test_generated_policies_are_enforced_and_what_runs_is_worth_its_device() -> None:
    hub, made = asyncio.run(divided_hub("described"))
    fleet = asyncio.run(recorded(hub)).model_copy(update={"controller": "Static"})
    decided = made.solution.decision
    worth = sum(
        SCORES[one.cluster][f"{APPS[one.workload]};{one.device}"] for one in decided.assignments
    )
    played = play(fleet)
    assert {(one.workload, one.cluster, one.device) for one in played.stays} == set(
        map(tuple, decided.assignments)
    )
    assert min(one.begins for one in played.stays) > 300 + 120  # the watcher's stable window
    assert played.samples[-1].value == worth
    _, moments = moments_of(fleet, 0)
    assert [one.value for one in best_moments(moments)] == [worth]


def test_a_workload_follows_its_score_to_another_layout_of_the_same_gpu() -> None:
    """Whole until noon, then divided: nothing moves, and it is worth what its device is."""

    def score(device: str, before: float, after: float) -> dict[str, Any]:
        shift = {"type": "Shift", "at": "1h", "by": after - before}
        signals = [{"type": "Constant", "least": before}, shift]
        return {"name": "fit", "device": device, "signals": signals}

    played = play(
        scenario(
            controller="Naive",
            naiveEvery="5m",
            clusters=[{"name": "site", "gpus": [MODEL]}],
            workloads=[{"name": "chat"}],
            scores=[score("all", 60, 20), score("3g.48gb", 40, 50)],
        )
    )
    assert [(one.cluster, one.device) for one in played.stays] == [
        ("site", "all"),
        ("site", "3g.48gb"),
    ]
    assert [played.samples[at].value for at in (11, -1)] == [60, 50]
    assert played.moves == ()
