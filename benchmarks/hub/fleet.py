"""The objects of `benchmarks.hub.controller`: managed clusters as OCM makes them, and scorers."""

from collections.abc import Iterable

from dsf.kube.changes import Change, Create
from dsf.kube.kinds import DYNAMIC_SCORER, MANAGED_CLUSTER, MANAGED_CLUSTER_ADD_ON, NAMESPACE, Kind
from dsf.kube.port import Object

HUB = "open-cluster-management"


def config(number: int) -> Object:
    return {
        "name": f"scorer-{number}",
        "source": source(number),
        "scoring": {"path": "/scoring", "params": {"name": f"score_{number}", "interval": 30}},
    }


def source(number: int) -> Object:
    query = f'sum by (node) (rate(node_cpu_seconds_total{{mode="idle",n="{number}"}}[5m]))'
    return {
        "type": "Prometheus",
        "host": "http://prometheus.monitoring.svc:9090",
        "path": "/api/v1/query_range",
        "params": {"query": query, "range": 3600, "step": 30},
    }


def scorer(number: int, apis: str) -> Object:
    return {
        **typed(DYNAMIC_SCORER, f"scorer-{number}", HUB),
        "spec": {
            "description": "measured",
            "configURL": f"{apis}/{number}/config",
            "configSyncMode": "None" if number == 0 else "Full",
            "location": "External",
            "scoreDestination": "AddOnPlacementScore",
            "scoreDimensionFormat": "${node};${scoreName}",
            **({"source": source(0), "scoring": config(0)["scoring"]} if number == 0 else {}),
        },
    }


def fleet(numbers: Iterable[int]) -> list[Change]:
    """Return managed clusters as OCM has them, with the add-on."""
    names = [f"cluster-{number:04}" for number in numbers]
    return [
        *(Create(NAMESPACE, typed(NAMESPACE, name)) for name in names),
        *(
            Create(
                MANAGED_CLUSTER,
                {**typed(MANAGED_CLUSTER, name), "spec": {"hubAcceptsClient": True}},
            )
            for name in names
        ),
        *(
            Create(
                MANAGED_CLUSTER_ADD_ON,
                {
                    **typed(MANAGED_CLUSTER_ADD_ON, "dynamic-scoring-framework", name),
                    "spec": {"installNamespace": "dynamic-scoring"},
                },
            )
            for name in names
        ),
    ]


def typed(kind: Kind, name: str, namespace: str | None = None) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
