"""Whether a plan is taken, held back, or made again with fewer moves."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import counted, listed
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision
from optimizer.keep.move_budgets import MovesLeft, PastChange, fewest, moves_left, within_period
from optimizer.keep.restraint import TIE, pinned, with_move_limits
from optimizer.model.current_state import current_state
from optimizer.model.problem import Problem
from optimizer.wire.keeping import Keeping, MoveReason

BELOW_HYSTERESIS = "BelowHysteresis"
"""The reason where no move gains what hysteresis asks for; nothing is waited for then."""


class ReplicaMove(NamedTuple):
    """A replica that leaves its cluster, or restarts there under another policy, and why."""

    workload: str
    cluster: str
    reason: MoveReason


@dataclass(frozen=True, slots=True)
class Hold:
    """The plan is not applied, and why: `reason` for programs, `why` and `message` for people.

    `until`: when to look again, None if only a change of spec or scores can help. `gain`: what is
    on offer.
    """

    reason: str
    why: str
    until: datetime | None
    gain: float
    moves: Mapping[MoveReason, int] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """Why, and what is on offer."""
        moves = counted(sum(self.moves.values()), "move")
        return f"{self.why}; on offer: {self.gain:g} for {moves}"


@dataclass(frozen=True, slots=True)
class Take:
    """The plan is applied now. `gain`: what its places are worth more than those of now.

    `rest`: why a larger plan is not applied; None if this is all that is on offer.
    """

    gain: float
    moves: Mapping[MoveReason, int]
    rest: Hold | None = None


@dataclass(frozen=True, slots=True)
class Restrict:
    """Only a part of the plan may be taken: a plan of this fleet is to be made, and offered.

    `whole`: what the whole plan offers, and why it is not taken.
    """

    fleet: Fleet
    whole: Hold


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan that was made of a restrained fleet, with its problem and its decision.

    `whole`: what a larger plan offered, if this one is what was left of it.
    """

    fleet: Fleet
    problem: Problem
    decision: Decision
    whole: Hold | None = None


def decide(
    offer: Offer,
    rules: Keeping,
    history: Sequence[PastChange],
    now: datetime,
    *,
    requested: bool = False,
) -> Take | Hold | Restrict:
    """Return whether a plan is taken.

    `history`: the changes that were applied, in any order. `requested`: a person has asked to plan
    now, which ends the hold after a rollback. A hold stops everything. Freezes and the time after a
    change stop moves for a better score, and budgets those that they count: what else the plan has,
    such as workloads of a lost cluster, is taken without them.
    """
    kept = current_state(offer.problem, offer.decision).decision
    moves = tuple(_moves(offer, kept))
    counts = Counter(item.reason for item in moves)
    gain = _worth(offer.problem, offer.decision) - _worth(offer.problem, kept)
    if stopped := _stopped(rules, history, now, requested=requested):
        return _held(stopped, gain, counts)
    optional = {item.workload for item in moves if item.reason == "BetterScore"}
    if optional and (waiting := _waiting(rules, history, now)):
        whole = offer.whole or _held(waiting, gain, counts)
        others = _started(offer, kept) - optional
        return (
            _pinned(offer, {item.workload for item in kept.assignments}, whole)
            if (others or counts.total() > len(optional))
            else whole
        )
    running = sum(len(item.current) for item in offer.fleet.workloads)
    left = moves_left(rules.budgets, history, running, now)
    for budget in left:
        own = [item for item in moves if item.reason in budget.reasons]
        if len(own) > budget.moves:
            whole = offer.whole or _held(_spent(budget, len(own), now), gain, counts)
            return _within(offer, left, budget, moves, whole)
    if offer.whole and not counts and not _started(offer, kept):
        return offer.whole
    return Take(gain, counts, offer.whole)


def still_taken(
    verdict: Take | Hold | None,
    rules: Keeping,
    history: Sequence[PastChange],
    running: int,
    now: datetime,
) -> bool:
    """Return whether a plan that was to be taken, and waited, is to be taken now.

    `running`: replicas that run. A rollback meanwhile is not asked for: it made the plan stale.
    """
    if not isinstance(verdict, Take) or _stopped(rules, history, now, requested=True):
        return False
    moves = verdict.moves
    if moves.get("BetterScore") and _waiting(rules, history, now):
        return False
    left = moves_left(rules.budgets, history, running, now)
    return all(sum(moves.get(reason, 0) for reason in i.reasons) <= i.moves for i in left)


def left_by_margins(
    offer: Offer, rules: Keeping, *, waits: bool, settled_at: datetime | None
) -> Hold | None:
    """Return what a plan without margins gains, and why nothing of it is taken; None: nothing.

    `waits`: whether a margin is that of scores that are averaged over a window at `settled_at`.
    """
    kept = current_state(offer.problem, offer.decision).decision
    gain = _worth(offer.problem, offer.decision) - _worth(offer.problem, kept)
    if gain <= TIE * sum(item.weight for item in offer.fleet.objectives):
        return None
    least = rules.hysteresis
    if waits and settled_at:
        message = f"scores are averaged until {rfc3339(settled_at)}: before, nothing moves for them"
        why = _Why("Stabilizing", message, settled_at)
    else:
        message = (
            f"a move has to gain more: leastGain {least.least_gain:g} points, leastGainPercent"
            f" {least.least_gain_percent:g}, variationMultiple {least.variation_multiple:g} times"
            " the variation of its scores"
        )
        why = _Why(BELOW_HYSTERESIS, message, None)
    return _held(why, gain, Counter(item.reason for item in _moves(offer, kept)))


class _Why(NamedTuple):
    """Why a plan is not applied, and until when."""

    reason: str
    message: str
    until: datetime | None


def _held(why: _Why, gain: float, moves: Mapping[MoveReason, int]) -> Hold:
    return Hold(*why, gain, dict(moves))


def _stopped(
    rules: Keeping, history: Sequence[PastChange], now: datetime, *, requested: bool
) -> _Why | None:
    """Return why nothing at all is applied; None if something may be."""
    hold = rules.hold
    if hold.until is not None and now < hold.until:
        why = f": {hold.reason}" if hold.reason else ""
        return _Why("Held", f"held until {rfc3339(hold.until)}{why}", hold.until)
    newest = max(history, key=lambda item: item.time, default=None)
    if newest is None or not newest.rolled_back or requested:
        return None
    length = timedelta(seconds=hold.after_rollback_seconds)
    until = newest.time + length
    if not within_period(newest.time, now, length):
        return None
    message = (
        f"a plan was rolled back at {rfc3339(newest.time)}: nothing is applied until"
        f" {rfc3339(until)}, unless the annotation plan-requested-at is changed"
    )
    return _Why("RolledBack", message, until)


def _waiting(rules: Keeping, history: Sequence[PastChange], now: datetime) -> _Why | None:
    """Return why nothing moves for a better score now; None if something may."""
    ends = [end for item in rules.freezes if (end := item.open_until(now)) is not None]
    if ends:
        return _Why("Frozen", f"a freeze is open until {rfc3339(max(ends))}", max(ends))
    window = timedelta(seconds=rules.hysteresis.stabilization_window_seconds)
    moved = (item.time for item in history if sum(item.moves.values()))
    last = max((time for time in moved if within_period(time, now, window)), default=None)
    if last is None:
        return None
    until = last + window
    message = f"{counted(int(window.total_seconds()), 'second')} after a change nothing moves for a"
    return _Why("Stabilizing", f"{message} better score, until {rfc3339(until)}", until)


def _spent(budget: MovesLeft, wanted: int, now: datetime) -> _Why:
    until = budget.more_at
    if until is None and budget.moves:  # what is moved now counts for a period
        until = now + budget.budget.period
    message = (
        f"the plan has {counted(wanted, 'move')} for {listed(budget.reasons)}, and the budget of"
        f" {budget.budget.moves} per {budget.budget.per.lower()} leaves {budget.moves}"
    )
    return _Why("BudgetSpent", message, until)


def _moves(offer: Offer, kept: Decision) -> Iterator[ReplicaMove]:
    """Yield each replica that leaves its cluster or restarts there, with the reason."""
    fleet, problem = offer.fleet, offer.problem
    placed = members_by_key((item.workload, item.cluster) for item in offer.decision.assignments)
    could_stay = {(item.workload, item.cluster) for item in kept.assignments}
    changed = {item.cluster for item in set(kept.policies) - set(offer.decision.policies)}
    for workload in fleet.workloads:
        after = frozenset(placed.get(workload.name, ()))
        new = len(after.difference(workload.current))
        for cluster in workload.current:
            pair = workload.name, cluster
            if cluster not in problem.cluster_index or cluster in workload.unselectable:
                if new > 0:  # without a place elsewhere nothing is moved
                    new -= 1
                    yield ReplicaMove(*pair, "ClusterLost")
            elif pair not in could_stay or cluster in dict(workload.pending):
                if cluster not in after:
                    yield ReplicaMove(*pair, "NotEligible")
            elif cluster not in after or (cluster in changed and not fleet.busy_devices_stay):
                yield ReplicaMove(*pair, "BetterScore")


def _worth(problem: Problem, decision: Decision) -> float:
    """Return the value of a decision without what its changes cost."""
    return sum(map(problem.score, decision.assignments))


def _started(offer: Offer, kept: Decision) -> set[str]:
    """Return the workloads that the plan starts where they do not run."""
    before = {(item.workload, item.cluster) for item in kept.assignments}
    after = ((item.workload, item.cluster) for item in offer.decision.assignments)
    return {name for name, cluster in after if (name, cluster) not in before}


def _pinned(offer: Offer, names: Collection[str], whole: Hold) -> Hold | Restrict:
    """Return the fleet with these workloads pinned; held if that changes nothing any more."""
    fleet = pinned(offer.fleet, names)
    return whole if fleet.workloads == offer.fleet.workloads else Restrict(fleet, whole)


def _within(
    offer: Offer,
    left: Sequence[MovesLeft],
    spent: MovesLeft,
    moves: Sequence[ReplicaMove],
    whole: Hold,
) -> Hold | Restrict:
    """Return the plan within its budgets: first by limits, then without what these don't count."""
    if not any(item.moving for item in offer.fleet.limits):
        reasons: dict[str, MoveReason] = {
            item.name: "BetterScore" for item in offer.fleet.workloads if item.current
        }
        reasons |= {item.workload: item.reason for item in moves}
        return Restrict(with_move_limits(offer.fleet, left, reasons), whole)
    over = {item.workload for item in moves if item.reason in spent.reasons}
    return _pinned(offer, over, whole)


def moves_left_for(
    rules: Keeping, history: Sequence[PastChange], running: int, now: datetime
) -> int | None:
    """Return how many moves for a better score are left; None if no budget counts them."""
    return fewest(moves_left(rules.budgets, history, running, now), "BetterScore")
