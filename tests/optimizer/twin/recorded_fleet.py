"""A folder as a user records it: the objects of a hub with an applied plan, and past scores."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import Kind
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.observation import Observation
from tests.optimizer.build import NOW, managed_cluster, request, score, workload
from tests.optimizer.hubs import hub_of

START = NOW.timestamp()
STEP = 300.0
STEPS = 72

Value = Callable[[int], float | None]


async def recorded_hub(plan: bool = True) -> EmbeddedHub:
    """A hub of two clusters with a GPU, a workload on the first one, and the plan that did that."""
    found = {"worker01": 60, "worker02": 50}
    hub = await hub_of(
        Observation(
            managed_clusters=tuple(managed_cluster(name, name=name) for name in found),
            workloads=(workload("web", "app01", 1),),
            scores=tuple(score(name, "fit", {"app01;all": of}) for name, of in found.items()),
        )
    )
    if plan:
        optimizer = Optimizer(hub, now=lambda: NOW)
        made = await optimizer.plan(
            request(
                "fit",
                clusters=[{"name": name, "allocatable": "gpu/all=1"} for name in found],
                targetWorkloads=[{"name": "web"}],
            )
        )
        assert isinstance(made, Plan)
        await optimizer.apply(made)
    return hub


_KINDS: tuple[tuple[Kind, str | None], ...] = (
    (kinds.MANAGED_CLUSTER, None),
    (kinds.MANIFEST_WORK_REPLICA_SET, "default"),
    (kinds.PLACEMENT_PLAN, "default"),
)


def answer(values: Mapping[str, Value], first: int = 0, last: int = STEPS) -> dict[str, Any]:
    """Prometheus' answer: the score of the app on each cluster; None: no sample."""
    return {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {
                    "metric": {
                        "ds_cluster": cluster,
                        "ds_app": "app01",
                        "ds_device": "all",
                        "ds_score_name": "fit",
                    },
                    "values": [
                        [START + step * STEP, str(value)]
                        for step in range(first, last)
                        if (value := of(step)) is not None
                    ],
                }
                for cluster, of in values.items()
            ],
        },
    }


ONE_HOUR = answer(
    {"worker01": lambda step: 60 if step < 6 else 40, "worker02": lambda _: 50}, last=13
)
"""After half an hour the other cluster is 10 points better."""


async def record(folder: Path, *answers: dict[str, Any], plan: bool = True) -> Path:
    """Write the objects and the answers into a folder; return it."""
    hub, objects = await recorded_hub(plan), list[dict[str, Any]]()
    for kind, namespace in _KINDS:
        items = (await hub.list(kind, namespace)).items
        objects += [{**one, "apiVersion": kind.api_version, "kind": kind.kind} for one in items]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    for number, item in enumerate(answers):
        (folder / f"scores-{number}.json").write_text(json.dumps(item), encoding="utf-8")
    return folder
