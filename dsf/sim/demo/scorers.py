"""The DynamicScorers and the DynamicScoringConfig that the demo registers."""

from dsf.api.names import API_VERSION, HUB_NAMESPACE, SCORING_CONFIG
from dsf.kube.port import Object
from dsf.sim.demo.demo_setup import PROMETHEUS_URL
from dsf.sim.demo.hardware import THROUGHPUT_QUERY


def scorers(sample_url: str, static_url: str) -> list[Object]:
    """Return the demo's DynamicScorers for scoring APIs at the given base URLs.

    Entries are whole numbers: the sample score of a pod that uses less than a core is normalized,
    because it would be 0.
    """
    sample = _scorer("sample-scorer", f"{sample_url}/config", "${node};${namespace};${pod}")
    cores = {
        "displayName": "CPU use",
        "unit": "cores",
        "range": {"min": 0},
        "scoring": {"normalize": {"min": 0, "max": 1}},
    }
    return [
        {**sample, "spec": {**sample["spec"], **cores}},
        _better_if_higher("example-performance", f"{static_url}/performance/config"),
        _better_if_higher("example-powerconsumption", f"{static_url}/powerconsumption/config"),
    ]


def throughput_scorer(sample_url: str) -> Object:
    """Return a DynamicScorer that scores devices of a cluster by the throughput of apps on them.

    It calls the sample scorer, which returns the mean of each series, with a query of its own.
    """
    found = _better_if_higher("example-throughput", f"{sample_url}/config")
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


def _better_if_higher(name: str, config_url: str) -> Object:
    """Return the DynamicScorer of a score per app and device, of which higher values are better."""
    found = _scorer(name, config_url, "${app};${device}")
    return {**found, "spec": {**found["spec"], "direction": "HigherIsBetter"}}


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
