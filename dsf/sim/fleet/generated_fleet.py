"""A fleet of N clusters as objects: nodes with GPUs, workloads, Pods of others, what is kept.

The same N gives the same fleet. All figures are invented; the ranking of the GPUs is plausible.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from dsf.api.names import DEFAULT_OPTIMIZATION
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.kinds import NODE, PLACEMENT_OPTIMIZATION, POD
from dsf.kube.port import Object
from dsf.sim.demo.clusters import WORKLOAD_NAMESPACE, replica_set
from dsf.sim.demo.scorers import COUNT_LABEL, PRODUCT_LABEL

WHOLE = "nvidia.com/gpu"
REGIONS = ("ap-tokyo", "eu-berlin", "us-east", "us-west")
REGION_LABEL, MODEL_LABEL = "region", "gpu-model"
WORKLOADS_PER_CLUSTER = 3

Layouts = tuple[Mapping[str, int], ...]
"""What each GPU of a node advertises, by device: the MIG devices of a layout, or itself."""

_OFF = {"all": 1}


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A model of GPUs: how fast and hungry it is beside the others, and how nodes divide it."""

    product: str
    speed: float
    watts: float
    nodes: tuple[Layouts, ...]

    @property
    def short(self) -> str:
        """The name of the model in names of clusters, such as h100."""
        return self.product.split("-")[1].lower()


MODELS = (
    GpuModel(
        "NVIDIA-H100-80GB-HBM3",
        1.0,
        640,
        ((_OFF, _OFF, {"3g.40gb": 2}, {"1g.10gb": 7}), (_OFF, _OFF, _OFF, {"3g.40gb": 2})),
    ),
    GpuModel(
        "NVIDIA-A100-SXM4-80GB",
        0.55,
        380,
        (
            (_OFF, {"3g.40gb": 2}, {"2g.20gb": 3, "1g.10gb": 1}, {"1g.10gb": 7}),
            (_OFF, _OFF, {"2g.20gb": 2, "3g.40gb": 1}, {"2g.20gb": 3}),
        ),
    ),
    GpuModel(
        "NVIDIA-H200",
        1.25,
        700,
        (
            (_OFF, _OFF, {"3g.71gb": 2}, {"1g.18gb": 7}),
            (_OFF, _OFF, _OFF, _OFF, {"3g.71gb": 2}, {"3g.71gb": 1, "1g.18gb": 4}),
        ),
    ),
    GpuModel("NVIDIA-L40S", 0.4, 300, ((_OFF, _OFF, _OFF, _OFF), (_OFF, _OFF))),
)


@dataclass(frozen=True, slots=True)
class App:
    """What serves requests: the devices that a replica needs, and how it does on a whole H100.

    `rate` is requests per second, `latency` seconds of the 95th percentile, `busy` the share of the
    power of its devices that it draws. `of` is how many of 40 workloads are of this app.
    """

    name: str
    device: str
    amount: int
    of: int
    rate: float
    latency: float
    busy: float


APPS = (
    App("chat", "all", 1, 6, 60, 0.42, 0.94),
    App("code", "all", 2, 3, 90, 0.35, 0.86),
    App("vision", "all", 1, 4, 75, 0.28, 0.80),
    App("judge", "all", 1, 3, 50, 0.50, 0.72),
    App("summary", "3g.40gb", 1, 5, 44, 0.46, 0.66),
    App("translate", "3g.40gb", 1, 4, 52, 0.30, 0.58),
    App("speech", "2g.20gb", 1, 4, 38, 0.24, 0.51),
    App("embed", "1g.10gb", 2, 4, 84, 0.08, 0.45),
    App("rank", "1g.10gb", 1, 3, 64, 0.06, 0.40),
    App("agents", "3g.71gb", 1, 2, 70, 0.55, 0.70),
    App("draft", "1g.18gb", 2, 1, 58, 0.12, 0.42),
    App("train", "all", 8, 1, 95, 0.90, 0.98),
)
"""No node has the 8 GPUs that a replica of `train` needs, so it has no place."""


@dataclass(frozen=True, slots=True)
class FleetCluster:
    """A managed cluster with one node: its GPUs, and where it is."""

    number: int
    model: GpuModel
    region: str
    layouts: Layouts

    @property
    def name(self) -> str:
        """The name of the cluster: where it is, its model, and a number."""
        return f"{self.region}-{self.model.short}-{self.number + 1}"

    @property
    def node_name(self) -> str:
        """The name of its node."""
        return f"{self.name}-gpu-1"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its ManagedCluster and of its node."""
        return {
            REGION_LABEL: self.region,
            MODEL_LABEL: self.model.short,
            PRODUCT_LABEL: self.model.product,
            COUNT_LABEL: str(len(self.layouts)),
        }

    @property
    def devices(self) -> Mapping[str, int]:
        """How many of each device its GPUs are together."""
        return sum(map(Counter, self.layouts), Counter[str]())

    def has(self, app: App) -> bool:
        """Tell whether its GPUs are divided into what an app needs."""
        return app.device in self.devices

    def node(self) -> list[Change]:
        """Return the changes that make its node ready, with the devices of its GPUs."""
        name = self.node_name
        amounts = {resource(device): str(amount) for device, amount in self.devices.items()}
        status = {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "128", "memory": "1Ti", "pods": "110", **amounts},
        }
        return [
            Create(NODE, NODE.object(metadata={"name": name, "labels": self.labels})),
            Patch(NODE, name, None, {"status": status}, "status"),
        ]


def resource(device: str) -> str:
    """Return the resource of a node that is a device of GPUs."""
    return WHOLE if device == "all" else f"nvidia.com/mig-{device}"


def fleet_clusters(count: int) -> tuple[FleetCluster, ...]:
    """Return so many clusters: models in turn, each in all regions, their nodes divided in turn."""
    found = list[FleetCluster]()
    for number in range(count):
        turn, position = divmod(number, len(MODELS))
        model, region = MODELS[position], REGIONS[(turn + number) % len(REGIONS)]
        found.append(FleetCluster(number, model, region, model.nodes[turn % len(model.nodes)]))
    return tuple(found)


def fleet_apps(count: int) -> Iterator[tuple[str, App]]:
    """Yield the name and the app of each workload of so many clusters."""
    turn = [app for app in APPS for _ in range(app.of)]
    order = sorted(range(len(turn)), key=lambda at: at * 17 % len(turn))
    numbers = dict.fromkeys(APPS, 0)
    for at in islice(cycle(order), WORKLOADS_PER_CLUSTER * count):
        numbers[turn[at]] += 1
        yield f"{turn[at].name}-{numbers[turn[at]]}", turn[at]


def workload(name: str, app: App) -> Object:
    """Return the ManifestWorkReplicaSet that runs one Pod of an app."""
    return replica_set(name, app.name, app.amount, gpu_pod(name, app.device, app.amount))


def gpu_pod(name: str, device: str, amount: int) -> Object:
    """Return a Pod that requests some of a device."""
    requests = {"cpu": "4", "memory": "16Gi", resource(device): str(amount)}
    resources = {"requests": requests, "limits": requests}
    return POD.object(
        metadata={"name": name, "namespace": WORKLOAD_NAMESPACE},
        spec={"containers": [{"name": name, "image": name, "resources": resources}]},
    )


def strangers_pod(cluster: FleetCluster) -> Object:
    """Return the Pod that somebody runs on a cluster by hand: a notebook on its last device."""
    return gpu_pod(f"notebook-{cluster.number + 1}", list(cluster.devices)[-1], 1)


def request(clusters: Iterable[str], objectives: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a request says of clusters, and of scores: by the first one and the others."""
    first, *more = objectives
    named = [{"name": name} for name in clusters]
    return {"clusters": named, "preference": first, "objectives": more}


def kept(asked: Mapping[str, Any]) -> Object:
    """Return what keeps the workloads placed, as a request asks."""
    return PLACEMENT_OPTIMIZATION.object(
        metadata={"name": DEFAULT_OPTIMIZATION, "namespace": WORKLOAD_NAMESPACE},
        spec={
            **asked,
            "mode": "Apply",
            "rollout": "Stepwise",
            "minReadySeconds": 10,
            "hysteresis": {
                "stabilizationWindowSeconds": 60,
                "leastGain": 4,
                "variationMultiple": 1,
            },
        },
    )
