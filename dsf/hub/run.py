"""The hub controller: observe, plan, apply, over and over."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import REGISTRY, CollectorRegistry, Counter

from dsf.api import names
from dsf.api.times import rfc3339
from dsf.hub.assess.health_thresholds import Thresholds
from dsf.hub.distribute.refused_writes import RefusedWrites, is_clusters_own
from dsf.hub.distribute.rendered_summaries import SummariesRenderer
from dsf.hub.distribute.unseen_writes import UnseenWrites
from dsf.hub.observe.polling import Polling
from dsf.hub.observe.prober import Prober
from dsf.hub.observe.views import Views
from dsf.hub.plan import plan
from dsf.hub.report.status_events import status_events
from dsf.hub.secrets_controller import SecretsController
from dsf.hub.snapshot.hub_snapshot import HubSnapshot
from dsf.kube.apply import apply
from dsf.kube.changes import ChangeResult
from dsf.kube.clock import utc_now
from dsf.kube.errors import Conflict
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG
from dsf.kube.port import Kube
from dsf.runtime.backoff import Backoff
from dsf.runtime.events import EventRecorder
from dsf.runtime.reconcile.controller import Controller
from dsf.runtime.reconcile.work_queue import WorkQueue

log = logging.getLogger(__name__)

Lead = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]

COMPONENT = "dynamic-scoring-controller"
FLEET = "fleet"
SETTLE_SECONDS = 0.05
CONFLICTS = Backoff(0.5, 8.0)
UNSEEN_SECONDS = 20.0
"""How long a write that is not seen is waited for: longer than a watch needs to recover."""


@dataclass(frozen=True, slots=True)
class HubOptions:
    """What can be set; `resync_seconds` is between two polls of one scoring API, too.

    News of the agents are gathered for `report_seconds` before they are reported.
    """

    namespace: str = names.HUB_NAMESPACE
    agent_namespace: str = names.AGENT_NAMESPACE
    resync_seconds: float = 30.0
    report_seconds: float = 2.0
    thresholds: Thresholds = field(default_factory=Thresholds)
    distribute_secrets: bool = False


class HubController:
    """Keeps ManifestWorks and statuses as the DynamicScorers and the config ask for.

    Metrics: those of `dsf.runtime.metrics` for the controller `fleet`, those of
    `dsf.hub.observe.polling`, and `dsf_hub_writes_total{kind, result}`.
    """

    def __init__(
        self,
        kube: Kube,
        options: HubOptions | None = None,
        *,
        prober: Prober | None = None,
        now: Callable[[], datetime] = utc_now,
        draw: Callable[[], float] = random.random,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._kube = kube
        self._options = options or HubOptions()
        self._now = now
        self._draw = draw
        self._refusals = RefusedWrites()
        self._written = UnseenWrites()
        self._conflicts = 0
        self._backoff = Backoff()
        self._renderer = SummariesRenderer()
        self._views = Views(kube, self._options.namespace, self._options.agent_namespace)
        # What fails may be one scorer's status: the others are looked after at every resync.
        queue = WorkQueue(Backoff(ceiling=self._options.resync_seconds), draw)
        self._fleet = Controller(FLEET, self._reconcile, queue=queue, registry=registry)
        self._polling = Polling(
            prober or Prober(),
            self._views.scorers,
            seconds=self._options.resync_seconds,
            thresholds=self._options.thresholds,
            news=lambda: self._fleet.enqueue(FLEET),
            draw=draw,
            registry=registry,
        )
        self._events = EventRecorder(kube, COMPONENT, now=now, registry=registry)
        self._secrets = self._secret_distribution(registry)
        self._writes = Counter("dsf_hub_writes", "Writes.", ["kind", "result"], registry=registry)

    def missing(self) -> str | None:
        """Return what has not been listed yet, None once the controller is ready."""
        unseen = [*self._views.missing(), *(self._secrets.missing() if self._secrets else ())]
        return f"waiting for the first list of {', '.join(unseen)}" if unseen else None

    async def run(self, lead: Lead | None = None) -> None:
        """Work until cancelled; `lead` calls what it is given for as long as this process leads.

        While another one leads, what is needed to take over at once is watched.
        """
        self._views.on_change(
            urgent=lambda: self._fleet.enqueue(FLEET, SETTLE_SECONDS),
            score=lambda: self._fleet.enqueue(FLEET, self._options.report_seconds),
        )
        async with asyncio.TaskGroup() as group:
            self._views.start(group)
            if self._secrets:
                self._secrets.watch(group)
            await self._views.synced()
            await (lead(self._take_over) if lead else self._work())

    async def _take_over(self) -> None:
        """Work on from what the last leader wrote, which the watches may not have brought yet."""
        await self._views.refresh()
        await self._work()

    async def _work(self) -> None:
        """Probe, plan and apply; what was known when this process led before counts no more."""
        self._polling.forget()
        self._refusals = RefusedWrites()
        self._written = UnseenWrites()
        self._fleet.enqueue(FLEET)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fleet.run())
            group.create_task(self._polling.run())
            group.create_task(self._events.run())
            if self._secrets:
                group.create_task(self._secrets.run())

    def _secret_distribution(self, registry: CollectorRegistry) -> SecretsController | None:
        if not self._options.distribute_secrets:
            return None
        return SecretsController(
            self._kube,
            namespace=self._options.namespace,
            agent_namespace=self._options.agent_namespace,
            resync_seconds=self._options.resync_seconds,
            scorers=self._views.scorers.items.values,
            works=self._views.works,
            events=self._events,
            draw=self._draw,
            registry=registry,
        )

    async def _reconcile(self, _: str) -> float | None:
        now = asyncio.get_running_loop().time()
        snapshot = self._observe(now)
        changes = plan(
            snapshot,
            now=rfc3339(self._now()),
            agent_namespace=self._options.agent_namespace,
            renderer=self._renderer,
        )
        outcomes = await apply(self._kube, changes)
        for outcome in outcomes:
            self._note(outcome)
        self._tell(snapshot, outcomes)
        if self._secrets:
            self._secrets.nudge()
        self._written = self._written.after(
            outcomes,
            snapshot.works,
            now=asyncio.get_running_loop().time(),
            seconds=UNSEEN_SECONDS,
        )
        self._refusals = self._refusals.after(
            outcomes, snapshot.clusters, now=now, draw=self._draw(), backoff=self._backoff
        )
        if self._refusals.words() != snapshot.refusals:
            self._fleet.enqueue(FLEET, SETTLE_SECONDS)
        return self._again_after(outcomes)

    def _again_after(self, outcomes: Iterable[ChangeResult]) -> float:
        """Return when to reconcile again; raise what the back-off is for.

        A conflict says that the snapshot was old: what is newer is on its way. What the API server
        refuses for one cluster has its own back-off.
        """
        errors = [each.error for each in outcomes if each.error and not is_clusters_own(each)]
        passing = [error for error in errors if error.retryable]
        for error in passing:
            if not isinstance(error, Conflict):
                raise error
        now = asyncio.get_running_loop().time()
        next_at = self._refusals.next_at(now)
        self._conflicts = self._conflicts + 1 if passing else 0
        longest = self._options.resync_seconds
        if passing:
            longest = CONFLICTS.delay(self._conflicts, 0.0)
        return longest if next_at is None else min(longest, next_at - now)

    def _observe(self, now: float) -> HubSnapshot:
        held = self._refusals.held(now) | self._written.held(self._views.works(), now)
        return self._views.snapshot(self._polling.believed(), self._refusals.words(), held)

    def _tell(self, snapshot: HubSnapshot, outcomes: Iterable[ChangeResult]) -> None:
        """Record an event for every transition that was written."""
        written = [outcome.change for outcome in outcomes if outcome.error is None]
        observed = [(DYNAMIC_SCORER, scorer.obj) for scorer in snapshot.scorers]
        if snapshot.config:
            observed.append((DYNAMIC_SCORING_CONFIG, snapshot.config.obj))
        for each in status_events(observed, written):
            self._events.record(each.kind, each.obj, each.type, each.reason, each.message)

    def _note(self, outcome: ChangeResult) -> None:
        change, error = outcome.change, outcome.error
        result = type(error).__name__ if error else "ok"
        self._writes.labels(change.kind.kind, result).inc()
        log.log(
            logging.WARNING if error else logging.INFO,
            "write",
            extra={"change": str(change), "result": str(error or "ok")},
        )
