"""The score rules that a scorer declares reach the agents and take effect there."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from ..harness.api import condition_of
from ..harness.certificates import write_secret
from .conftest import AGENT_NAMESPACE, SCORE
from .scorers import NEAR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

NAME = "scaled-score"
# The scorer always says NEAR: a quarter of this scale, and so 75 on the inverted one.
SCALE = {"min": 0, "max": 4 * NEAR, "invert": True}
ON_FAILURE = {"policy": "Hold", "holdSeconds": 600}


@pytest.fixture
def wanted(
    framework: str, registered: list[Object], scored: dict[tuple[str, str], Object]
) -> Object:
    """A DynamicScorer with its own units, not applied yet."""
    [nearness] = [obj for obj in registered if obj["metadata"]["name"] == "nearness"]
    spec = nearness["spec"]
    scoring = {
        **spec["scoring"],
        "params": {"name": "scaled_score", "interval": 1},
        "normalize": SCALE,
        "onFailure": ON_FAILURE,
    }
    metadata = {"name": "scaled", "namespace": framework}
    return {**nearness, "metadata": metadata, "spec": {**spec, "scoring": scoring}}


@contextmanager
def applied(hub: Hub, scorer: Object) -> Iterator[None]:
    """The DynamicScorer on the hub; removed afterwards, with its scores."""
    hub.apply(scorer)
    yield
    hub.api.delete(scorer["apiVersion"], scorer["kind"], "scaled", scorer["metadata"]["namespace"])
    until("the score to be gone", lambda: not hub.api.find(*SCORE, NAME, "east"))


@pytest.fixture
def scaled(hub: Hub, wanted: Object) -> Iterator[Object]:
    """The DynamicScorer for as long as a test takes."""
    with applied(hub, wanted):
        yield wanted


def test_an_expired_certificate_is_told_and_a_renewed_one_acts_without_a_restart(
    hub: Hub, east: ManagedCluster, agents: dict[str, Part], wanted: Object
) -> None:
    """OCM's registration agent renews the Secret; a kubelet brings it into the agent's folder."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    expired = hub.authority.client("expired", expires=yesterday)
    folder = east.mount_secret(AGENT_NAMESPACE, "dynamic-scoring-framework-hub-kubeconfig")
    write_secret(folder / "tls.crt", expired.certificate.read_bytes())
    write_secret(folder / "tls.key", expired.key.read_bytes())

    def rounds(status: str) -> float:
        return agents["east"].metric(
            "dynamic_scoring_requests_total", score_name="scaled_score", status=status
        )

    with applied(hub, wanted):
        until("the hub to refuse", lambda: rounds("publish_failed") > 0)
        assert not hub.api.find(*SCORE, NAME, "east")
        east.mount_secret(AGENT_NAMESPACE, folder.name)
        until("the score to arrive", lambda: rounds("success") > 0 and values(hub))


def test_a_scorers_own_units_are_normalized_and_its_failures_told(
    hub: Hub, east: ManagedCluster, scaled: Object, framework: str
) -> None:
    until("the normalized score", lambda: values(hub) == {"shop": 75})
    data = east.api.get("v1", "ConfigMap", "dynamic-scoring-config", AGENT_NAMESPACE)["data"]
    told = {entry["name"]: entry for entry in json.loads(data["summaries"])}
    assert told["scaled"]["scoringNormalize"] == SCALE
    assert told["scaled"]["scoringOnFailure"] == ON_FAILURE
    assert "scoringNormalize" not in told["nearness"]

    broken = {"spec": {"scoring": {"path": "/gone"}}}
    hub.api.patch(scaled["apiVersion"], scaled["kind"], "scaled", broken, framework)
    until("the failure to be told", lambda: reason(hub, "Scored") == "NotFound")
    assert values(hub) == {"shop": 75}
    assert reason(hub, "Published") == "Published"


def values(hub: Hub) -> dict[str, int]:
    found = hub.api.find(*SCORE, NAME, "east") or {}
    entries = (found.get("status") or {}).get("scores") or []
    return {entry["name"]: entry["value"] for entry in entries}


def reason(hub: Hub, type_: str) -> str:
    return str(condition_of(hub.api.get(*SCORE, NAME, "east"), type_)["reason"])
