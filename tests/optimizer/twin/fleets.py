"""Small scenarios that tests change."""

from typing import Any

from optimizer.twin.scenario import Scenario


def scenario(**fields: Any) -> Scenario:
    """Return three clusters for two workloads of an app; fields are those of the file."""
    return Scenario.model_validate(
        {
            "duration": "2h",
            "clusters": [{"name": "site", "count": 3, "allocatable": "gpu/all=1"}],
            "workloads": [{"name": "chat", "count": 2}],
            "scores": [{"name": "fit", "signals": [{"type": "Constant", "least": 50}]}],
            "optimization": {"preference": {"addonPlacementScore": "fit"}},
            **fields,
        }
    )


def signals(*items: dict[str, Any]) -> dict[str, Any]:
    """Return the field `scores` with one score of these signals."""
    return {"scores": [{"name": "fit", "signals": list(items)}]}
