"""Probes every registered scoring API periodically; one that hangs does not delay the others."""

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter

from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.assess.health_thresholds import ProbeHistory, Thresholds, step
from dsf.hub.assess.scorer_assessment import reported_health
from dsf.hub.observe.prober import Prober
from dsf.hub.snapshot.registered_scorer import (
    ProbeFailure,
    ProbeResult,
    ProbeTarget,
    RegisteredScorer,
)
from dsf.runtime.reconcile.controller import Controller
from dsf.runtime.reconcile.reflector import Key, View

AT_ONCE = 16
"""Concurrent probes, and as many again for APIs that timed out."""
DOUBTS = 1.5
"""An API is probed this many times as often while its answers contradict what is believed.

At defaults, a dead API that answers nothing is Inactive 28.3 s after its death at the latest: 10 s
until the next probe, twice 6.7 s until the two after it, and 5 s until the last one has timed out.
An outage of less than 13.3 s withdraws nothing.
"""
JITTER = 0.1
"""Part of the period by which probes are early, so that those of many APIs do not coincide."""


class Polling:
    """Keeps what is believed of each scoring API; calls `news` when that changes.

    Every API is probed once per period, counted from the start of a probe. A probe is one request,
    for its health. Its config is fetched too if the last one would be over `config_seconds` old at
    the next probe, if fetching it failed, or if the API is unhealthy, because one that recovers may
    serve another config.

    An API that several scorers share is probed once for all of them, because otherwise one moment
    of failure would count as several failures in a row. An API that timed out moves to a queue of
    its own kind until it answers in time.
    Metrics: those of `dsf.runtime.metrics` for the controllers `probe` and `slow-probe`, and
    `dsf_hub_probes_total{result}`.
    """

    def __init__(
        self,
        prober: Prober,
        scorers: View[RegisteredScorer],
        *,
        seconds: float,
        config_seconds: float,
        thresholds: Thresholds,
        news: Callable[[], None],
        draw: Callable[[], float],
        registry: CollectorRegistry,
    ) -> None:
        self._prober = prober
        self._scorers = scorers
        self._seconds = seconds
        self._config_seconds = config_seconds
        self._config_at: dict[ProbeTarget, float] = {}
        self._thresholds = thresholds
        self._news = news
        self._draw = draw
        self._histories: dict[ProbeTarget, ProbeHistory] = {}
        self._polled: dict[str, ProbeTarget] = {}
        self._named: Mapping[ProbeTarget, Sequence[RegisteredScorer]] | None = None
        self._usual = Controller("probe", self._probe, workers=AT_ONCE, registry=registry)
        self._slow = Controller("slow-probe", self._probe, workers=AT_ONCE, registry=registry)
        self._results = Counter(
            "dsf_hub_probes",
            "Probes of scoring APIs: ok, or the reason of a failure.",
            ["result"],
            registry=registry,
        )
        scorers.on_change(self._on_change)

    def believed(self) -> dict[ProbeTarget, ProbeResult]:
        """Return what is believed of the APIs that are still registered."""
        named = self._by_target()
        self._histories = {
            target: each for target, each in self._histories.items() if target in named
        }
        self._config_at = {
            target: each for target, each in self._config_at.items() if target in named
        }
        return {target: history.believed for target, history in self._histories.items()}

    def forget(self) -> None:
        """Drop all results: those of an earlier term as leader are out of date."""
        self._histories = {}

    async def run(self) -> None:
        """Probe until cancelled."""
        for key in self._polled:
            self._usual.enqueue(key)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._usual.run())
            group.create_task(self._slow.run())

    def _on_change(self, changed: Key) -> None:
        """Probe an API at once if it is new."""
        self._named = None
        scorer = self._scorers.items.get(changed)
        target = scorer.target if scorer else None
        if target and target not in self._histories:
            key = f"{target.config_url} {'with' if target.full else 'without'} its config"
            self._polled[key] = target
            self._usual.enqueue(key)

    def _by_target(self) -> Mapping[ProbeTarget, Sequence[RegisteredScorer]]:
        """Return the scorers by probe target."""
        if self._named is None:
            named = defaultdict(list)
            for scorer in self._scorers.items.values():
                if scorer.target:
                    named[scorer.target].append(scorer)
            self._named = dict(named)
        return self._named

    async def _probe(self, key: str) -> None:
        target = self._polled.get(key)
        if target is None or target not in self._by_target():
            self._polled.pop(key, None)
            return
        started = asyncio.get_running_loop().time()
        result = await self._probed(target, started)
        self._results.labels(_label(result)).inc()
        history = self._update(target, result)
        seconds = self._seconds * (1 - JITTER * self._draw())
        queue = self._slow if _timed_out(result) else self._usual
        taken = asyncio.get_running_loop().time() - started
        wait = (seconds / DOUBTS if history.doubtful else seconds) - taken
        queue.enqueue(key, max(wait, 0.0))

    async def _probed(self, target: ProbeTarget, now: float) -> ProbeResult:
        """Return what the API answers, with the config believed where it is not fetched."""
        history = self._histories.get(target)
        # At the next probe it would be too late.
        late = now + self._seconds - self._config_at.get(target, -math.inf) > self._config_seconds
        if not target.full or history is None or late or _is_config_unsure(history):
            self._config_at[target] = now
            return await self._prober.probe(target)
        result = await self._prober.probe(ProbeTarget(target.config_url, full=False))
        believed = history.believed
        return ProbeResult(result.health, believed.config, believed.unknown)

    def _update(self, target: ProbeTarget, result: ProbeResult) -> ProbeHistory:
        before = self._histories.get(target)
        scorers = self._by_target().get(target, ())
        reported = [reported_health(each, result) for each in scorers]
        recorded = next((health for health in reported if health), None)
        known = any(each.last_synced_config is not None for each in scorers)
        history = step(before, result, recorded, self._thresholds, has_config=known)
        self._histories[target] = history
        if before is None or before.believed != history.believed:
            self._news()
        return history


def _is_config_unsure(history: ProbeHistory) -> bool:
    believed = history.believed
    unknown = history.config_against or not isinstance(believed.config, ScorerConfig)
    return bool(unknown or believed.health)


def _timed_out(result: ProbeResult) -> bool:
    parts = (result.health, result.config)
    return any(isinstance(part, ProbeFailure) and part.reason == "TimedOut" for part in parts)


def _label(result: ProbeResult) -> str:
    for part in (result.health, result.config):
        if isinstance(part, ProbeFailure):
            return part.reason
    return "ok"
