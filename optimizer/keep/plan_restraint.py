"""What of one plan is taken, offer after offer, and why not the rest."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision
from optimizer.keep.decision import Hold, Offer, Restrict, Take, decide, left_by_margins
from optimizer.keep.move_budgets import PastChange
from optimizer.keep.restraint import TIE, avoiding, restrained
from optimizer.keep.score_memory import ScoreMemory
from optimizer.model.problem import Problem
from optimizer.wire.keeping import Keeping

MOST_OFFERS = 4
"""Plans that are made at most: the whole, within its budgets, and twice without some moves."""


@dataclass(slots=True)
class PlanRestraint:
    """Restrains one plan by rules; `verdict` says what became of it.

    `memory`: after it has observed the scores of the fleet that is planned. `missing`: the value of
    missing scores, which that fleet has not. `settled_at`: when its scores are averaged over a
    window; None: they are. `left`: clusters that workloads left because their Pods stayed pending.
    """

    rules: Keeping
    memory: ScoreMemory
    history: Sequence[PastChange]
    now: datetime
    requested: bool = False
    missing: float | None = None
    left: Mapping[str, Collection[str]] = field(default_factory=dict)
    verdict: Take | Hold | None = None
    whole: Hold | None = None
    offers: int = 0
    settled_at: datetime | None = None
    _waits: bool = False
    _costs: Mapping[str, float] = field(default_factory=dict)

    def restrained(self, fleet: Fleet) -> Fleet:
        """Return the fleet with averaged scores, margins on moves, and places that were left."""
        fleet = avoiding(fleet, self.left)
        self.settled_at = self.memory.settled_at(fleet.scores)
        self._costs = {item.name: item.move_cost for item in fleet.workloads}
        rules = self.rules.hysteresis
        fleet, self._waits = restrained(fleet, self.memory, rules, self.missing)
        return fleet

    def rest_of(self, fleet: Fleet, problem: Problem, decision: Decision) -> Fleet | None:
        """Return the fleet to plan instead, if only a part of a decision may be taken."""
        self.offers += 1
        offer = Offer(fleet, problem, decision, self.whole)
        found = decide(offer, self.rules, self.history, self.now, requested=self.requested)
        if not isinstance(found, Restrict):
            self.verdict = found
            return None
        self.whole = self.verdict = found.whole
        return found.fleet if self.offers < MOST_OFFERS else None

    def without_margins(self, fleet: Fleet) -> Fleet | None:
        """Return a fleet without margins, if they may be why its plan moves nothing; else None."""
        verdict = self.verdict
        rest = verdict.rest if isinstance(verdict, Take) else None
        if verdict is None or rest or verdict.moves or verdict.gain > TIE:
            return None
        free = (replace(item, move_cost=self._costs[item.name]) for item in fleet.workloads)
        tie = TIE * sum(item.weight for item in fleet.objectives)
        is_margin = any(i.move_cost > self._costs[i.name] + tie for i in fleet.workloads)
        return replace(fleet, workloads=tuple(free)) if is_margin else None

    def offered(self, fleet: Fleet, problem: Problem, decision: Decision) -> None:
        """Remember what the best plan without margins offers, and why it is not taken."""
        offer = Offer(fleet, problem, decision)
        found = left_by_margins(offer, self.rules, waits=self._waits, settled_at=self.settled_at)
        match self.verdict:
            case Take():
                self.verdict = replace(self.verdict, rest=found)
            case Hold() if found:
                self.verdict = replace(self.verdict, gain=found.gain, moves=found.moves)
