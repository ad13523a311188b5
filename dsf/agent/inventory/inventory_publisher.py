"""Publishes the inventory of one managed cluster as its NodeInventory on the hub."""

import asyncio
import logging
import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from dsf.agent.inventory.inventory_metrics import InventoryMetrics
from dsf.agent.inventory.inventory_status import TIMES, Summary, inventory_patch
from dsf.agent.inventory.watch import InventoryWatch
from dsf.agent.publish.write_permission import PublisherIdentity
from dsf.api import names
from dsf.kube.changes import without_managed_fields
from dsf.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound
from dsf.kube.kinds import NODE_INVENTORY
from dsf.kube.port import Kube, Object
from dsf.runtime.backoff import Backoff

log = logging.getLogger(__name__)

WRITE_SECONDS = 5.0
"""The shortest time between two writes."""

BYTES_PER_SECOND = 20_000
"""What writes come to at most on average: a large inventory is written less often."""

RENEW_SECONDS = 60.0
CALL_SECONDS = 30.0
ATTEMPTS = 3

PASSING = Backoff(1.0, 30.0)
LASTING = Backoff(30.0, 300.0)
"""After failures that only people can end: no CRD, no right, another installation's inventory."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the inventory is not on the hub; `lasting` if only people can change that."""

    reason: str
    message: str
    lasting: bool = True


@dataclass(slots=True)
class InventoryPublisher:
    """Writes the NodeInventory when something has changed, and renews it."""

    hub: Kube
    cluster: str
    watch: InventoryWatch
    metrics: InventoryMetrics
    identity: PublisherIdentity
    now: Callable[[], datetime]
    _observed: Object | None = None
    _written: Summary | None = None
    _renewed: float = -math.inf
    _size: int = 0
    _failures: int = 0
    _told: str = ""
    _draw: Callable[[], float] = field(default=random.random)

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(WRITE_SECONDS):
                    await self.watch.changed.wait()
            self.watch.changed.clear()
            await asyncio.sleep(await self.publish())

    async def publish(self) -> float:
        """Write what is different, if anything; return how many seconds to wait afterwards."""
        summary = await self.watch.summary()
        if summary is None:
            return 0.0
        self._count()
        refusal = await self._within(summary)
        if refusal is None:
            self._failures, self._told = 0, ""
            return max(WRITE_SECONDS, self._size / BYTES_PER_SECOND)
        self.metrics.publish.labels(refusal.reason).inc()
        if refusal.message != self._told:
            extra = {"reason": refusal.reason, "error": refusal.message}
            log.warning("inventory not published", extra=extra)
        self._told = refusal.message
        self._failures += 1
        self.watch.changed.set()
        backoff = LASTING if refusal.lasting else PASSING
        return backoff.delay(self._failures, self._draw())

    def _count(self) -> None:
        pods = self.watch.state.pods
        self.metrics.nodes.set(len(self.watch.state.nodes))
        self.metrics.pods.labels("pending").set(len(pods.pending))
        self.metrics.pods.labels("bound").set(sum(1 for pod in pods.pods.values() if pod.node))

    async def _within(self, summary: Summary) -> Refusal | None:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await self._publish(summary)
        except TimeoutError:
            message = f"the hub did not answer within {CALL_SECONDS:g} s"
            return Refusal("DeadlineExceeded", message, lasting=False)
        except NotFound:
            message = (
                f"the hub has no NodeInventories, or no namespace {self.cluster}: upgrade the CRDs"
                " on the hub with the chart of this version"
            )
            return Refusal("NotFound", message)
        except Forbidden as error:
            message = (
                f"the hub refuses it: {error}; the chart's spokeSetting.agent.inventory.enabled"
                " grants the right"
            )
            return Refusal("Forbidden", message)
        except KubeError as error:
            message = f"the hub answered: {error}"
            return Refusal(type(error).__name__, message, lasting=not error.retryable)

    async def _publish(self, summary: Summary) -> Refusal | None:
        if standby := self.identity.standby_failure():
            return Refusal(standby.reason, standby.message, lasting=False)
        for _ in range(ATTEMPTS):
            observed = self._observed or await self._read_or_create()
            if theirs := self.identity.foreign_failure(observed, self.now()):
                self._observed = None
                return Refusal(theirs.reason, theirs.message)
            clock, now = asyncio.get_running_loop().time(), self.now()
            fresh = clock - self._renewed < RENEW_SECONDS
            if fresh and summary is self._written:
                return None
            silent = clock - self.watch.confirmed
            confirmed = now if summary.fields["nodes"] is None else now - timedelta(seconds=silent)
            patch = inventory_patch(
                observed, summary, confirmed=confirmed, now=now, publisher=self.identity.condition
            )
            if not patch or (fresh and patch["status"].keys() <= TIMES):
                self._written = summary
                return None
            try:
                written = await self.hub.patch(
                    NODE_INVENTORY, self.cluster, patch, self.cluster, subresource="status"
                )
            except (Conflict, NotFound):
                self._observed = None
                continue
            self._written, self._renewed = summary, clock
            self._note(without_managed_fields(written), confirmed)
            return None
        return Refusal("Conflict", f"others changed it {ATTEMPTS} times", lasting=False)

    def _note(self, written: Object, confirmed: datetime) -> None:
        self._observed = written
        self._size = len(msgspec.json.encode(written))
        self.metrics.bytes.set(self._size)
        self.metrics.confirmed_at = confirmed.timestamp()
        self.metrics.publish.labels("success").inc()

    async def _read_or_create(self) -> Object:
        with suppress(NotFound):
            return await self.hub.get(NODE_INVENTORY, self.cluster, self.cluster)
        try:
            return await self.hub.create(NODE_INVENTORY, new_inventory(self.cluster))
        except AlreadyExists:
            return await self.hub.get(NODE_INVENTORY, self.cluster, self.cluster)


def new_inventory(cluster: str) -> Object:
    """Return the NodeInventory to create; a patch adds its status."""
    labels = {names.MANAGED_BY_LABEL: names.ADDON}
    return NODE_INVENTORY.object(metadata={"namespace": cluster, "name": cluster, "labels": labels})


BROKEN_SECONDS = 60.0
"""Pause after an unexpected exception, which is a bug: it ends neither the agent nor its scores."""


async def keep_inventory(
    hub: Kube,
    managed: Kube,
    cluster: str,
    node_labels: tuple[str, ...],
    *,
    metrics: InventoryMetrics,
    identity: PublisherIdentity,
    now: Callable[[], datetime],
) -> None:
    """Watch the managed cluster and publish its inventory until cancelled."""
    while True:
        watch = InventoryWatch(managed, node_labels)
        publisher = InventoryPublisher(hub, cluster, watch, metrics, identity, now)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(watch.run())
                tasks.create_task(publisher.run())
        except* Exception:
            log.exception("inventory broke")
            metrics.publish.labels("broken").inc()
        await asyncio.sleep(BROKEN_SECONDS)
