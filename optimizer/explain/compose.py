"""The whole explanation of a solution, the cheapest parts first, as far as the budget goes."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution
from optimizer.explain.conflicts.unplaced import Conflicts, short
from optimizer.explain.margins.margins import Margin, Margins
from optimizer.explain.margins.places import places
from optimizer.explain.margins.why_not import why_not_place, why_not_policy
from optimizer.explain.pareto import pareto, scored
from optimizer.explain.ports import Linear, Nearby, Resolve, Spent, nothing_near
from optimizer.explain.prices import binding
from optimizer.explain.steps import way
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.plan.placed import placed
from optimizer.transition.board import Going, unhurried
from optimizer.transition.start import start, with_enforced
from optimizer.wire.explanation import (
    BindingLimit,
    Explanation,
    ParetoSet,
    PlaceReason,
    TransitionPlan,
    UnplacedReason,
    WhyNot,
)
from optimizer.wire.request import OptimizeRequest

MOST_POINTS = 25
MOST_UNPLACED = 100
MOST_PRICED = 50_000
"""Places up to which binding limits and Pareto sets are looked for."""
MOST_NAMED = 200_000
"""Places up to which conflicts are: naming limits costs a reading of the fleet per question."""

MOST_MOVES = 1_000

_CUT_OFF = "what is missing beside that: its process died or took much too long"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """Why not this place (device empty: any of the cluster), or this policy."""

    cluster: str
    workload: str = ""
    device: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """What is explained: everything, and beyond that what is asked; `pareto`: names of scores."""

    fleet: Fleet
    problem: Problem
    solution: Solution
    everything: bool = True
    why_not: tuple[Question, ...] = ()
    pareto: tuple[str, ...] = ()


def case_of(request: OptimizeRequest, fleet: Fleet, problem: Problem, solution: Solution) -> Case:
    """Return what a request asks to be explained; without `explain` only what it names."""
    return Case(
        fleet,
        problem,
        solution,
        everything=request.explain,
        why_not=tuple(
            Question(item.cluster, item.workload or "", item.device, item.policy or "")
            for item in request.why_not
        ),
        pareto=request.pareto,
    )


@dataclass(slots=True)
class _Account:
    """What could not be computed, in words."""

    missing: list[str] = field(default_factory=list)

    def tried(self, what: str, work: Callable[[], T]) -> T | None:
        """Return what work returns; None, and noted, where the budget is spent."""
        try:
            return work()
        except Spent:
            self.missing.append(f"{what}: the time did not allow it")
            return None

    def each(self, what: str, items: Iterable[T], count: int) -> Iterator[T]:
        """Yield items until the budget is spent; note how many are missing."""
        done = 0
        try:
            for item in items:
                yield item
                done += 1
        except Spent:
            self.missing.append(f"{count - done} of {count} {what}: the time did not allow it")


Report = Callable[[Callable[[], Explanation]], None]
"""Is told again and again how to get what is known so far."""


def unheard(_: Callable[[], Explanation]) -> None:
    """Report to nobody."""


def explanation(
    case: Case,
    resolve: Resolve,
    linear: Linear,
    report: Report = unheard,
    going: Going = unhurried,
    nearby: Nearby = nothing_near,
) -> Explanation:
    """Explain a solution; what the budget or the size did not allow is named, never guessed.

    `going`: tells whether there is time left, to what asks no solver.
    """
    account, counted, found = _Account(), _Counted(resolve), Explanation()
    for part in _parts(case, counted, linear, account, going, nearby):
        found = found.model_copy(
            update={**part, "not_computed": tuple(account.missing), "solves": counted.solves}
        )
        report(partial(_unfinished, found))
    return found


def _unfinished(found: Explanation) -> Explanation:
    return found.model_copy(update={"not_computed": (*found.not_computed, _CUT_OFF)})


def _parts(
    case: Case,
    resolve: Resolve,
    linear: Linear,
    account: _Account,
    going: Going,
    nearby: Nearby,
) -> Iterator[dict[str, object]]:
    """Yield the fields of an explanation; those that grow come again."""
    yield {"why_not": tuple(_answers(case, resolve, account))}
    yield {"pareto": _pareto(case, linear, account)}
    if case.everything:
        yield {"transition": _transition(case, account, going)}
        yield {"binding": _binding(case, linear, account)}
        yield from _in_turns(case, resolve, nearby, account, going)


@dataclass(slots=True)
class _Counted:
    """A solver that counts what it is asked."""

    resolve: Resolve
    solves: int = 0

    def __call__(self, problem: Problem) -> Solution:
        self.solves += 1
        return self.resolve(problem)


def _size(case: Case) -> int:
    return int(np.count_nonzero(~np.isnan(case.problem.values)))


def _answers(case: Case, resolve: Resolve, account: _Account) -> Iterator[WhyNot]:
    answers = (_answer(case, item, resolve) for item in case.why_not)
    yield from account.each("questions", answers, len(case.why_not))


def _answer(case: Case, asked: Question, resolve: Resolve) -> WhyNot:
    if asked.policy:
        return why_not_policy(case.problem, case.solution, asked.cluster, asked.policy, resolve)
    return why_not_place(
        case.fleet,
        case.problem,
        case.solution,
        asked.workload,
        asked.cluster,
        asked.device or None,
        resolve,
    )


def _pareto(case: Case, linear: Linear, account: _Account) -> ParetoSet | None:
    if not case.pareto:
        return None
    if _size(case) > MOST_PRICED:
        account.missing.append(f"Pareto set: more than {MOST_PRICED} places")
        return None
    made = scored(case.fleet, case.problem, case.pareto)
    return account.tried("Pareto set", lambda: pareto(made, linear, most=MOST_POINTS))


def _binding(case: Case, linear: Linear, account: _Account) -> tuple[BindingLimit, ...]:
    if _size(case) > MOST_PRICED:
        account.missing.append(f"binding limits and prices: more than {MOST_PRICED} places")
        return ()
    made = account.tried(
        "binding limits and prices",
        lambda: binding(case.problem, case.solution.decision, linear),
    )
    return made or ()


def _unplaced(
    case: Case, resolve: Resolve, nearby: Nearby, account: _Account, going: Going
) -> Iterator[UnplacedReason]:
    names = short(case.fleet, case.solution)
    if names and case.solution.status == "NotSolved":
        account.missing.append(f"{len(names)} conflicts: no plan was found that has any place")
        return
    if names and _size(case) > MOST_NAMED:
        account.missing.append(f"{len(names)} conflicts: more than {MOST_NAMED} places")
        return
    if len(names) > MOST_UNPLACED:
        left = len(names) - MOST_UNPLACED
        account.missing.append(f"{left} conflicts: no more than {MOST_UNPLACED} are looked for")
    first = names[:MOST_UNPLACED]
    found = Conflicts(case.fleet, case.problem, case.solution, resolve, nearby, going)
    yield from account.each("conflicts", map(found.of, first), len(first))
    if found.late:
        account.missing.append(f"a part of {len(found.late)} conflicts: the time did not allow it")


def _in_turns(
    case: Case, resolve: Resolve, nearby: Nearby, account: _Account, going: Going
) -> Iterator[dict[str, object]]:
    """Yield bounds of margins, which are cheap, then conflicts and margins in turns."""
    sought = Margins(case.problem, case.solution, resolve, nearby, going)
    proven = case.solution.status == "Optimal"
    conflicts, left = (
        _unplaced(case, resolve, nearby, account, going),
        _budgeted(sought.exact() if proven else ()),
    )
    reasons, known = list[UnplacedReason](), dict[int, Margin]()
    learnt = list(_budgeted(sought.bounds() if proven else ()))
    while True:
        known |= {item.place: item for item in learnt}
        yield {"unplaced": tuple(reasons), "places": tuple(_places(case, known, _Account()))}
        more, learnt = list(islice(conflicts, 1)), list(islice(left, 1))
        if not more and not learnt:
            break
        reasons += more
    yield {"unplaced": tuple(reasons), "places": tuple(_places(case, known, account))}


def _budgeted(margins: Iterable[Margin]) -> Iterator[Margin]:
    """Yield margins until the budget is spent."""
    with contextlib.suppress(Spent):
        yield from margins


def _places(case: Case, known: Mapping[int, Margin], account: _Account) -> Iterator[PlaceReason]:
    """Yield every place; those that the time was too short for come without a margin."""
    taken = placed(case.problem, case.solution)
    left = len(taken) - sum(item.exact for item in known.values())
    if taken and case.solution.status != "Optimal":
        account.missing.append("margins: the plan is not proven to be the best")
    elif left:
        bounded = sum(not item.exact for item in known.values())
        some = f"; {bounded} of them are known to be at most something" if bounded else ""
        account.missing.append(f"{left} of {len(taken)} margins: the time did not allow it{some}")
    yield from places(case.problem, case.solution, taken, known)


def _transition(case: Case, account: _Account, going: Going) -> TransitionPlan | None:
    """Return the way from what runs now; None where nothing is known to run."""
    goal, fleet, problem = case.solution.decision, case.fleet, case.problem
    if _size(case) <= MOST_NAMED:
        fleet = with_enforced(fleet)
        problem = problem if fleet is case.fleet else formulate(fleet)
    begin = start(problem, goal)
    if len(set(begin.decision.places) ^ set(goal.places)) > MOST_MOVES:
        account.missing.append(f"transition: more than {MOST_MOVES} places are taken or left")
        return None
    return way(fleet, problem, begin, goal, going)
