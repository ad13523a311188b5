"""The condition ContextAvailable of a scorer that asks for a context."""

from dataclasses import replace
from typing import Any

import pytest

from dsf.api.scoring.scoring_api import ScorerConfig, SuppliedDevice
from dsf.hub.assess.context_completion import CONTEXT_BYTES
from dsf.hub.report.status_events import status_events
from dsf.hub.snapshot.manifests import NamespaceManifests
from dsf.hub.snapshot.registered_scorer import ProbeResult
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG
from tests.dsf.hub.builders import (
    World,
    api_config,
    cluster,
    condition,
    planned,
    scorer,
    scoring_config,
    settled,
)
from tests.dsf.hub.test_plan import distributed, fleet, status_of

HUGE = SuppliedDevice(
    namespace="team", policy="p", kind="gpu", device="x" * CONTEXT_BYTES, amount="1"
)
EAST, WEST = cluster("east", region="eu"), cluster("west")
CLAIMED = {**WEST, "status": {"clusterClaims": [{"name": "id.k8s.io", "value": "4711"}]}}


def asking(*unknown: str, **context: Any) -> ProbeResult:
    document = {**api_config(), **({"context": context} if context else {})}
    return ProbeResult(config=ScorerConfig.model_validate(document), unknown=unknown)


def world(probe: ProbeResult, **parts: Any) -> World:
    return fleet((scorer(), probe), **{"clusters": (EAST, CLAIMED), **parts})


def told(end: World, type_: str = "ContextAvailable") -> tuple[str, str, str]:
    return condition(status_of(end, "cpu"), type_)


def test_a_scorer_that_asks_for_no_context_has_no_such_condition() -> None:
    conditions = status_of(settled(world(asking())), "cpu")["status"]["conditions"]
    assert "ContextAvailable" not in {each["type"] for each in conditions}


def test_labels_and_claims_that_some_clusters_lack_are_counted() -> None:
    end = settled(world(asking(labels=["region"], claims=["id.k8s.io"])))
    status, reason, message = told(end)
    assert (status, reason) == ("True", "Available")
    assert "1 of 2 managed clusters lack label region" in message
    assert "1 of 2 managed clusters lack claim id.k8s.io" in message
    assert told(end, "Ready")[0] == "True"


def test_a_label_that_no_cluster_has_is_named_and_the_scores_go_on() -> None:
    end = settled(world(asking(labels=["region", "regoin"], cluster=True)))
    status, reason, message = told(end)
    assert (status, reason) == ("False", "KeysNotFound")
    assert "label regoin" in message
    assert "label region" not in message
    assert told(end, "Ready")[1] == "KeysNotFound"
    assert distributed(end) == {"east": ["cpu_score"], "west": ["cpu_score"]}


def test_a_field_that_the_contract_does_not_know_is_named() -> None:
    status, reason, message = told(settled(world(asking("context.secrets", cluster=True))))
    assert (status, reason) == ("False", "UnknownContext")
    assert "context.secrets" in message


def test_a_condition_is_good_again_once_nothing_is_asked_for() -> None:
    end = settled(world(asking(labels=["regoin"])))
    (key,) = end.probes
    asked = replace(end, probes={key: asking()})
    assert told(settled(asked))[:2] == ("True", "NotAsked")


@pytest.mark.parametrize(
    ("manifests", "reason"),
    [
        ({}, "ManifestsNotAllowed"),
        ({"team": NamespaceManifests((), None)}, "ManifestsUnread"),
        ({"team": NamespaceManifests((), (HUGE,))}, "ContextTooLarge"),
    ],
)
def test_a_scorer_without_its_manifests_is_not_distributed(
    manifests: dict[str, NamespaceManifests], reason: str
) -> None:
    before = world(asking(devices=True), manifests={"team": NamespaceManifests((), ())})
    end = settled(before)
    assert told(end)[:2] == ("True", "Available")
    assert distributed(end) == {"east": ["cpu_score"], "west": ["cpu_score"]}
    denied = replace(end, manifests=manifests)
    observed = [(DYNAMIC_SCORER, obj) for obj in end.scorers]
    observed.append((DYNAMIC_SCORING_CONFIG, scoring_config()))
    events = [each for each in status_events(observed, planned(denied)) if each.obj in end.scorers]
    assert [event.reason for event in events] == [reason]
    end = settled(denied)
    assert told(end)[:2] == ("False", reason)
    assert told(end, "Distributed")[:2] == ("False", "ContextMissing")
    assert told(end, "Ready")[:2] == ("False", reason)
    assert distributed(end) == {"east": [], "west": []}
