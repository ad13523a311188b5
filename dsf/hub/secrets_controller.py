"""Reconciles the ManifestWorks that bring Secrets of the hub to managed clusters.

Never writes the values of Secrets to logs, Events or statuses. It logs only the type of an error,
because the API server's message may quote the object that it refuses.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry

from dsf.api import names
from dsf.api.crd.scorer_source import SecretKeyRef
from dsf.api.scoring.scorer_summary import load_summaries
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.distribute.secrets_plan import (
    SELECTOR,
    HubSecret,
    WithheldSecret,
    plan_secrets,
    read_secret,
    read_secrets_work,
    references_in_spec,
    references_in_summaries,
    too_large,
    withheld,
)
from dsf.hub.snapshot.registered_scorer import RegisteredScorer
from dsf.hub.snapshot.summaries_work import SummariesWork
from dsf.kube.apply import WriteLimiter, apply
from dsf.kube.changes import ChangeResult
from dsf.kube.errors import Conflict, retry_after
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK, SECRET
from dsf.kube.port import Kube, Object
from dsf.runtime.backoff import Backoff
from dsf.runtime.events import EventRecorder
from dsf.runtime.reconcile.controller import Controller
from dsf.runtime.reconcile.reflector import View

log = logging.getLogger(__name__)

SECRETS = "secrets"
SETTLE_SECONDS = 0.05
"""Changes within this time lead to one reconcile."""
CONFLICT_SECONDS = 0.5
"""After a conflict the newer object is on its way."""


class SecretsController:
    """Distributes the keys of labelled Secrets that scorers reference.

    `scorers` returns the DynamicScorers, `works` the works with the summaries by managed cluster.
    A cluster gets a key only if both its summaries and a DynamicScorer reference it, so the right
    to write ManifestWorks alone does not give access to Secrets.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        namespace: str,
        agent_namespace: str,
        resync_seconds: float,
        scorers: Callable[[], Iterable[RegisteredScorer]],
        works: Callable[[], Mapping[str, SummariesWork]],
        events: EventRecorder,
        limiter: WriteLimiter,
        draw: Callable[[], float],
        registry: CollectorRegistry,
    ) -> None:
        self._kube = kube
        self._agent_namespace = agent_namespace
        self._resync_seconds = resync_seconds
        self._scorers = scorers
        self._config_works = works
        self._events = events
        self._limiter = limiter
        self._draw = draw
        self._backoff = Backoff()
        self._failures = 0
        self._reported: frozenset[tuple[str, WithheldSecret]] = frozenset()
        self._secrets = View[HubSecret](kube, SECRET, namespace, SELECTOR, read=read_secret)
        self._works = View[Object](
            kube,
            MANIFEST_WORK,
            fields=f"metadata.name={names.SECRETS_MANIFEST_WORK}",
            read=read_secrets_work,
        )
        self._controller = Controller(SECRETS, self._reconcile, registry=registry)
        self._secrets.on_change(lambda _: self.nudge())
        self._works.on_change(lambda _: self.nudge())

    def missing(self) -> list[str]:
        """Return what has not been listed yet."""
        listed = {"Secrets": self._secrets.synced, "ManifestWorks of Secrets": self._works.synced}
        return [name for name, synced in listed.items() if not synced.is_set()]

    def nudge(self) -> None:
        """Reconcile soon, because scorers or works have changed."""
        self._controller.enqueue(SECRETS, SETTLE_SECONDS)

    def watch(self, group: asyncio.TaskGroup) -> None:
        """List and watch in tasks of the group."""
        group.create_task(self._secrets.run())
        group.create_task(self._works.run())

    async def run(self) -> None:
        """Distribute until cancelled."""
        await self._secrets.synced.wait()
        await self._works.synced.wait()
        self.nudge()
        await self._controller.run()

    async def _reconcile(self, _: str) -> float | None:
        secrets = {name: secret for (_, name), secret in self._secrets.items.items()}
        works = {cluster: work for (cluster, _), work in self._works.items.items()}
        needed = self._needed()
        changes, crowded = plan_secrets(needed, secrets, works, self._agent_namespace)
        outcomes = await apply(self._kube, changes, limiter=self._limiter)
        for outcome in outcomes:
            _log(outcome)
        self._record_events(secrets, crowded)
        return self._again_after(outcomes)

    def _again_after(self, outcomes: Iterable[ChangeResult]) -> float:
        errors = [outcome.error for outcome in outcomes if outcome.error]
        if all(isinstance(error, Conflict) for error in errors):
            self._failures = 0
            return CONFLICT_SECONDS if errors else self._resync_seconds
        # Not raised, because the message of an error would be logged.
        self._controller.queue.rest(SECRETS, max(retry_after(error) for error in errors))
        self._failures += 1
        return self._backoff.delay(self._failures, self._draw())

    def _needed(self) -> dict[str, frozenset[SecretKeyRef]]:
        """Return the references of each cluster; equal summaries are parsed once."""
        asked = frozenset(
            reference
            for scorer in self._scorers()
            if not isinstance(scorer.spec, InvalidInput)
            for reference in references_in_spec(scorer.spec)
        )
        read: dict[str, frozenset[SecretKeyRef]] = {}
        needed = {}
        for cluster, work in self._config_works().items():
            if work.being_deleted:
                continue
            if work.text not in read:
                summaries = load_summaries(work.text) if work.text else ()
                read[work.text] = (
                    references_in_summaries(
                        () if isinstance(summaries, InvalidInput) else summaries
                    )
                    & asked
                )
            needed[cluster] = read[work.text]
        return needed

    def _record_events(self, secrets: Mapping[str, HubSecret], crowded: Mapping[str, str]) -> None:
        """Record an Event on the scorer for each reference that is newly withheld."""
        problems = frozenset(self._withheld(secrets, crowded))
        by_name = {scorer.name: scorer for scorer in self._scorers()}
        for name, problem in sorted(problems - self._reported, key=str):
            obj = by_name[name].obj
            self._events.record(DYNAMIC_SCORER, obj, "Warning", problem.reason, problem.message)
        self._reported = problems

    def _withheld(
        self, secrets: Mapping[str, HubSecret], crowded: Mapping[str, str]
    ) -> Iterator[tuple[str, WithheldSecret]]:
        for scorer in self._scorers():
            if isinstance(scorer.spec, InvalidInput):
                continue
            for reference in references_in_spec(scorer.spec):
                problem = withheld(reference, secrets.get(reference.name))
                if problem is None and reference.name in crowded:
                    problem = too_large(reference, crowded[reference.name])
                if problem:
                    yield scorer.name, problem


def _log(outcome: ChangeResult) -> None:
    result = type(outcome.error).__name__ if outcome.error else "ok"
    level = logging.WARNING if outcome.error else logging.INFO
    log.log(level, "write", extra={"change": str(outcome.change), "result": result})
