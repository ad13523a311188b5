"""What the Prometheus servers of a fleet say, and the scores that are made of it.

A day of the fleet lasts DAY_SECONDS: each region has its peak at another time, when apps answer
slower, serve less and draw more, and fewer of the devices that Pods have are idle. It repeats
without end.
"""

import math
from collections.abc import Callable
from random import Random

from dsf.api.names import HUB_NAMESPACE
from dsf.kube.kinds import DYNAMIC_SCORER
from dsf.kube.port import Object
from dsf.scorer_kit.prometheus_replay import RecordedSeries, Recording
from dsf.sim.demo.scorers import THROUGHPUT_QUERY, prometheus_source
from dsf.sim.fleet.generated_fleet import APPS, REGIONS, App, FleetCluster

STEP_SECONDS = 15
DAY_SECONDS = 1200
STEPS = DAY_SECONDS // STEP_SECONDS

POWER_QUERY = "sum by (app, device) (app_gpu_power_watts)"
LATENCY_QUERY = "max by (app, device) (app_latency_p95_seconds)"
IDLE_QUERY = "100 * avg by (device) (gpu_reserved_idle_ratio)"

WITHOUT_POWER = 13
"""One in so many clusters does not measure power, so its agent has no score of it."""

HORIZON_SECONDS = 60
PREDICTION_OPTIONS = ("--horizon", str(HORIZON_SECONDS), "--quantile", "0.9")

Formula = Callable[[App, float], float]
"""What an app does at a load, from 0 to 1."""

_NOISE = 0.03
_SLICES = 7


def recording(cluster: FleetCluster) -> Recording:
    """Return what the Prometheus of a cluster answers: a series for each app that it can run.

    How idle devices are is a series for each device.
    """
    random = Random(cluster.name)  # noqa: S311 - no secret
    own = random.uniform(0.85, 1.15)
    loads = [_load(cluster.region, step) for step in range(STEPS)]
    queries: dict[str, Formula] = {
        THROUGHPUT_QUERY: lambda app, load: (
            own * cluster.model.speed * app.rate * (1 - 0.45 * load)
        ),
        POWER_QUERY: lambda app, load: (
            cluster.model.watts * _gpus(app) * app.busy * (0.6 + 0.4 * load)
        ),
        LATENCY_QUERY: lambda app, load: (
            app.latency / (own * math.sqrt(cluster.model.speed)) * (1 + 1.5 * load**2)
        ),
    }
    if cluster.number % WITHOUT_POWER == WITHOUT_POWER - 1:
        del queries[POWER_QUERY]
    found = {
        query: tuple(
            RecordedSeries(
                {"app": app.name, "device": app.device},
                tuple(value(app, load) * random.gauss(1, _NOISE) for load in loads),
            )
            for app in APPS
            if cluster.has(app)
        )
        for query, value in queries.items()
    }
    most = random.uniform(10, 70)
    found[IDLE_QUERY] = tuple(
        RecordedSeries({"device": device}, tuple(most * (1 - 0.8 * load) for load in loads))
        for device in cluster.devices
    )
    return Recording(STEP_SECONDS, found)


def _load(region: str, step: int) -> float:
    """Return the load of a region, from 0 to 1."""
    peak = REGIONS.index(region) / len(REGIONS)
    return 0.5 + 0.5 * math.cos(2 * math.pi * (step / STEPS - peak))


def _gpus(app: App) -> float:
    """Return how many GPUs a replica of an app takes: a slice is a part of one."""
    whole = app.device == "all"
    return app.amount * (1 if whole else int(app.device[0]) / _SLICES)


OBJECTIVES = (
    {"addonPlacementScore": "throughput"},
    {"addonPlacementScore": "power", "weight": 0.3},
    {"addonPlacementScore": "latency", "weight": 0.5},
)


def scorers(sample_url: str, prediction_url: str) -> list[Object]:
    """Return the DynamicScorers: three of the mean of a series, and a forecast of another."""
    lower = {"direction": "LowerIsBetter"}
    return [
        _scorer(
            "throughput",
            f"{sample_url}/config",
            (THROUGHPUT_QUERY, 300, 15),
            {"description": "Requests per second that an app serves on a device", "unit": "req/s"},
            {"min": 0, "max": 150},
        ),
        _scorer(
            "power",
            f"{sample_url}/config",
            (POWER_QUERY, 300, 15),
            {"description": "Power that an app draws on a device", "unit": "W", **lower},
            {"min": 0, "max": 1500, "invert": True},
        ),
        _scorer(
            "latency",
            f"{prediction_url}/config",
            (LATENCY_QUERY, DAY_SECONDS, 30),
            {
                "description": "Latency that an app exceeds one time in ten in the next minute",
                "unit": "s",
                **lower,
                "forecast": {
                    "horizon": HORIZON_SECONDS,
                    "quantile": 0.9,
                    "truth": {"query": LATENCY_QUERY},
                },
            },
            {"min": 0, "max": 2, "invert": True},
        ),
        _scorer(
            "gpu-idle",
            f"{sample_url}/config",
            (IDLE_QUERY, DAY_SECONDS, 30),
            {
                "displayName": "GPU idle",
                "description": "Share of the day in which reserved GPUs are idle",
                "unit": "%",
                **lower,
            },
            entry="${device}",
        ),
    ]


def _scorer(
    name: str,
    config_url: str,
    asked: tuple[str, int, int],
    described: Object,
    normalize: Object | None = None,
    entry: str = "${app};${device}",
) -> Object:
    """Return a DynamicScorer; `asked` is its query, the seconds of its window and of a step."""
    query, window, step = asked
    return DYNAMIC_SCORER.object(
        metadata={"name": name, "namespace": HUB_NAMESPACE},
        spec={
            "displayName": name.capitalize(),
            **described,
            "configURL": config_url,
            "configSyncMode": "None",
            "location": "External",
            "range": {"min": 0},
            "source": prometheus_source(query, window=window, step=step),
            "scoring": {
                "path": "/scoring",
                "params": {"name": name, "interval": 30},
                **({"normalize": normalize} if normalize else {}),
            },
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": entry,
        },
    )
