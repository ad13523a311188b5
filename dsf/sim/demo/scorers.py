"""The DynamicScorers and the DynamicScoringConfig that the demo registers."""

from dsf.api.names import API_VERSION, HUB_NAMESPACE, SCORING_CONFIG
from dsf.kube.port import Object
from dsf.sim.demo.hardware import THROUGHPUT_QUERY

PROMETHEUS_URL = "http://prometheus.monitoring.svc:9090"
"""The agents of the demo ask the server of their --prometheus-url instead."""


def scorers(sample_url: str, static_url: str) -> list[Object]:
    """Return the demo's DynamicScorers for scoring APIs at the given base URLs."""
    return [
        _scorer("sample-scorer", f"{sample_url}/config", "${node};${namespace};${pod}"),
        _scorer("example-performance", f"{static_url}/performance/config", "${app};${device}"),
        _scorer(
            "example-powerconsumption", f"{static_url}/powerconsumption/config", "${app};${device}"
        ),
    ]


def throughput_scorer(sample_url: str) -> Object:
    """Return a DynamicScorer that scores devices of a cluster by the throughput of apps on them.

    It calls the sample scorer, which returns the mean of each series, with a query of its own.
    """
    found = _scorer("example-throughput", f"{sample_url}/config", "${app};${device}")
    own = {
        "configSyncMode": "None",
        "source": {
            "type": "Prometheus",
            "host": PROMETHEUS_URL,
            "params": {"query": THROUGHPUT_QUERY, "range": 600, "step": 60},
        },
        "scoring": {
            "path": "/scoring",
            "params": {"name": "example_throughput_score", "interval": 30},
        },
    }
    return {**found, "spec": {**found["spec"], **own}}


def scoring_config() -> Object:
    """Return the DynamicScoringConfig that distributes all of them to every cluster."""
    return {
        "apiVersion": API_VERSION,
        "kind": "DynamicScoringConfig",
        "metadata": {"name": SCORING_CONFIG, "namespace": HUB_NAMESPACE},
        "spec": {"masks": []},
    }


def _scorer(name: str, config_url: str, dimension: str) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": "DynamicScorer",
        "metadata": {"name": name, "namespace": HUB_NAMESPACE},
        "spec": {
            "description": f"{name} of the demo",
            "configURL": config_url,
            "configSyncMode": "Full",
            "location": "External",
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": dimension,
        },
    }
