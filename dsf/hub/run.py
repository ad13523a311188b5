"""The hub controller's loop: take a snapshot, plan, apply the changes."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import REGISTRY, CollectorRegistry, Counter

from dsf.api import names
from dsf.api.times import rfc3339
from dsf.hub.assess.health_thresholds import Thresholds
from dsf.hub.distribute.held_clusters import RefusedWrites, UnseenWrites, is_clusters_own
from dsf.hub.distribute.rendered_summaries import SummariesRenderer
from dsf.hub.observe.polling import Polling
from dsf.hub.observe.prober import Prober
from dsf.hub.observe.views import Views
from dsf.hub.plan import plan
from dsf.hub.report.progress_reports import ProgressReports, is_progress
from dsf.hub.report.status_events import status_events
from dsf.hub.secrets_controller import SecretsController
from dsf.hub.snapshot.hub_snapshot import HubSnapshot
from dsf.kube.apply import WriteLimiter, apply
from dsf.kube.changes import ChangeResult
from dsf.kube.clock import utc_now
from dsf.kube.concurrency_limit import ConcurrencyBounds
from dsf.kube.errors import Conflict, KubeError
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, MANIFEST_WORK
from dsf.kube.port import Kube, require_answer
from dsf.runtime.backoff import Backoff
from dsf.runtime.events import EventRecorder
from dsf.runtime.leader_election import Lead, alone
from dsf.runtime.metrics import measure_writes
from dsf.runtime.reconcile.controller import Controller, WorkQueue

log = logging.getLogger(__name__)

COMPONENT = "dynamic-scoring-controller"
FLEET = "fleet"
"""Key of the only thing to reconcile, and name of its controller in metrics."""
SETTLE_SECONDS = 0.05
"""Changes within this time lead to one reconcile."""
REPORT_SPACING = 2.5
"""Statuses that say how far things have come are this many reports of agents apart."""
MOST_WORKS = 1000
"""After so many works there is a new plan: a change need not wait until one before is everywhere,
and the clusters that are left do not get both."""
CONFLICTS = Backoff(0.5, 8.0)
"""After a conflict the newer object is on its way, so the back-off is shorter than for errors."""
STAND_BY_SECONDS = 0.5
"""How long a process that is to lead waits for the Lease before it lists: longer than a free one
takes, and short enough to be ready soon."""
UNSEEN_SECONDS = 20.0
"""How long to wait until the watch shows a write: longer than a watch needs to recover."""


@dataclass(frozen=True, slots=True)
class HubOptions:
    """Settings of the controller.

    `resync_seconds` pass between two full reconciles, and between two fetches of one API's config.
    `probe_seconds` pass between two probes of one scoring API.
    Changes of scores and manifests within `report_seconds` lead to one reconcile. `writes` bounds
    the writes in flight. Workloads and policies of `manifest_namespaces` are sent to scorers that
    ask for them.
    """

    namespace: str = names.HUB_NAMESPACE
    agent_namespace: str = names.AGENT_NAMESPACE
    resync_seconds: float = 30.0
    probe_seconds: float = 10.0
    report_seconds: float = 2.0
    thresholds: Thresholds = field(default_factory=Thresholds)
    distribute_secrets: bool = False
    manifest_namespaces: tuple[str, ...] = ()
    writes: ConcurrencyBounds = field(default_factory=ConcurrencyBounds)


class HubController:
    """Reconciles ManifestWorks and statuses with the DynamicScorers and the DynamicScoringConfig.

    Metrics: those of `dsf.runtime.metrics` for the controller `fleet`, those of
    `dsf.hub.observe.polling`, those of writes, and `dsf_hub_writes_total{kind, result}`.
    `health` is asked whether the hub can be read.
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
        health: Kube | None = None,
    ) -> None:
        self._kube = kube
        self._health = health or kube
        self._options = options or HubOptions()
        self._now = now
        self._draw = draw
        self._refusals = RefusedWrites()
        self._unseen = UnseenWrites()
        self._reports = ProgressReports()
        self._conflicts = 0
        self._last_written = ""
        self._backoff = Backoff()
        self._renderer = SummariesRenderer()
        self._views = Views(
            kube,
            self._options.namespace,
            self._options.agent_namespace,
            self._options.manifest_namespaces,
        )
        # One scorer's status may fail permanently: the others are still reconciled at every resync.
        queue = WorkQueue(Backoff(ceiling=self._options.resync_seconds), draw)
        self._fleet = Controller(FLEET, self._reconcile, queue=queue, registry=registry)
        self._polling = Polling(
            prober or Prober(),
            self._views.scorers,
            seconds=self._options.probe_seconds,
            config_seconds=self._options.resync_seconds,
            thresholds=self._options.thresholds,
            news=lambda: self._fleet.enqueue(FLEET),
            draw=draw,
            registry=registry,
        )
        self._events = EventRecorder(kube, COMPONENT, now=now, registry=registry)
        self._limiter = WriteLimiter(self._options.writes)
        measure_writes(self._limiter, registry)
        self._secrets = self._secret_distribution(registry)
        self._writes = Counter(
            "dsf_hub_writes",
            "Writes by kind: ok, or the error.",
            ["kind", "result"],
            registry=registry,
        )

    async def unready_reason(self) -> str | None:
        """Return which lists are missing, or why the hub can't be read; None if it is ready."""
        unseen = [*self._views.missing(), *(self._secrets.missing() if self._secrets else ())]
        if unseen:
            return f"waiting for the first list of {', '.join(unseen)}"
        try:
            await require_answer(self._health, DYNAMIC_SCORER, self._options.namespace)
        except KubeError as error:
            return f"the hub can't be read: {error}"
        return None

    async def run(self, lead: Lead | None = None) -> None:
        """Work until cancelled; `lead` runs the work that it is given while this process leads.

        While another process leads, the watches keep running, so that this one can take over fast.
        They start once this one leads, or soon after it asked to: what is listed while leading need
        not be listed again.
        """
        self._views.on_change(
            urgent=lambda: self._fleet.enqueue(FLEET, SETTLE_SECONDS),
            often=lambda: self._fleet.enqueue(FLEET, self._options.report_seconds),
        )
        async with asyncio.TaskGroup() as group:
            watching = asyncio.Event()

            def watch() -> None:
                self._views.start(group)
                if self._secrets:
                    self._secrets.watch(group)
                watching.set()

            async def stand_by() -> None:
                await asyncio.sleep(STAND_BY_SECONDS)
                if not watching.is_set():
                    watch()

            async def take_over() -> None:
                """Work from what the last leader wrote, which watches may not have shown yet."""
                outdated = watching.is_set()
                if not outdated:
                    watch()
                await self._views.synced()
                if outdated:
                    await self._views.refresh()
                await self._work()

            if lead:
                group.create_task(stand_by())
            await (lead or alone)(take_over)

    async def _work(self) -> None:
        """Probe, plan and apply, without what is left of an earlier term as leader."""
        self._polling.forget()
        self._refusals = RefusedWrites()
        self._unseen = UnseenWrites()
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
            limiter=self._limiter,
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
            hub_namespace=self._options.namespace,
            renderer=self._renderer,
        )
        unseen = bool(self._unseen.held(snapshot.works, now))
        spacing = REPORT_SPACING * self._options.report_seconds
        due_at = self._reports.due_at(changes, unseen=unseen, seconds=spacing)
        due = [each for each in changes if now >= due_at or not is_progress(each)]
        waits = len(due) < len(changes)
        works = {each.namespace or "" for each in due if each.kind == MANIFEST_WORK}
        turn = self._turn(works)
        written = [each for each in due if each.kind != MANIFEST_WORK or each.namespace in turn]
        outcomes = await apply(self._kube, written, limiter=self._limiter)
        for outcome in outcomes:
            self._log(outcome)
        self._record_events(snapshot, outcomes)
        if self._secrets:
            self._secrets.nudge()
        self._unseen = self._unseen.after(
            outcomes, snapshot.works, now=asyncio.get_running_loop().time(), seconds=UNSEEN_SECONDS
        )
        self._reports = self._reports.after(
            outcomes, waits=waits, now=asyncio.get_running_loop().time()
        )
        self._refusals = self._refusals.after(
            outcomes,
            snapshot.clusters,
            now=now,
            draw=self._draw(),
            backoff=self._backoff,
            left=works - turn,
        )
        if self._refusals.words() != snapshot.refusals:
            self._fleet.enqueue(FLEET, SETTLE_SECONDS)
        again = self._again_after(outcomes)
        if len(written) < len(due):
            return 0.0
        return min(again, due_at - now, spacing) if waits else again

    def _turn(self, clusters: Iterable[str]) -> frozenset[str]:
        """Return the clusters whose works are written now: those that follow the last ones.

        So changes that come faster than works are written leave no cluster out.
        """
        turn = sorted(clusters, key=lambda name: (name <= self._last_written, name))[:MOST_WORKS]
        self._last_written = turn[-1] if turn else self._last_written
        return frozenset(turn)

    def _again_after(self, outcomes: Iterable[ChangeResult]) -> float:
        """Return the seconds until the next reconcile; raise an error that needs a back-off.

        After a conflict the newer object is on its way. A write refused for one cluster has a
        back-off of its own.
        """
        errors = [each.error for each in outcomes if each.error and not is_clusters_own(each)]
        retryable = [error for error in errors if error.retryable]
        for error in retryable:
            if not isinstance(error, Conflict):
                raise error
        now = asyncio.get_running_loop().time()
        next_at = self._refusals.next_at(now)
        self._conflicts = self._conflicts + 1 if retryable else 0
        longest = self._options.resync_seconds
        if retryable:
            longest = CONFLICTS.delay(self._conflicts, 0.0)
        return longest if next_at is None else min(longest, next_at - now)

    def _observe(self, now: float) -> HubSnapshot:
        held = self._refusals.held(now) | self._unseen.held(self._views.works(), now)
        return self._views.snapshot(self._polling.believed(), self._refusals.words(), held)

    def _record_events(self, snapshot: HubSnapshot, outcomes: Iterable[ChangeResult]) -> None:
        """Record an Event for every transition that was written."""
        written = [outcome.change for outcome in outcomes if outcome.error is None]
        observed = [(DYNAMIC_SCORER, scorer.obj) for scorer in snapshot.scorers]
        if snapshot.config:
            observed.append((DYNAMIC_SCORING_CONFIG, snapshot.config.obj))
        for each in status_events(observed, written):
            self._events.record(each.kind, each.obj, each.type, each.reason, each.message)

    def _log(self, outcome: ChangeResult) -> None:
        change, error = outcome.change, outcome.error
        result = type(error).__name__ if error else "ok"
        self._writes.labels(change.kind.kind, result).inc()
        log.log(
            logging.WARNING if error else logging.INFO,
            "write",
            extra={"change": str(change), "result": str(error or "ok")},
        )
