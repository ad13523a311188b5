"""Whose scores are whose, where several agents publish for one managed cluster: pure.

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
from dsf.agent.score.expiry import read_time
from dsf.api.conditions import Condition, find

PUBLISHER = "Publisher"
ANOTHER_AGENT = "AnotherAgent"


@dataclass(slots=True)
class PublisherIdentity:
    """What an agent knows of itself and of others.

    `identity` is the same for all agents of one installation, empty while it is not known: then
    all scores with our labels are taken for our own. It lasts as long as the Lease does; of one
    that was made anew the agent knows the `former` ones. `rival` is the holder of the Lease, empty
    where this agent itself may publish.
    """

    identity: str = ""
    rival: str = ""
    former: frozenset[str] = frozenset()

    def take(self, identity: str) -> None:
        """Take on an identity; what was published under another one stays this agent's."""
        self.former |= {self.identity} - {identity}
        self.identity = identity

    @property
    def condition(self) -> tuple[Condition, ...]:
        """The condition that says who published."""
        if not self.identity:
            return ()
        return (Condition(PUBLISHER, "True", "Agent", self.identity),)

    def refused(self) -> Failure | None:
        """Return why this agent publishes nothing at all, None where it may."""
        if not self.rival:
            return None
        message = (
            f"another agent of this installation ({self.rival}) publishes for this managed cluster,"
            " and this one stands by: run one replica"
        )
        return Failure("publish", ANOTHER_AGENT, message)

    def foreign(self, obj: Mapping[str, Any], now: datetime) -> Failure | None:
        """Return why an object is left alone: another installation's agent keeps it valid."""
        status, metadata = obj.get("status") or {}, obj["metadata"]
        publisher = find(status.get("conditions") or [], PUBLISHER)
        theirs = str(publisher.get("message") or "") if publisher else ""
        until = read_time(status.get("validUntil"))
        ours = theirs in {"", self.identity, *self.former}
        if not self.identity or ours or until is None or until <= now:
            return None
        name = f"{metadata['namespace']}/{metadata['name']}"
        message = (
            f"AddOnPlacementScore {name} is published by the agent of another installation"
            f" ({theirs}; this one is {self.identity}): give each managed cluster's agent its own"
            " --cluster-name. Where that agent is gone, its score is taken over once it expires, or"
            " at once if you delete it"
        )
        return Failure("publish", ANOTHER_AGENT, message)
