"""One PlacementOptimization as a look sees it, and what is remembered of it until the next one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from dsf.api.conditions import Condition
from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet
from optimizer.follow.optimization.kept_conditions import kept, landed
from optimizer.follow.optimization.report import KeptReport
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import KeptRequest, NotKept, kept_request
from optimizer.follow.record.plan_history import PlanHistory
from optimizer.keep.decision import Hold, Take
from optimizer.keep.score_memory import ScoreMemory
from optimizer.keep.triggers import Due, Watched, due, next_plan
from optimizer.keep.triggers import Look as LastLook
from optimizer.plan.plan import Plan
from optimizer.wire.placement_optimization import PlacementOptimizationSpec

if TYPE_CHECKING:
    from optimizer.plan.objects_reading import FleetReading


def requester(namespace: str, name: str) -> str:
    """Return who asks for a plan, for its record and the audit log."""
    return f"PlacementOptimization {namespace}/{name}"


@dataclass(slots=True)
class KeptSubject:
    """A PlacementOptimization as it is looked at, the request that it means, and its records."""

    obj: Object
    spec: PlacementOptimizationSpec
    asked: KeptRequest
    history: PlanHistory
    facts: FleetFacts

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.spec.namespace, self.spec.optimization

    @property
    def user(self) -> str:
        """Who asks for its plans."""
        return requester(*self.key)

    @property
    def answered(self) -> str:
        """The value by which somebody asked for a plan, and got it."""
        return str((self.obj.get("status") or {}).get("planRequested") or "")

    def saying(self, *conditions: Condition) -> KeptReport:
        """Return the report of one that is kept, without a plan."""
        return KeptReport((kept(self.asked.missing), *conditions))

    def landing(self, report: KeptReport) -> tuple[Condition, ...]:
        """Return how far OCM is by now with what was placed."""
        whole = report.plan is not None and not report.plan.unplaced
        return (landed(self.history),) if whole else ()


class PlanState(NamedTuple):
    """What makes a plan due besides its triggers: what was generated, approved and recorded."""

    generated: frozenset[tuple[str, ...]]
    approved: str
    record: tuple[str, str]


class WaitingPlan(NamedTuple):
    """A plan that waits for an approval, and what may be taken of it."""

    plan: Plan
    verdict: Take | Hold | None


class _Asked(NamedTuple):
    """What was declared and seen, and which request that meant."""

    declared: tuple[Any, ...]
    facts: FleetFacts
    found: KeptRequest | NotKept


class KeptMemory:
    """What is remembered of one between two looks; a process that forgets it plans again."""

    def __init__(self, spec: PlacementOptimizationSpec) -> None:
        self.scores = ScoreMemory(spec.hysteresis.stabilization_window_seconds)
        self.state: PlanState | None = None
        self.report: KeptReport | None = None
        self.settled_at: datetime | None = None
        self.reading: FleetReading | None = None
        self._asked: _Asked | None = None
        self._last: LastLook | None = None

    def asked(
        self,
        obj: Object,
        spec: PlacementOptimizationSpec,
        others: Iterable[Object],
        facts: FleetFacts,
    ) -> tuple[KeptRequest | NotKept, FleetFacts]:
        """Return what `kept_request` does; it is asked again only if what it reads has changed.

        The facts are the last ones of the same objects, because they know what follows from them.
        """
        seen, last = facts.observation, self._asked
        declared = (*map(_declared, (obj, *others)), spec.open_schedule(seen.observed_at))
        known = last is not None and seen.has_objects_of(last.facts.observation)
        if last is None or declared != last.declared or not known:
            last = self._asked = _Asked(declared, facts, kept_request(obj, others, facts))
        return last.found, last.facts

    def observed(
        self, spec: PlacementOptimizationSpec, fleet: Fleet, watched: Watched, now: datetime
    ) -> Due:
        """Remember the scores of now, and return why to plan."""
        seconds = spec.hysteresis.stabilization_window_seconds
        if self.scores.window_seconds != seconds:
            self.scores = ScoreMemory(seconds)
        self.scores = self.scores.observed(fleet.scores, now)
        self.settled_at = self.scores.settled_at(fleet.scores)
        return due(spec, self._last, watched, self.scores, now)

    def next_plan(
        self, spec: PlacementOptimizationSpec, found: KeptReport, now: datetime
    ) -> datetime | None:
        """Return when a plan is due after a look although nothing changes; None: never."""
        held = found.hold.until if found.hold else None
        lost = self.reading.objects.until if self.reading else None
        return next_plan(spec, now, held, lost, self.settled_at)

    def keep(
        self,
        watched: Watched,
        state: PlanState,
        found: KeptReport,
        now: datetime,
        ends: datetime | None,
    ) -> None:
        """Remember a plan; one that has to be made again soon is forgotten.

        `ends`: when a place may be taken again that was left.
        """
        held = found.hold.until if found.hold else None
        again = min(filter(None, (held, ends)), default=None)
        self.state, self.report = state, found._replace(changed=False)
        self._last = LastLook(now, watched, self.scores, again) if found.again is None else None


def _declared(obj: Object) -> tuple[Any, ...]:
    """Return what a PlacementOptimization declares: all but its status and its annotations."""
    metadata = obj["metadata"]
    times = (metadata.get("creationTimestamp"), metadata.get("deletionTimestamp"))
    return metadata["namespace"], metadata["name"], *times, obj.get("spec")
