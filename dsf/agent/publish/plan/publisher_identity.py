"""Which agent's scores an AddOnPlacementScore has, if several agents serve one managed cluster.

The agents of one installation take turns through its Lease (`dsf.agent.publish.addon_lease`). Two
installations that were given the same cluster name differ in the Lease's uid, or in the host name
where there is no Lease. Each published score carries that identity in its condition `Publisher`.
An expired score belongs to nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dsf.agent.failure import Failure
from dsf.agent.score.expiry import is_valid
from dsf.api.conditions import Condition, find

PUBLISHER = "Publisher"
ANOTHER_AGENT = "AnotherAgent"


@dataclass(slots=True)
class PublisherIdentity:
    """The identity of this agent's installation, and the agent that publishes instead, if any.

    All agents of one installation have the same `identity`. While it is empty (unknown), every
    score with our labels counts as ours. It changes if the Lease is created again; `former` has the
    previous ones. `rival` is the holder of the Lease, empty if this agent may publish.
    """

    identity: str = ""
    rival: str = ""
    former: frozenset[str] = frozenset()

    def take(self, identity: str) -> None:
        """Set the identity; scores published under the previous one still belong to this agent."""
        self.former |= {self.identity} - {identity}
        self.identity = identity

    @property
    def condition(self) -> tuple[Condition, ...]:
        """The condition that names the publisher; none while the identity is unknown."""
        if not self.identity:
            return ()
        return (Condition(PUBLISHER, "True", "Agent", self.identity),)

    def standby_failure(self) -> Failure | None:
        """Return why this agent publishes nothing at all; None if it may publish."""
        if not self.rival:
            return None
        message = (
            f"another agent of this installation ({self.rival}) publishes for this managed cluster,"
            " and this one stands by: run one replica"
        )
        return Failure("publish", ANOTHER_AGENT, message)

    def foreign_failure(self, obj: Mapping[str, Any], now: datetime) -> Failure | None:
        """Return why an object must not be written: another installation keeps it valid."""
        status, metadata = obj.get("status") or {}, obj["metadata"]
        publisher = find(status.get("conditions") or [], PUBLISHER)
        theirs = str(publisher.get("message") or "") if publisher else ""
        ours = theirs in {"", self.identity, *self.former}
        if not self.identity or ours or not is_valid(status, now):
            return None
        name = f"{metadata['namespace']}/{metadata['name']}"
        message = (
            f"AddOnPlacementScore {name} is published by the agent of another installation"
            f" ({theirs}; this one is {self.identity}): give each managed cluster's agent its own"
            " --cluster-name. If that agent is gone, this one takes the score over when it expires,"
            " or as soon as you delete it"
        )
        return Failure("publish", ANOTHER_AGENT, message)
