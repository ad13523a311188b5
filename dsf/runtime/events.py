"""Kubernetes Events: told once, counted where they repeat, and never in anybody's way.

Events of core/v1: every version of kubectl shows them with their count, and a repetition is one
small patch. What is told again within their life has the same name, so that a restart, or another
replica, goes on counting.

Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from prometheus_client import REGISTRY, CollectorRegistry, Counter

from dsf.api.times import rfc3339
from dsf.kube.clock import utc_now
from dsf.kube.errors import AlreadyExists, KubeError, NotFound
from dsf.kube.kinds import EVENT, Kind
from dsf.kube.port import Kube
from dsf.kube.redaction import redact
from dsf.runtime.backoff import Backoff, retry_after
from dsf.runtime.lru_cache import LruCache

log = logging.getLogger(__name__)

Type = Literal["Normal", "Warning"]
_Body = dict[str, Any]

MOST_WAITING = 1000
MOST_OBJECTS = 4096
BURST = 25
REFILL_SECONDS = 300.0
ATTEMPTS = 5
_MESSAGE_LIMIT = 1024
_NAME_LIMIT = 230


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """How many events about an object may still be written, as of a time."""

    left: float
    at: float

    def after(self, now: float) -> "TokenBucket":
        """Return the allowance once some time has passed."""
        return TokenBucket(min(BURST, self.left + (now - self.at) / REFILL_SECONDS), now)

    def spent(self) -> "TokenBucket":
        """Return what is left after one event."""
        return TokenBucket(self.left - 1, self.at)


class EventRecorder:
    """Records events about objects while `run` runs; `component` is who tells them.

    `record` returns at once. About one object 25 events may come in a burst, then one every five
    minutes; of those waiting to be written the oldest are dropped. What can't be written is tried
    a few times and dropped. Metric: `dsf_events_total{result}` (written, limited, dropped, failed).
    """

    def __init__(
        self,
        kube: Kube,
        component: str,
        instance: str = "",
        *,
        now: Callable[[], datetime] = utc_now,
        backoff: Backoff | None = None,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._kube = kube
        self._component = component
        self._instance = instance or component
        self._now = now
        self._backoff = backoff or Backoff(1.0, 30.0)
        self._waiting: deque[_Body] = deque()
        self._arrived = asyncio.Event()
        self._allowances = LruCache[str, TokenBucket](MOST_OBJECTS)
        self._results = Counter("dsf_events", "Events.", ["result"], registry=registry)

    def record(
        self, kind: Kind, obj: Mapping[str, Any], type_: Type, reason: str, message: str
    ) -> None:
        """Have an event about an object written some time soon, or not at all."""
        if not self._allowed(str(obj["metadata"].get("uid") or obj["metadata"]["name"])):
            self._results.labels("limited").inc()
            return
        if len(self._waiting) == MOST_WAITING:
            self._waiting.popleft()
            self._results.labels("dropped").inc()
        self._waiting.append(self._event(kind, obj, type_, reason, message))
        self._arrived.set()

    async def run(self) -> None:
        """Write what is recorded until cancelled."""
        while True:
            await self._arrived.wait()
            while self._waiting:
                self._results.labels(await self._write(self._waiting.popleft())).inc()
            self._arrived.clear()

    def _allowed(self, uid: str) -> bool:
        now = asyncio.get_running_loop().time()
        allowance = (self._allowances.get(uid) or TokenBucket(BURST, now)).after(now)
        allowed = allowance.left >= 1
        self._allowances.put(uid, allowance.spent() if allowed else allowance)
        return allowed

    def _event(
        self, kind: Kind, obj: Mapping[str, Any], type_: Type, reason: str, message: str
    ) -> _Body:
        metadata = obj["metadata"]
        text = redact(message)[:_MESSAGE_LIMIT]
        told = "\0".join((kind.kind, str(metadata.get("uid")), type_, reason, text))
        digest = hashlib.sha256(told.encode(errors="replace")).hexdigest()[:16]
        namespace = metadata.get("namespace") or "default"
        now = rfc3339(self._now())
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "name": f"{metadata['name'][:_NAME_LIMIT]}.{digest}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "name": metadata["name"],
                "namespace": metadata.get("namespace", ""),
                "uid": metadata.get("uid", ""),
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "type": type_,
            "reason": reason,
            "message": text,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }

    async def _write(self, event: _Body) -> str:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._write_once(event)
            except KubeError as error:
                if not error.retryable or attempt == ATTEMPTS:
                    log.warning("event not written", extra={"error": str(error)})
                    break
                await asyncio.sleep(max(self._backoff.delay(attempt, 0.0), retry_after(error)))
            else:
                return "written"
        return "failed"

    async def _write_once(self, event: _Body) -> None:
        try:
            await self._kube.create(EVENT, event)
        except AlreadyExists:
            await self._count(event)

    async def _count(self, event: _Body) -> None:
        name, namespace = event["metadata"]["name"], event["metadata"]["namespace"]
        try:
            before = await self._kube.get(EVENT, name, namespace)
            body = {
                "count": int(before.get("count") or 1) + 1,
                "lastTimestamp": event["lastTimestamp"],
            }
            await self._kube.patch(EVENT, name, body, namespace)
        except NotFound:
            # Its time was over just now: the next telling creates it anew.
            return
