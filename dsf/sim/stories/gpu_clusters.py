"""The clusters of the inference story: their GPUs and costs by the time of day, as recordings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from dsf.sim.prometheus_replay import RecordedSeries, Recording

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
