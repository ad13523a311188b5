"""Why OCM does not select a cluster, and how taints and tolerations are written."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dsf.placement import Taint, Toleration, state_obstacle, untolerated

NOW = datetime(2026, 1, 2, tzinfo=UTC)
AT = "2026-01-01T00:00:00Z"


def cluster(
    spec: dict[str, Any] | None = None, joined: str = "", **metadata: str
) -> dict[str, Any]:
    condition = {"type": "ManagedClusterJoined", "status": joined, "lastTransitionTime": AT}
    status = {"conditions": [condition]} if joined else {}
    return {"metadata": {"name": "c1", **metadata}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("obj", "reason", "since"),
    [
        (cluster(), None, None),
        (cluster({"hubAcceptsClient": True}, "True"), None, None),
        (cluster({"hubAcceptsClient": False}, "True"), "ClusterNotAccepted", None),
        (cluster({"hubAcceptsClient": True}, "False"), "ClusterNotJoined", AT),
        (cluster({"hubAcceptsClient": True}, "Unknown"), "ClusterNotJoined", AT),
        (cluster({"hubAcceptsClient": False}, deletionTimestamp=AT), "ClusterBeingDeleted", AT),
    ],
)
def test_the_state_of_a_cluster_that_ocm_does_not_select(
    obj: dict[str, Any], reason: str | None, since: str | None
) -> None:
    found = state_obstacle(obj)
    assert (found and found.reason) == reason
    assert (found and found.since and f"{found.since:%Y-%m-%dT%H:%M:%SZ}") == since
    assert found is None or "c1" in found.message


@pytest.mark.parametrize(
    ("effect", "selected", "seconds", "age", "kept_away"),
    [
        ("NoSelect", True, None, 5, False),
        ("NoSelect", False, 5, 5, True),
        ("NoSelect", False, 6, 5, False),
        ("NoSelect", False, 6, None, True),
        ("NoSelect", True, 0, 5, True),
        ("NoSelectIfNew", False, 0, 5, True),
        ("NoSelectIfNew", True, 0, 5, False),
        ("PreferNoSelect", False, 0, 5, False),
    ],
)
def test_a_taint_keeps_a_placement_away_unless_it_is_tolerated_for_long_enough(
    effect: str, selected: bool, seconds: int | None, age: int | None, kept_away: bool
) -> None:
    added = None if age is None else NOW - timedelta(seconds=age)
    taint = Taint("k", effect, "v", added)
    tolerations = (Toleration("other"), Toleration("k", value="v", seconds=seconds))
    found = untolerated([taint], tolerations, selected=selected, now=NOW)
    assert found == (taint if kept_away else None)
    lasting = effect != "PreferNoSelect" and not (effect == "NoSelectIfNew" and selected)
    assert bool(untolerated([taint], (), selected=selected, now=NOW)) == lasting
    for other in (Toleration("k", value="w"), Toleration("k", "Exists", effect="x")):
        assert not other.matches(taint)
    for same in (Toleration(operator="Exists"), Toleration("k", "Exists", effect=effect)):
        assert same.matches(taint)


def test_taints_and_tolerations_are_written_as_kubernetes_writes_them() -> None:
    assert [str(Taint("k")), str(Taint("k", "NoSelectIfNew", "v"))] == [
        "k:NoSelect",
        "k=v:NoSelectIfNew",
    ]
    whole = {"key": "k", "operator": "Equal", "value": "v", "effect": "e", "tolerationSeconds": 0}
    assert Toleration("k", "Equal", "v", "e", 0).manifest == whole
    assert Toleration(operator="Exists").manifest == {"operator": "Exists"}
