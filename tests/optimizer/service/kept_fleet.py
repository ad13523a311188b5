"""The development guide's fleet, and the PlacementOptimizations that are kept on it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dsf.api.conditions import Condition, conditions_of, find, merged
from dsf.api.names import APPROVED_DIGEST_ANNOTATION
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION, Kind
from dsf.kube.port import Kube, Object
from optimizer.service.namespace_lease import LEASE_NAME
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.observation import Observation
from tests.optimizer.build import NOW, PERFORMANCE, named, obj
from tests.optimizer.hubs import bound, hub_of

PREFERENCE = {"addonPlacementScore": "performance", "scoreDimensionFormat": "${app};${device}"}
AT_ONCE = {"stabilizationWindowSeconds": 0, "leastGain": 0, "variationMultiple": 0}
"""With this the last scores decide at once."""
POWER = {**PREFERENCE, "addonPlacementScore": "power"}

MIG_3G = {"3g.48gb-worker01", "3g.48gb-worker02"}
MIG_2G = {"2g.24gb-worker01", "2g.24gb-worker02"}


@dataclass
class KeptFleet:
    """A hub whose optimizers see the time `now`; each look is one of a new process."""

    hub: EmbeddedHub
    now: datetime = NOW
    read_only: bool = False

    def service(self, kube: Kube | None = None) -> Optimizer:
        return Optimizer(kube or self.hub, now=lambda: self.now, lease_seconds=1)

    def controller(self, kube: Kube | None = None) -> OptimizationController:
        return OptimizationController(self.service(kube), read_only=self.read_only)

    async def declare(self, name: str = "kept", **spec: Any) -> Object:
        """Apply a manifest as kubectl or a GitOps tool does."""
        whole = {"preference": PREFERENCE, "hysteresis": AT_ONCE, **spec}
        there = [i["metadata"]["name"] for i in await self.all(PLACEMENT_OPTIMIZATION)]
        if name in there:
            return await self.hub.patch(PLACEMENT_OPTIMIZATION, name, {"spec": whole}, "default")
        made = obj(PLACEMENT_OPTIMIZATION, name, "default", spec=whole)
        return await self.hub.create(PLACEMENT_OPTIMIZATION, made)

    async def look(self, name: str = "kept", times: int = 1) -> Object:
        """Let new processes look; return the object after it."""
        for _ in range(times):
            await self.controller().look("default", name)
        return await self.get(name)

    async def get(self, name: str = "kept") -> Object:
        return await self.hub.get(PLACEMENT_OPTIMIZATION, name, "default")

    async def annotate(self, annotation: str, value: str, name: str = "kept") -> None:
        body = {"metadata": {"annotations": {annotation: value}}}
        await self.hub.patch(PLACEMENT_OPTIMIZATION, name, body, "default")

    async def approve(self, digest: str, name: str = "kept") -> None:
        await self.annotate(APPROVED_DIGEST_ANNOTATION, digest, name)

    async def all(self, kind: Kind) -> tuple[Object, ...]:
        return (await self.hub.list(kind, "default")).items

    async def bound(self) -> set[str]:
        return await bound(self.hub)

    async def score(self, cluster: str, name: str, table: dict[tuple[str, str], int]) -> None:
        """Publish a score."""
        entries = [{"name": key, "value": value} for key, value in named(table).items()]
        status = {"status": {"scores": entries}}
        kind = kinds.ADD_ON_PLACEMENT_SCORE
        await self.hub.patch(kind, name, status, cluster, subresource="status")

    async def shift(self) -> None:
        """Publish scores by which the smallest devices are best."""
        table = {**PERFORMANCE, ("app01", "2g.24gb"): 90, ("app02", "2g.24gb"): 90}
        for cluster in ("worker01", "worker02"):
            await self.score(cluster, "performance", table)

    async def bury(self) -> None:
        """Let the Lease of a killed process expire."""
        for lease in await self.all(kinds.LEASE):
            if lease["metadata"]["name"] == LEASE_NAME:
                await self.hub.delete(kinds.LEASE, LEASE_NAME, "default")

    def later(self, **by: float) -> None:
        self.now += timedelta(**by)


WAITING = "a" * 64
"""The digest of the plan that `declare_waiting` lets wait."""


async def declare_waiting(hub: EmbeddedHub) -> None:
    """Declare what is kept, with a plan that waits for an approval."""
    spec = {"preference": PREFERENCE, "mode": "Approve"}
    await hub.create(
        PLACEMENT_OPTIMIZATION, obj(PLACEMENT_OPTIMIZATION, "kept", "default", spec=spec)
    )
    waits = Condition("Applied", "False", "AwaitingApproval", "approve it")
    told = (Condition("Ready", "True", "Kept"), Condition("Planned", "True", "Optimal"), waits)
    plan = {"digest": WAITING, "time": rfc3339(NOW), "objective": 115, "workloads": 2}
    status = {"conditions": merged([], told, now=rfc3339(NOW)), "plan": plan, "gain": 115}
    body = {"status": status}
    await hub.patch(PLACEMENT_OPTIMIZATION, "kept", body, "default", subresource="status")


def said(of: Object) -> dict[str, str]:
    """Return status and reason of each condition."""
    return {i["type"]: f"{i['status']} {i['reason']}" for i in conditions_of(of)}


def message(of: Object, type_: str) -> str:
    """Return the message of a condition."""
    return str((find(conditions_of(of), type_) or {}).get("message"))


async def kept_fleet(observation: Observation | None = None, **spec: Any) -> KeptFleet:
    """Return the guide's fleet; with a spec, what is kept of it is declared."""
    fleet = KeptFleet(await hub_of(observation))
    if spec:
        await fleet.declare(**spec)
    return fleet
