"""Objects of the hub as the controller keeps them."""

from typing import Any

from dsf.hub.snapshot.hub_snapshot import read_score
from dsf.hub.snapshot.managed_cluster import ClusterFailure, read_managed_cluster
from tests.dsf.hub.builders import NOW, cluster, published, unavailable


def test_failures_that_differ_only_in_their_message_are_equal() -> None:
    """A message may hold a number of the round; each change would be written to the hub."""

    def failing(message: str, reason: str = "BadStatus") -> Any:
        return read_score(published("c", failing=("Scored", reason), message=message))

    assert failing("after 3 s") == failing("after 4 s")
    assert failing("after 3 s") != failing("after 3 s", "TimedOut")


def test_a_cluster_out_of_touch_has_a_reason_a_message_and_a_time() -> None:
    failure = read_managed_cluster(unavailable(cluster("c"))).failure
    assert failure is not None
    assert failure == ClusterFailure("ClusterUnavailable", "", NOW)
    assert failure.message == "agent stopped updating its lease"
