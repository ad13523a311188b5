"""When a NodeInventory was observed, and how long it is relied on."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

from dsf.api.times import read_time

GRACE = timedelta(seconds=180)
"""For how long an inventory is relied on at most, and how far an agent's clock may be ahead."""


class InventoryTimes(NamedTuple):
    """When an inventory was observed, and until when it is relied on."""

    observed: datetime
    until: datetime

    @classmethod
    def of(cls, inventory: Mapping[str, Any]) -> Self | None:
        """Return the times of a NodeInventory; None if it does not say when it was observed."""
        status: Mapping[str, Any] = inventory.get("status") or {}
        observed = read_time(status.get("observedTime"))
        if observed is None:
            return None
        latest = observed + GRACE
        return cls(observed, min(read_time(status.get("validUntil")) or latest, latest))

    def relied_on(self, now: datetime) -> bool:
        """Return whether it has not expired, and no clock is far ahead."""
        return self.observed - GRACE <= now < self.until
