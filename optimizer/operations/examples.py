"""Examples shown in the API's documentation."""

from collections.abc import Mapping
from typing import Any, TypedDict


class RequestExample(TypedDict):
    """A body of a request, as the OpenAPI document shows it."""

    summary: str
    value: dict[str, Any]


Examples = Mapping[str, RequestExample]
"""By name."""


def _request(score: str) -> dict[str, Any]:
    return {
        "namespace": "default",
        "clusters": [
            {
                "name": cluster,
                "availablePolicies": [
                    {"name": f"policy-{setting}-{cluster}"}
                    for setting in ("enable-mig-2g", "enable-mig-3g", "disable-mig")
                ],
            }
            for cluster in ("worker01", "worker02")
        ],
        "targetWorkloads": [{"name": "mwrs-app01"}, {"name": "mwrs-app02"}],
        "preference": {"addonPlacementScore": score, "scoreDimensionFormat": "${app};${device}"},
    }


def _with_gpus(request: dict[str, Any]) -> dict[str, Any]:
    clusters = [
        {
            "name": cluster["name"],
            "gpus": [{"model": "H100-96GB", "node": f"{cluster['name']}-control-plane"}],
        }
        for cluster in request["clusters"]
    ]
    return {**request, "clusters": clusters, "mig": {"reconfigureCost": 1}}


OPTIMIZE_EXAMPLES: Examples = {
    "performance": RequestExample(
        summary="Highest performance", value=_request("example-performance-score")
    ),
    "power": RequestExample(
        summary="Lowest power consumption", value=_request("example-powerconsumption-score")
    ),
    "mig": RequestExample(
        summary="GPUs instead of policies", value=_with_gpus(_request("example-performance-score"))
    ),
}
CONSTRAINTS_EXAMPLES: Examples = {
    "night": RequestExample(
        summary="Two workloads never share a cluster, and one cluster is free at night",
        value={
            "namespace": "default",
            "remember": {
                "apart": [["app01", "app02"]],
                "drain": {
                    "worker02": {
                        "schedule": "0 22 * * *",
                        "duration": "8h",
                        "timeZone": "Europe/Berlin",
                    }
                },
            },
        },
    )
}

PLAN_EXAMPLES: Examples = {
    "weights": RequestExample(
        summary="Two scores, the first counts twice",
        value={"objective": {"performance": 2, "power": 1}},
    ),
    "lost": RequestExample(
        summary="What if a cluster is lost, and power has a budget?",
        value={
            "objective": {"performance": 1},
            "whatIf": {"lose": ["worker02"], "budget": {"power": 100}},
        },
    ),
    "why": RequestExample(
        summary="Why, and why not there?",
        value={
            "objective": {"performance": 1},
            "request": {
                "explain": True,
                "whyNot": [{"workload": "mwrs-app01", "cluster": "worker02"}],
            },
        },
    ),
}
RESET_EXAMPLES: Examples = {
    "default": RequestExample(summary="One namespace", value={"namespace": "default"})
}
ROLLBACK_EXAMPLES: Examples = {
    "before": RequestExample(
        summary="Look at the plan before the current one",
        value={"namespace": "default", "dryRun": True},
    ),
    "revision": RequestExample(
        summary="Restore a revision", value={"namespace": "default", "toRevision": 1}
    ),
}
