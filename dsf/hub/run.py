"""The hub controller: observe, plan, apply, over and over."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client import REGISTRY, CollectorRegistry, Counter

from dsf.api import names
from dsf.api.times import rfc3339
from dsf.hub.plan import plan
from dsf.hub.probe import Prober
from dsf.hub.registration import register
from dsf.hub.snapshot import Probe, ProbeFailure, Snapshot, Target
from dsf.kube.apply import apply
from dsf.kube.changes import Outcome
from dsf.kube.errors import Conflict, KubeError
from dsf.kube.kinds import (
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
)
from dsf.kube.port import Kube
from dsf.runtime.controller import Controller
from dsf.runtime.reflector import Key, Reflector

log = logging.getLogger(__name__)

FLEET = "fleet"
PROBES_AT_ONCE = 16
SETTLE_SECONDS = 0.05
CONFLICT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Options:
    """What can be set; `resync_seconds` is between two polls of one scoring API, too."""

    namespace: str = names.HUB_NAMESPACE
    agent_namespace: str = names.AGENT_NAMESPACE
    resync_seconds: float = 30.0


class HubController:
    """Keeps ManifestWorks and statuses as the DynamicScorers and the config ask for.

    Metrics: those of `dsf.runtime.metrics` for the controllers `fleet` and `probe`,
    `dsf_hub_writes_total{kind, result}` and `dsf_hub_probes_total{result}`.
    """

    def __init__(
        self,
        kube: Kube,
        options: Options | None = None,
        *,
        prober: Prober | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        draw: Callable[[], float] = random.random,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._kube = kube
        self._options = options or Options()
        self._prober = prober or Prober()
        self._now = now
        self._draw = draw
        self._probes: dict[Target, Probe] = {}
        self._probing: set[str] = set()
        self._refusals: dict[str, KubeError] = {}
        namespace = self._options.namespace
        self._scorers = Reflector(kube, DYNAMIC_SCORER, namespace)
        self._configs = Reflector(kube, DYNAMIC_SCORING_CONFIG, namespace)
        self._clusters = Reflector(kube, MANAGED_CLUSTER)
        self._works = Reflector(kube, MANIFEST_WORK, fields=f"metadata.name={names.MANIFEST_WORK}")
        self._reflectors = {
            "DynamicScorers": self._scorers,
            "DynamicScoringConfigs": self._configs,
            "ManagedClusters": self._clusters,
            "ManifestWorks": self._works,
        }
        self._fleet = Controller(FLEET, self._reconcile, registry=registry)
        self._probe = Controller("probe", self._ask, workers=PROBES_AT_ONCE, registry=registry)
        self._writes = Counter("dsf_hub_writes", "Writes.", ["kind", "result"], registry=registry)
        self._answers = Counter("dsf_hub_probes", "Probes.", ["result"], registry=registry)

    def missing(self) -> str | None:
        """Return what has not been listed yet, None once the controller is ready."""
        unseen = [name for name, source in self._reflectors.items() if not source.synced.is_set()]
        return f"waiting for the first list of {', '.join(unseen)}" if unseen else None

    async def run(self) -> None:
        """Work until cancelled."""
        for source in self._reflectors.values():
            source.on_change(lambda _: self._fleet.enqueue(FLEET, SETTLE_SECONDS))
        self._scorers.on_change(self._watch_scorer)
        async with asyncio.TaskGroup() as group:
            for source in self._reflectors.values():
                group.create_task(source.run())
            for source in self._reflectors.values():
                await source.synced.wait()
            self._fleet.enqueue(FLEET)
            group.create_task(self._fleet.run())
            group.create_task(self._probe.run())

    def _watch_scorer(self, key: Key) -> None:
        """Have a scorer probed at once where it is new or its address changed."""
        _, name = key
        obj = self._scorers.items.get(key)
        target = register(obj).target if obj else None
        if name not in self._probing or target not in self._probes:
            self._probing.add(name)
            self._probe.enqueue(name)

    async def _ask(self, name: str) -> float | None:
        obj = self._scorers.items.get((self._options.namespace, name))
        target = register(obj).target if obj else None
        if target is None:
            self._probing.discard(name)
            return None
        answer = await self._prober.probe(target)
        self._answers.labels(_result(answer)).inc()
        if self._probes.get(target) != answer:
            self._probes[target] = answer
            self._fleet.enqueue(FLEET)
        return self._options.resync_seconds * (0.9 + 0.2 * self._draw())

    async def _reconcile(self, _: str) -> float | None:
        changes = plan(
            self._observe(),
            now=rfc3339(self._now()),
            agent_namespace=self._options.agent_namespace,
        )
        outcomes = await apply(self._kube, changes)
        for outcome in outcomes:
            self._note(outcome)
        self._refusals = self._refused(outcomes)
        return self._again_after([outcome.error for outcome in outcomes if outcome.error])

    def _again_after(self, errors: Iterable[KubeError]) -> float:
        """Return when to reconcile again; raise what the back-off is for.

        A conflict says that the snapshot was old: what is newer is on its way.
        """
        passing = [error for error in errors if error.retryable]
        for error in passing:
            if not isinstance(error, Conflict):
                raise error
        return CONFLICT_SECONDS if passing else self._options.resync_seconds

    def _observe(self) -> Snapshot:
        scorers = tuple(self._scorers.items.values())
        targets = {register(obj).target for obj in scorers}
        self._probes = {target: p for target, p in self._probes.items() if target in targets}
        namespace = self._options.namespace
        return Snapshot(
            scorers=scorers,
            config=self._configs.items.get((namespace, names.SCORING_CONFIG)),
            clusters=tuple(self._clusters.items.values()),
            works=tuple(self._works.items.values()),
            probes=self._probes,
            refusals={cluster: str(error) for cluster, error in self._refusals.items()},
        )

    def _refused(self, outcomes: Iterable[Outcome]) -> dict[str, KubeError]:
        """Return by cluster why the API server refused a write of this round.

        As long as the type of the error stays, so do its words: they may hold a port or a time,
        and a status that tells new ones is a change, which would lead to the next round at once.
        """
        refused: dict[str, KubeError] = {}
        for outcome in outcomes:
            cluster, error = outcome.change.namespace, outcome.error
            if not cluster or not error or isinstance(error, Conflict):
                continue
            if outcome.change.kind == MANIFEST_WORK:
                before = self._refusals.get(cluster)
                refused[cluster] = before if before and type(before) is type(error) else error
        return refused

    def _note(self, outcome: Outcome) -> None:
        change, error = outcome.change, outcome.error
        result = type(error).__name__ if error else "ok"
        self._writes.labels(change.kind.kind, result).inc()
        log.log(
            logging.WARNING if error else logging.INFO,
            "write",
            extra={"change": str(change), "result": str(error or "ok")},
        )


def _result(answer: Probe) -> str:
    for part in (answer.health, answer.config):
        if isinstance(part, ProbeFailure):
            return part.reason
    return "ok"
