"""Every registered scoring API, asked over and over; those that hang hold up no others."""

import asyncio
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter

from dsf.hub.health import Thresholds, Track, step
from dsf.hub.probe import Prober
from dsf.hub.registration import Registration
from dsf.hub.snapshot import Probe, ProbeFailure, Target
from dsf.hub.standing import said_health
from dsf.runtime.controller import Controller
from dsf.runtime.reflector import Key, View

AT_ONCE = 16
DOUBTS = 3
"""How many times as often an API is asked whose last answers contradict what is believed."""


class Polling:
    """Keeps what is believed of each scoring API; calls `news` when that changes.

    An API that has used up its time is asked among others of its kind until it answers in time.
    Metrics: those of `dsf.runtime.metrics` for the controllers `probe` and `slow-probe`, and
    `dsf_hub_probes_total{result}`.
    """

    def __init__(
        self,
        prober: Prober,
        scorers: View[Registration],
        *,
        namespace: str,
        seconds: float,
        thresholds: Thresholds,
        news: Callable[[], None],
        draw: Callable[[], float],
        registry: CollectorRegistry,
    ) -> None:
        self._prober = prober
        self._scorers = scorers
        self._namespace = namespace
        self._seconds = seconds
        self._thresholds = thresholds
        self._news = news
        self._draw = draw
        self._tracks: dict[Target, Track] = {}
        self._polled: set[str] = set()
        self._usual = Controller("probe", self._ask, workers=AT_ONCE, registry=registry)
        self._slow = Controller("slow-probe", self._ask, workers=AT_ONCE, registry=registry)
        self._answers = Counter("dsf_hub_probes", "Probes.", ["result"], registry=registry)
        scorers.on_change(self._noticed)

    def believed(self) -> dict[Target, Probe]:
        """Return what is believed of the APIs that are still registered."""
        targets = {scorer.target for scorer in self._scorers.items.values()}
        self._tracks = {target: t for target, t in self._tracks.items() if target in targets}
        return {target: track.believed for target, track in self._tracks.items()}

    def forget(self) -> None:
        """Believe nothing: what was heard when this ran before is old."""
        self._tracks = {}

    async def run(self) -> None:
        """Ask until cancelled."""
        for name in self._polled:
            self._usual.enqueue(name)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._usual.run())
            group.create_task(self._slow.run())

    def _noticed(self, key: Key) -> None:
        """Have a scorer asked at once where it is new or its address changed."""
        _, name = key
        scorer = self._scorers.items.get(key)
        target = scorer.target if scorer else None
        if name not in self._polled or target not in self._tracks:
            self._polled.add(name)
            self._usual.enqueue(name)

    async def _ask(self, name: str) -> None:
        scorer = self._scorers.items.get((self._namespace, name))
        target = scorer.target if scorer else None
        if scorer is None or target is None:
            self._polled.discard(name)
            return
        answer = await self._prober.probe(target)
        self._answers.labels(_result(answer)).inc()
        track = self._track(scorer, target, answer)
        seconds = self._seconds * (0.9 + 0.2 * self._draw())
        queue = self._slow if _used_up_its_time(answer) else self._usual
        queue.enqueue(name, seconds / DOUBTS if track.doubtful else seconds)

    def _track(self, scorer: Registration, target: Target, answer: Probe) -> Track:
        before = self._tracks.get(target)
        said = said_health(scorer, answer)
        known = scorer.said_config is not None
        track = step(before, answer, said, self._thresholds, has_config=known)
        self._tracks[target] = track
        if before is None or before.believed != track.believed:
            self._news()
        return track


def _used_up_its_time(answer: Probe) -> bool:
    parts = (answer.health, answer.config)
    return any(isinstance(part, ProbeFailure) and part.reason == "TimedOut" for part in parts)


def _result(answer: Probe) -> str:
    for part in (answer.health, answer.config):
        if isinstance(part, ProbeFailure):
            return part.reason
    return "ok"
