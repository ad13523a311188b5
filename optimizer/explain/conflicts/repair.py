"""The cheapest change that places a workload, verified by solving the changed fleet.

Every set of limits whose change makes room meets every conflict, so the sets are grown from
conflicts, fewest members first (Reiter, Artificial Intelligence 32, 1987).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision, Solution
from optimizer.explain.conflicts.amounts import GIVEN_UP, Amended, amendments, applied
from optimizer.explain.conflicts.answers import Answers
from optimizer.explain.conflicts.irreducible import conflict
from optimizer.explain.conflicts.relaxable_limits import Barrier, Wanted, with_workload
from optimizer.explain.conflicts.requirement import counts
from optimizer.explain.margins.exchange import Equals
from optimizer.explain.margins.forced import Outcome, lost, outcome, with_workload_on
from optimizer.explain.ports import Nearby, Resolve, Spent
from optimizer.explain.shown import spot
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem, objective
from optimizer.model.rules import violations
from optimizer.transition.board import Going, unhurried
from optimizer.wire.explanation import Change, Remedy

MOST_LIMITS = 5
_MOST_SETS = 40
_MOST_SIZED = 12
_MOST_SETTLED = 3
_MOST_PAID = 1
_MORE = 1e-2

Barriers = tuple[Barrier, ...]
Changes = tuple[Amended, ...]


@dataclass(frozen=True)
class Search:
    """A fleet, what is wanted of it, and every limit that has a name."""

    fleet: Fleet
    wanted: Wanted
    named: Barriers
    resolve: Resolve
    going: Going = unhurried

    def possible_with(self, held: Sequence[Barrier]) -> bool | None:
        """Tell whether all that is wanted can run while these limits hold and no others."""
        kept = set(map(id, held))
        return self.answers.possible(item for item in self.named if id(item) not in kept)

    @cached_property
    def answers(self) -> Answers:
        """What was asked so far."""
        return Answers(self.fleet, self.wanted, self.named, self.resolve, self.going)

    def lacking(self, relaxing: Barriers) -> float:
        """Return what is lacking of supplies, as far as it is known: what to look at first."""
        return sum(self.answers.lacking.get(id(item), inf) for item in relaxing)


@dataclass(frozen=True, slots=True)
class Settled:
    """Changes, the problem after them, and its solution; verified: it places the workload."""

    changes: tuple[Amended, ...]
    problem: Problem
    solution: Solution
    verified: bool


def ways_out(search: Search, first: Barriers) -> list[Barriers]:
    """Return the smallest sets of limits found that make room when given up, given one conflict."""
    conflicts, level = list[Barriers]([first]), list[Barriers]([()])
    for _ in range(MOST_LIMITS):
        found, left = list[Barriers](), list[Barriers]()
        grown = sorted(_grown(search, level, conflicts), key=search.lacking)
        for relaxing in grown[:_MOST_SETS]:
            answer = search.answers.possible(relaxing)
            if answer is not None:
                (found if answer else left).append(relaxing)
        if found:
            return found[:_MOST_SIZED]
        level = left
    return []


def sized(search: Search, ways: Iterable[Barriers]) -> list[Changes]:
    """Return the least changes that make room for each set of limits, the cheapest first."""
    found = [
        changes
        for relaxing in _while(search.going, ways)
        if (
            changes := amendments(
                search.fleet, search.wanted, relaxing, search.resolve, search.lacking(relaxing)
            )
        )
    ]
    return sorted(found, key=_rank)


def _grown(search: Search, level: Sequence[Barriers], conflicts: list[Barriers]) -> list[Barriers]:
    """Return each set with one more member that can be changed, of a conflict that it leaves."""
    sets: dict[frozenset[int], Barriers] = {}
    for relaxing in level:
        met = next((item for item in conflicts if not set(item) & set(relaxing)), None)
        if met is None:
            left = [item for item in search.named if item not in relaxing]
            met = conflict(left, search.possible_with).members
            conflicts.append(met)
        for item in met:
            if item.offered:
                sets.setdefault(frozenset(map(id, (*relaxing, item))), (*relaxing, item))
    return list(sets.values())


def _while(going: Going, ways: Iterable[Barriers]) -> Iterator[Barriers]:
    for item in ways:
        if not going():
            raise Spent
        yield item


def _rank(changes: Changes) -> tuple[int, float]:
    return len(changes), sum(item.size for item in changes)


class Trials:
    """Fleets after changes, each solved once, whoever asks."""

    def __init__(self, fleet: Fleet, resolve: Resolve, nearby: Nearby) -> None:
        self._fleet, self._resolve, self._nearby = fleet, resolve, nearby
        self._known = dict[tuple[str, ...], tuple[Fleet, Problem, Solution]]()
        self._forced = dict[tuple[str, ...], list[tuple[str, Outcome]]]()

    def cheapest(self, wanted: Wanted, ordered: Sequence[Changes]) -> Settled | None:
        """Return the cheapest of some changes that places a workload; None where there is none.

        A solution is free to use what was added for what is worth more: then the cheapest change
        is one that makes the workload pay, too.
        """
        fewest = [changes for changes in ordered if len(changes) == len(ordered[0])]
        for changes in fewest[:_MOST_SETTLED]:
            _, problem, solution = self._changed(changes)
            if _placed(solution, wanted):
                return Settled(changes, problem, solution, verified=True)
        made = [self._paying(wanted, changes) for changes in ordered[:_MOST_PAID]]
        return min(made, key=lambda item: (not item.verified, _rank(item.changes)), default=None)

    def _paying(self, wanted: Wanted, changes: Changes) -> Settled:
        """Return what would make a workload pay that fits after some changes."""
        fleet, problem, solution = self._changed(changes)
        now = Settled(changes, problem, solution, _placed(solution, wanted))
        if now.verified or wanted.workload not in problem.task_index:
            return now
        forced = self._forced.setdefault(_key(changes), [])
        found = _of_equal(problem, wanted, forced)
        if found is None:
            found = forced_to_run(problem, solution, wanted, self._resolve, self._nearby)
            if wanted.counts[wanted.workload] == 1 and found.lost is not None:
                forced.append((wanted.workload, found))
        return paying(fleet, now, found, wanted, self._resolve) or now

    def _changed(self, changes: Changes) -> tuple[Fleet, Problem, Solution]:
        key = _key(changes)
        if key not in self._known:
            fleet = applied(self._fleet, changes)
            problem = formulate(fleet)
            self._known[key] = fleet, problem, _solved(problem, self._resolve)
        return self._known[key]


def _key(changes: Changes) -> tuple[str, ...]:
    return tuple(item.says for item in changes)


def _of_equal(
    problem: Problem, wanted: Wanted, forced: Iterable[tuple[str, Outcome]]
) -> Outcome | None:
    """Return what forcing a workload gives, where it is known of an equal; None elsewhere."""
    equals = Equals(problem)
    for name, found in forced:
        if equals.are(name, wanted.workload) and wanted.counts[wanted.workload] == 1:
            decision = equals.with_workload(found.decision, wanted.workload)
            if decision is not None:
                return found._replace(decision=decision)
    return None


def forced_to_run(
    problem: Problem, solution: Solution, wanted: Wanted, resolve: Resolve, nearby: Nearby
) -> Outcome:
    """Return the best decision in which a workload runs as often as it is wanted to."""
    if solution.status not in ("Optimal", "Infeasible"):
        return Outcome(possible=None)
    name, times = wanted.workload, wanted.counts[wanted.workload]
    if times == 1 and solution.status == "Optimal":
        known = _at_hand(problem, solution.decision, name, nearby)
        if known is not None:
            return Outcome(True, known, lost(problem, solution.decision, known))
    forced = with_workload_on(problem, name, range(len(problem.clusters)), times=times)
    return outcome(problem, solution.decision, forced, resolve, times=times, workload=name)


def _at_hand(problem: Problem, best: Decision, name: str, nearby: Nearby) -> Decision | None:
    """Return the best decision that has a workload where few decisions have to be looked at."""
    equals = Equals(problem)
    known = equals.with_workload(best, name)
    if known is not None:
        return known
    found = nearby(problem, objective(problem, best)).with_workload(name)
    if found.status != "Optimal":
        return None
    decision = found.decision
    if not any(place.workload == name for place in decision.places):
        decision = equals.with_workload(decision, name) or Decision()
    return decision if decision.places and not violations(problem, decision) else None


def paying(
    fleet: Fleet, before: Settled, found: Outcome, wanted: Wanted, resolve: Resolve
) -> Settled | None:
    """Return what makes a workload pay that fits, given the best decision that has it."""
    for extra, problem in _paying(fleet, before.problem, found, wanted):
        again = _solved(problem, resolve)
        if _placed(again, wanted):
            return Settled((*before.changes, extra), problem, again, verified=True)
    return None


def _paying(
    fleet: Fleet, problem: Problem, found: Outcome, wanted: Wanted
) -> Iterator[tuple[Amended, Problem]]:
    """Yield what could make a workload pay that fits: a higher value, or a higher priority."""
    if found.lost is None:
        return
    name = wanted.workload
    own = problem.tasks[problem.task_index[name]].priority
    higher = [loss for priority, loss in found.lost.by_priority.items() if priority > own]
    if max(higher, default=0.0) <= 0:
        loss = max(0.0, found.lost.by_priority.get(own, found.lost.total))
        yield Amended(_worth(name, loss), _same, loss), _worth_more(problem, name, loss)
    top = max(task.priority for task in problem.tasks) + 1
    raised = formulate(with_workload(fleet, name, priority=top))
    says = f"raise the priority of workload {name} to {top}"
    yield Amended(says, _same, GIVEN_UP), raised
    lack = max(0.0, -min(_values(problem, found.decision, name)))
    both = f"{says}, and {_worth(name, lack)}"
    yield Amended(both, _same, GIVEN_UP + lack), _worth_more(raised, name, lack)


def _same(fleet: Fleet) -> Fleet:
    return fleet


def _worth(name: str, more: float) -> str:
    return f"make each place of workload {name} worth over {more:g} more"


def _values(problem: Problem, decision: Decision, name: str) -> Iterator[float]:
    for place in decision.places:
        found = problem.indexes(place)
        if place.workload == name and found is not None:
            yield float(problem.values[found])


def _worth_more(problem: Problem, name: str, more: float) -> Problem:
    values = problem.values.copy()
    values[problem.task_index[name]] += more + _MORE
    return replace(problem, values=values)


def _solved(problem: Problem, resolve: Resolve) -> Solution:
    """Return the best solution; raises Spent where the time was over before it was proven."""
    solution = resolve(problem)
    if solution.status not in ("Optimal", "Infeasible"):
        raise Spent
    return solution


def _placed(solution: Solution, wanted: Wanted) -> bool:
    return counts(solution.decision).get(wanted.workload, 0) >= wanted.counts[wanted.workload]


def remedy(wanted: Wanted, found: Settled) -> Remedy:
    """Return what was found as it is shown."""
    now, places = counts(found.solution.decision), found.solution.decision.places
    return Remedy(
        changes=tuple(
            Change(message=item.says, size=round(item.size, 6)) for item in found.changes
        ),
        verified=found.verified,
        places=tuple(spot(place) for place in places if place.workload == wanted.workload),
        losing=tuple(
            name
            for name, count in wanted.counts.items()
            if name != wanted.workload and now.get(name, 0) < count
        ),
    )
