"""Examples shown in the API's documentation."""

from typing import Any

from fastapi.openapi.models import Example


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
        "preference": {
            "addonPlacementScore": score,
            "scoreDimensionFormat": "${app};${device}",
        },
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


OPTIMIZE_EXAMPLES = {
    "performance": Example(
        summary="Highest performance", value=_request("example-performance-score")
    ),
    "power": Example(
        summary="Lowest power consumption", value=_request("example-powerconsumption-score")
    ),
    "mig": Example(
        summary="GPUs instead of policies",
        value=_with_gpus(_request("example-performance-score")),
    ),
}
PLAN_EXAMPLES = {
    "weights": Example(
        summary="Two scores, the first counts twice",
        value={"objective": {"performance": 2, "power": 1}},
    ),
    "lost": Example(
        summary="What if a cluster is lost, and power has a budget?",
        value={
            "objective": {"performance": 1},
            "whatIf": {"lose": ["worker02"], "budget": {"power": 100}},
        },
    ),
    "why": Example(
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
RESET_EXAMPLES = {"default": Example(summary="One namespace", value={"namespace": "default"})}
ROLLBACK_EXAMPLES = {
    "before": Example(
        summary="Look at the plan before the current one",
        value={"namespace": "default", "dryRun": True},
    ),
    "revision": Example(
        summary="Restore a revision", value={"namespace": "default", "toRevision": 1}
    ),
}
