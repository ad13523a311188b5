"""Every registered scoring API, asked over and over; those that hang hold up no others."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter

from dsf.hub.assess.health_thresholds import ProbeHistory, Thresholds, step
from dsf.hub.assess.scorer_assessment import reported_health
from dsf.hub.observe.prober import Prober
from dsf.hub.snapshot.probe_result import ProbeFailure, ProbeResult, ProbeTarget
from dsf.hub.snapshot.registered_scorer import RegisteredScorer
from dsf.runtime.reconcile.controller import Controller
from dsf.runtime.reconcile.reflector import Key, View

AT_ONCE = 16
DOUBTS = 3
"""How many times as often an API is asked whose last answers contradict what is believed."""


class Polling:
    """Keeps what is believed of each scoring API; calls `news` when that changes.

    An API that several scorers name is asked once for all of them: else one lost moment would be
    several failures in a row. One that has used up its time is asked among others of its kind
    until it answers in time.
    Metrics: those of `dsf.runtime.metrics` for the controllers `probe` and `slow-probe`, and
    `dsf_hub_probes_total{result}`.
    """

    def __init__(
        self,
        prober: Prober,
        scorers: View[RegisteredScorer],
        *,
        seconds: float,
        thresholds: Thresholds,
        news: Callable[[], None],
        draw: Callable[[], float],
        registry: CollectorRegistry,
    ) -> None:
        self._prober = prober
        self._scorers = scorers
        self._seconds = seconds
        self._thresholds = thresholds
        self._news = news
        self._draw = draw
        self._tracks: dict[ProbeTarget, ProbeHistory] = {}
        self._polled: dict[str, ProbeTarget] = {}
        self._named: Mapping[ProbeTarget, Sequence[RegisteredScorer]] | None = None
        self._usual = Controller("probe", self._ask, workers=AT_ONCE, registry=registry)
        self._slow = Controller("slow-probe", self._ask, workers=AT_ONCE, registry=registry)
        self._answers = Counter("dsf_hub_probes", "Probes.", ["result"], registry=registry)
        scorers.on_change(self._noticed)

    def believed(self) -> dict[ProbeTarget, ProbeResult]:
        """Return what is believed of the APIs that are still registered."""
        named = self._naming()
        self._tracks = {target: t for target, t in self._tracks.items() if target in named}
        return {target: track.believed for target, track in self._tracks.items()}

    def forget(self) -> None:
        """Believe nothing: what was heard when this ran before is old."""
        self._tracks = {}

    async def run(self) -> None:
        """Ask until cancelled."""
        for key in self._polled:
            self._usual.enqueue(key)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._usual.run())
            group.create_task(self._slow.run())

    def _noticed(self, changed: Key) -> None:
        """Have an API asked at once where it is new."""
        self._named = None
        scorer = self._scorers.items.get(changed)
        target = scorer.target if scorer else None
        if target and target not in self._tracks:
            key = f"{target.config_url} {'with' if target.full else 'without'} its config"
            self._polled[key] = target
            self._usual.enqueue(key)

    def _naming(self) -> Mapping[ProbeTarget, Sequence[RegisteredScorer]]:
        """Return the scorers by the API that they name."""
        if self._named is None:
            named = defaultdict(list)
            for scorer in self._scorers.items.values():
                if scorer.target:
                    named[scorer.target].append(scorer)
            self._named = dict(named)
        return self._named

    async def _ask(self, key: str) -> None:
        target = self._polled.get(key)
        if target is None or target not in self._naming():
            self._polled.pop(key, None)
            return
        answer = await self._prober.probe(target)
        self._answers.labels(_result(answer)).inc()
        track = self._track(target, answer)
        seconds = self._seconds * (0.9 + 0.2 * self._draw())
        queue = self._slow if _used_up_its_time(answer) else self._usual
        queue.enqueue(key, seconds / DOUBTS if track.doubtful else seconds)

    def _track(self, target: ProbeTarget, answer: ProbeResult) -> ProbeHistory:
        before = self._tracks.get(target)
        scorers = self._naming().get(target, ())
        heard = [reported_health(each, answer) for each in scorers]
        said = next((health for health in heard if health), None)
        known = any(each.last_synced_config is not None for each in scorers)
        track = step(before, answer, said, self._thresholds, has_config=known)
        self._tracks[target] = track
        if before is None or before.believed != track.believed:
            self._news()
        return track


def _used_up_its_time(answer: ProbeResult) -> bool:
    parts = (answer.health, answer.config)
    return any(isinstance(part, ProbeFailure) and part.reason == "TimedOut" for part in parts)


def _result(answer: ProbeResult) -> str:
    for part in (answer.health, answer.config):
        if isinstance(part, ProbeFailure):
            return part.reason
    return "ok"
