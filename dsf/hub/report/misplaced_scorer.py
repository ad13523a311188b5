"""The status of a DynamicScorer outside the controller's namespace, which nobody uses."""

from typing import Any

from dsf.api.conditions import Condition
from dsf.hub.report.config_status import status_conditions
from dsf.kube.port import Object


def misplaced_status(scorer: Object, hub_namespace: str, *, now: str) -> dict[str, Any]:
    """Return the status fields that say where a DynamicScorer has to be; `now` is RFC 3339."""
    message = (
        f"the hub controller uses only the DynamicScorers of namespace {hub_namespace}: create this"
        " one there, and delete it here"
    )
    return status_conditions(
        scorer, [Condition("Ready", "False", "OtherNamespace", message)], now=now
    )
