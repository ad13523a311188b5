"""A fleet that is kept placed in virtual time by pure functions, as the controller calls them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from optimizer.domain.fleet import (
    CandidatePolicy,
    Cluster,
    Fleet,
    Objective,
    Selector,
    Supply,
    Workload,
)
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.keep.decision import Hold, Offer, Restrict, Take, decide
from optimizer.keep.move_budgets import PastChange
from optimizer.keep.restraint import restrained, with_policy_margins
from optimizer.keep.score_memory import ScoreMemory
from optimizer.keep.triggers import Look, Watched, due
from optimizer.model.formulate import formulate
from optimizer.solve.strategy import solve_problem
from optimizer.wire.keeping import Keeping

START = datetime(2026, 3, 1, tzinfo=UTC)
Scores = Mapping[tuple[str, ...], float]
"""By app and cluster, and by device where clusters have some."""


def cluster(name: str, *, cpu: float = 4.0, policies: tuple[CandidatePolicy, ...] = ()) -> Cluster:
    return Cluster(name, Selector(name), policies, base=(Supply("cpu", "", cpu),) if cpu else ())


def workload(name: str, *current: str, **more: object) -> Workload:
    plain = Workload(name, name, "cpu", 1.0, f"{name}-placement", current=current)
    return replace(plain, **more)  # type: ignore[arg-type]


def fleet(clusters: tuple[Cluster, ...], *workloads: Workload) -> Fleet:
    return Fleet("default", clusters, workloads, {}, (Objective("score"),))


def matrix(own: Fleet, scores: Scores) -> dict[str, ScoreMatrix]:
    """Return scores with a row for each app and a column for each cluster, as a reader does."""
    devices = {(key[1], *key[2:]) for key in scores} | {(item.name,) for item in own.clusters}
    every = {(place[0], app.app, *(place[1:] or ("",))): float("nan")
             for app in own.workloads for place in sorted(devices)}  # fmt: skip
    given = {(key[1], key[0], *(key[2:] or ("",))): value for key, value in scores.items()}
    return {"score": ScoreMatrix.of(every | given)}


@dataclass
class KeptFleet:
    """A fleet, its rules, and what was decided: each (seconds, verdict) and the moves made."""

    fleet: Fleet
    rules: Keeping
    now: datetime = START
    memory: ScoreMemory = field(init=False)
    history: list[PastChange] = field(default_factory=list)
    last: Look | None = None
    missing: float | None = None
    solves: int = 0
    verdicts: list[tuple[float, Take | Hold]] = field(default_factory=list)
    moved: list[tuple[float, str, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = ScoreMemory(self.rules.hysteresis.stabilization_window_seconds)

    def run(
        self, scores: Callable[[float], Scores], seconds: float, *, every: float = 30.0
    ) -> "KeptFleet":
        """Read the scores again and again, and plan where it is due."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            self.read(scores((self.now - START).total_seconds()))
            self.now += timedelta(seconds=every)
        return self

    def read(self, scores: Scores, *, force: bool = False) -> Take | Hold | None:
        """Observe scores, and plan if that is due; return what was decided."""
        self.fleet = replace(self.fleet, scores=matrix(self.fleet, scores))
        self.memory = self.memory.observed(self.fleet.scores, self.now)
        watched = Watched(
            clusters={item.name: frozenset() for item in self.fleet.clusters},
            lost=frozenset(),
            workloads=frozenset(item.name for item in self.fleet.workloads),
            policies=frozenset(),
            must_move=frozenset(
                item.name
                for item in self.fleet.workloads
                if not set(item.current) - set(item.unselectable)
            ),
        )
        found = due(self.rules, self.last, watched, self.memory, self.now)
        if not found.reasons and not force:
            return None
        verdict = self.decide()
        held = verdict if isinstance(verdict, Hold) else verdict.rest
        again = None if held is None else held.until
        self.last = Look(self.now, watched, self.memory, again)
        self.verdicts.append(((self.now - START).total_seconds(), verdict))
        return verdict

    def decide(self) -> Take | Hold:
        """Plan and decide until that ends, and apply what is taken."""
        own, _ = restrained(self.fleet, self.memory, self.rules.hysteresis, self.missing)
        held = None
        for _ in range(4):
            offered = with_policy_margins(own)
            problem = formulate(offered)
            self.solves += 1
            found = solve_problem(problem, solver="highs", time_limit_seconds=30.0).decision
            offer = Offer(offered, problem, found, held)
            verdict = decide(offer, self.rules, self.history, self.now)
            match verdict:
                case Restrict(own, held):
                    continue
                case Take():
                    self._apply(verdict, found.assignments, found.policies)
                    return verdict
                case Hold():
                    return verdict
        assert held is not None
        return held

    def _apply(self, taken: Take, assignments: tuple, policies: tuple) -> None:  # type: ignore[type-arg]
        enforced = set(policies)
        moved = []
        for item in self.fleet.workloads:
            places = tuple(one.cluster for one in assignments if one.workload == item.name)
            if places != item.current:
                self.moved.append(((self.now - START).total_seconds(), item.name, places))
            moved.append(replace(item, current=places))
        if sum(taken.moves.values()):
            self.history.append(PastChange(self.now, taken.moves))
        clusters = tuple(
            replace(
                one,
                candidates=tuple(
                    replace(item, current=(one.name, item.policy) in enforced)
                    for item in one.candidates
                ),
            )
            for one in self.fleet.clusters
        )
        self.fleet = replace(self.fleet, workloads=tuple(moved), clusters=clusters)
