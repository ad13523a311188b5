"""What of one plan is taken, offer after offer, and why not the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision
from optimizer.keep.decision import Hold, Offer, Restrict, Take, decide
from optimizer.keep.move_budgets import PastChange
from optimizer.keep.restraint import restrained
from optimizer.keep.score_memory import ScoreMemory
from optimizer.model.problem import Problem
from optimizer.wire.keeping import Keeping

MOST_OFFERS = 4
"""Plans that are made at most: the whole, within its budgets, and twice without some moves."""


@dataclass(slots=True)
class PlanRestraint:
    """Restrains one plan by rules; `verdict` says what became of it.

    `memory`: after it has observed the scores of the fleet that is planned. `missing`: the value of
    missing scores, which that fleet has not.
    """

    rules: Keeping
    memory: ScoreMemory
    history: Sequence[PastChange]
    now: datetime
    requested: bool = False
    missing: float | None = None
    verdict: Take | Hold | None = None
    whole: Hold | None = None
    offers: int = 0

    def restrained(self, fleet: Fleet) -> Fleet:
        """Return the fleet with averaged scores, and margins on moves."""
        return restrained(fleet, self.memory, self.rules.hysteresis, self.missing)

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
