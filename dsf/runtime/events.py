"""Record Kubernetes Events: deduplicated, rate-limited, and without blocking the caller.

They are events of core/v1, because every version of kubectl shows these with their count, and a
repetition costs one small patch. A repeated event gets the same name, so the count continues after
a restart and in another replica.

Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from prometheus_client import REGISTRY, CollectorRegistry, Counter

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import escaped
from dsf.kube.clock import utc_now
from dsf.kube.errors import AlreadyExists, KubeError, NotFound, retry_after
from dsf.kube.kinds import EVENT, Kind
from dsf.kube.port import Kube
from dsf.kube.redaction import redact
from dsf.runtime.backoff import Backoff
from dsf.runtime.lru_cache import LruCache
from dsf.runtime.reconcile.controller import WorkQueue

log = logging.getLogger(__name__)

Type = Literal["Normal", "Warning"]
_Body = dict[str, Any]

MOST_WAITING = 1000
"""Events in the queue; bounds the memory while the API server is down."""
MOST_OBJECTS = 4096
"""Objects with a token bucket; bounds the memory in a large fleet."""
BURST = 25
"""Events that one object may have at once, as in client-go's EventCorrelator."""
REFILL_SECONDS = 300.0
"""Seconds until an object may have one event more, as in client-go."""
REPEAT_SECONDS = 60.0
"""Time between two writes of one event; repetitions meanwhile are counted."""
ATTEMPTS = 5
"""Attempts to write one event."""
_MESSAGE_LIMIT = 1024
"""Characters; the API server refuses longer messages."""
_NAME_LIMIT = 230
"""Characters of an object's name in the name of an event, which has at most 253 with its suffix."""


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """The event budget of one object: `left` tokens at time `at`."""

    left: float
    at: float

    def after(self, now: float) -> "TokenBucket":
        """Return the bucket at time `now`, refilled."""
        return TokenBucket(min(BURST, self.left + (now - self.at) / REFILL_SECONDS), now)

    def spent(self) -> "TokenBucket":
        """Return the bucket after one event."""
        return TokenBucket(self.left - 1, self.at)


@dataclass(frozen=True, slots=True)
class _Written:
    """The count of an event as it was last written, and when, in seconds of the loop's clock."""

    count: int
    at: float


class EventRecorder:
    """Writes events about objects while `run` runs; `component` is their source.

    `record` returns at once. Each object may have a burst of 25 events, then one every five
    minutes. An event that repeats one is counted with others like it, and written at most once a
    minute; what waits when `run` ends is lost. If too many wait to be written, the oldest are
    dropped. A failed write is retried a few times. Metric: `dsf_events_total{result}` (written,
    counted, limited, dropped, failed).
    """

    def __init__(
        self,
        kube: Kube,
        component: str,
        *,
        now: Callable[[], datetime] = utc_now,
        backoff: Backoff | None = None,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._kube = kube
        self._component = component
        self._now = now
        self._backoff = backoff or Backoff(1.0, 30.0)
        self._waiting: dict[str, _Body] = {}
        self._due = WorkQueue()
        self._written = LruCache[str, _Written](MOST_WAITING)
        self._allowances = LruCache[str, TokenBucket](MOST_OBJECTS)
        self._results = Counter(
            "dsf_events",
            "Events: written, counted, limited, dropped, failed.",
            ["result"],
            registry=registry,
        )

    def record(
        self, kind: Kind, obj: Mapping[str, Any], type_: Type, reason: str, message: str
    ) -> None:
        """Queue an event about an object, unless its budget is used up."""
        event = self._event(kind, obj, type_, reason, message)
        name = event["metadata"]["name"]
        if waiting := self._waiting.get(name):
            waiting.update(count=waiting["count"] + 1, lastTimestamp=event["lastTimestamp"])
            self._results.labels("counted").inc()
            return
        if not self._allowed(str(obj["metadata"].get("uid") or obj["metadata"]["name"])):
            self._results.labels("limited").inc()
            return
        if len(self._waiting) == MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
            self._results.labels("dropped").inc()
        self._waiting[name] = event
        before = self._written.get(name)
        now = asyncio.get_running_loop().time()
        self._due.add(name, max(0.0, before.at + REPEAT_SECONDS - now) if before else 0.0)

    async def run(self) -> None:
        """Write the queued events until cancelled."""
        # Another replica may have counted on since an earlier run.
        self._written = LruCache[str, _Written](MOST_WAITING)
        while True:
            name = await self._due.get()
            try:
                event = self._waiting.pop(name, None)
                if event is not None:
                    self._results.labels(await self._write(event)).inc()
            finally:
                self._due.done(name)

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
        text = escaped(redact(f"{message}"))[:_MESSAGE_LIMIT]
        identity = "\0".join((kind.kind, str(metadata.get("uid")), type_, reason, text))
        digest = hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:16]
        namespace = metadata.get("namespace") or "default"
        now = rfc3339(self._now())
        return EVENT.object(
            metadata={"name": f"{metadata['name'][:_NAME_LIMIT]}.{digest}", "namespace": namespace},
            involvedObject=kind.object(
                name=metadata["name"],
                namespace=metadata.get("namespace", ""),
                uid=metadata.get("uid", ""),
                resourceVersion=metadata.get("resourceVersion", ""),
            ),
            type=type_,
            reason=reason,
            message=text,
            count=1,
            firstTimestamp=now,
            lastTimestamp=now,
            source={"component": self._component},
            reportingComponent=self._component,
            reportingInstance=self._component,
        )

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
        name = event["metadata"]["name"]
        before = self._written.get(name)
        count = await self._count(event, before.count) if before else None
        if count is None:
            try:
                await self._kube.create(EVENT, event)
                count = event["count"]
            except AlreadyExists:
                count = await self._count(event)
        if count is not None:
            self._written.put(name, _Written(count, asyncio.get_running_loop().time()))

    async def _count(self, event: _Body, before: int | None = None) -> int | None:
        """Count on from what was written, or else from what is there; None if the event is gone."""
        name, namespace = event["metadata"]["name"], event["metadata"]["namespace"]
        try:
            if before is None:
                found = await self._kube.get(EVENT, name, namespace)
                before = int(found.get("count") or 1)
            count = before + int(event["count"])
            body = {"count": count, "lastTimestamp": event["lastTimestamp"]}
            await self._kube.patch(EVENT, name, body, namespace)
        except NotFound:
            # The event has just expired.
            return None
        return count
