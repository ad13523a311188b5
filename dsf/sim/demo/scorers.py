"""The DynamicScorers and the DynamicScoringConfig that the demo registers."""

from dsf.api.names import API_VERSION, HUB_NAMESPACE, SCORING_CONFIG
from dsf.kube.port import Object


def scorers(sample_url: str, static_url: str) -> list[Object]:
    """Return the demo's DynamicScorers for scoring APIs at the given base URLs."""
    return [
        _scorer("sample-scorer", f"{sample_url}/config", "${node};${namespace};${pod}"),
        _scorer("example-performance", f"{static_url}/performance/config", "${app};${device}"),
        _scorer(
            "example-powerconsumption", f"{static_url}/powerconsumption/config", "${app};${device}"
        ),
    ]


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
