"""An invented fleet of any size: GPUs of four models in many layouts, workloads and scores."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from random import Random

from playwright.async_api import Page, Route

from dsf.kube.clock import utc_now
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Object
from optimizer.api.operation_routes import matrix_document
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.fleet_matrix import FleetMatrix, fleet_matrix
from optimizer.follow.overview.score_overview import ScorerOverview, score_summary
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.scores.score_row import ScoreRow
from optimizer.wire.placement_status import PlacementStatus, WorkloadLanding
from tests.optimizer.build import managed_cluster, obj, workload
from tests.optimizer.follow.overview.test_capacity import inventory
from tests.optimizer.inventoried_nodes import node

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-"

MODELS: dict[str, Sequence[dict[str, int]]] = {
    "NVIDIA-A100-SXM4-80GB": ({"3g.40gb": 2}, {"1g.10gb": 7}, {"2g.20gb": 3, "1g.10gb": 1}, {}),
    "NVIDIA-H100-80GB-HBM3": ({}, {"4g.40gb": 1, "3g.40gb": 1}, {"3g.40gb": 1, "2g.20gb": 2}),
    "NVIDIA-A30": ({"1g.6gb": 4}, {"2g.12gb": 2}, {}),
    "NVIDIA-H200": ({}, {"3g.71gb": 2}),
}
"""By GPU model, what one GPU is divided into; nothing: it is whole."""

REGIONS = ("ap-south-1", "eu-north-1", "eu-west-1", "us-east-1")


def invented_fleet(
    clusters: int,
    *,
    seed: int = 1,
    gpus: Sequence[int] = (8,),
    names: Sequence[str] = (),
    values: Sequence[int] = range(101),
    now: datetime | None = None,
) -> FleetMatrix:
    """Return it; `gpus` are numbers of GPUs of a node, of which each cluster has one or two.

    `now`: when it is read. `names`: those of the first clusters. `values`: scores; those of one
    cluster in twenty are missing.
    """
    random, now = Random(seed), now or utc_now()  # noqa: S311 - no secret
    named = [*names, *(f"{random.choice(REGIONS)}-gpu-{n + 1}" for n in range(clusters))][:clusters]
    works = [f"w{number + 1}" for number in range(min(400, 3 * clusters))]
    landings = list[WorkloadLanding]()
    managed, inventories, scores = list[Object](), list[Object](), list[Object]()
    for number, name in enumerate(named):
        model = random.choice([*MODELS])
        region = name.partition("-gpu-")[0]
        labels = {"region": region, "zone": f"{region}{'ab'[number % 2]}"} if region != name else {}
        managed.append(managed_cluster(name, cluster_name=name, **labels))
        nodes = [*_nodes(random, model, random.choice(gpus), works)]
        held = sorted({work["name"] for node in nodes for work in node["works"]})
        landings += (
            WorkloadLanding(workload=work, cluster=name, state="Landed", reason="", message="")
            for work in held
        )
        inventories.append(inventory(name, *nodes, now=now))
        if number % 20 != 19:
            devices = {device for layout in MODELS[model] for device in (layout or {"all": 1})}
            for score in ("throughput", "power"):
                scores.append(_score(random, name, score, sorted(devices), values))
    return fleet_matrix(_facts(now, managed, inventories, scores, works, landings))


def _nodes(random: Random, model: str, number: int, works: Sequence[str]) -> Iterator[Object]:
    """Yield nodes of equal GPUs, with what Pods of workloads and of others hold."""
    for _ in range(random.choice((1, 1, 2)) if number else 0):
        layout = random.choice(MODELS[model])
        amounts = {MIG + device: amount * number for device, amount in layout.items()}
        amounts = amounts or {GPU: number}
        share, owned = random.random(), dict[str, dict[str, int]]()
        others = dict[str, int]()
        for device, amount in amounts.items():
            left = round(amount * share)
            while left > 0 and random.random() > 0.15:
                part = min(left, random.choice((1, 1, 2, 4)))
                owner = owned.setdefault(random.choice(works), {})
                owner[device] = owner.get(device, 0) + part
                left -= part
            others[device] = left
        labels = {"nvidia.com/gpu.product": model, "nvidia.com/gpu.count": str(number)}
        yield node(amounts, others, owned, labels=labels)


def _score(
    random: Random, cluster: str, name: str, devices: Sequence[str], values: Sequence[int]
) -> Object:
    entries = [
        {"name": f"app{app};{device}", "value": random.choice(values)}
        for app in (1, 2, 10)
        for device in devices
    ]
    return obj(ADD_ON_PLACEMENT_SCORE, name, cluster, status={"scores": entries})


def _facts(
    now: datetime,
    managed: Sequence[Object],
    inventories: Sequence[Object],
    scores: Sequence[Object],
    works: Sequence[str],
    landings: Sequence[WorkloadLanding],
) -> FleetFacts:
    status = PlacementStatus(
        namespace="default",
        landed=True,
        workloads=tuple(landings),
        policies=(),
        drift=(),
        unbound_policies=(),
    )
    rows: dict[str, list[ScoreRow]] = {"power": [], "throughput": []}
    for score in scores:
        rows[score["metadata"]["name"]].append(ScoreRow(score))
    scorers = (
        ScorerOverview(
            name=f"{name}-scorer",
            namespace="hub",
            score=name,
            direction="LowerIsBetter" if name == "power" else "HigherIsBetter",
            dimension_format="${app};${device}",
            health="Active",
            reason="Ready",
            clusters={},
        )
        for name in rows
    )
    return FleetFacts(
        "default",
        Observation(
            managed_clusters=tuple(managed),
            workloads=tuple(workload(name, name) for name in works),
            inventories=tuple(inventories),
            observed_at=now,
        ),
        status,
        scores={name: [score_summary(row, now=now) for row in of] for name, of in rows.items()},
        scorers=tuple(scorers),
        rows=rows,
    )


async def show_fleet(page: Page, fleet: FleetMatrix) -> None:
    """Load the page again, with an invented fleet as what GET /fleet answers."""
    document = matrix_document(fleet)

    async def answer(route: Route) -> None:
        await route.fulfill(body=document.body, content_type="application/json")

    await page.route("**/fleet?*", answer)
    await page.reload()
