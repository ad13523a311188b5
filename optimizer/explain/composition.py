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
from optimizer.domain.time_left import TimeLeft, unlimited
from optimizer.explain.margins.assignment_reasons import assignment_reasons
from optimizer.explain.margins.margins import Margin, Margins
from optimizer.explain.margins.why_not import why_not_place, why_not_policy
from optimizer.explain.solver_ports import (
    BudgetExceeded,
    FindNearOptimal,
    LinearSolver,
    ProblemSolver,
    find_none,
)
from optimizer.explain.tradeoffs.dual_prices import binding_limits
from optimizer.explain.tradeoffs.pareto_set import multi_objective, pareto_set
from optimizer.explain.transition_steps import transition_plan
from optimizer.explain.unplaced_reasons import UnplacedReasons, short_of_replicas
from optimizer.model.current_state import current_state, with_enforced_candidates
from optimizer.model.formulate import formulate
from optimizer.model.placements import placed
from optimizer.model.problem import Problem
from optimizer.wire.explanation import (
    AssignmentReason,
    BindingLimit,
    Explanation,
    ParetoSet,
    TransitionPlan,
    UnplacedReason,
    WhyNotAnswer,
)
from optimizer.wire.request import OptimizeRequest

MAX_PARETO_POINTS = 25
MAX_UNPLACED = 100
MAX_PRICED_ASSIGNMENTS = 50_000
"""Places up to which binding limits and Pareto sets are looked for."""
MAX_CONFLICT_ASSIGNMENTS = 200_000
"""Places up to which conflicts are: naming limits costs a reading of the fleet per question."""

MAX_TRANSITION_ASSIGNMENTS = 1_000

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
class _Omissions:
    """What could not be computed, in words."""

    missing: list[str] = field(default_factory=list)

    def tried(self, what: str, work: Callable[[], T]) -> T | None:
        """Return what work returns; None, and noted, where the budget is spent."""
        try:
            return work()
        except BudgetExceeded:
            self.missing.append(f"{what}: the time did not allow it")
            return None

    def each(self, what: str, items: Iterable[T], count: int) -> Iterator[T]:
        """Yield items until the budget is spent; note how many are missing."""
        done = 0
        try:
            for item in items:
                yield item
                done += 1
        except BudgetExceeded:
            self.missing.append(f"{count - done} of {count} {what}: the time did not allow it")


ReportProgress = Callable[[Callable[[], Explanation]], None]
"""Is told again and again how to get what is known so far."""


def report_nothing(_: Callable[[], Explanation]) -> None:
    """Report to nobody."""


def compose(
    case: Case,
    resolve: ProblemSolver,
    linear: LinearSolver,
    report: ReportProgress = report_nothing,
    time_left: TimeLeft = unlimited,
    nearby: FindNearOptimal = find_none,
) -> Explanation:
    """Explain a solution; what the budget or the size did not allow is named, never guessed.

    `time_left`: tells whether there is time left, to what asks no solver.
    """
    account, counted, found = _Omissions(), _CountingSolver(resolve), Explanation()
    for part in _parts(case, counted, linear, account, time_left, nearby):
        found = found.model_copy(
            update={**part, "not_computed": tuple(account.missing), "solves": counted.solves}
        )
        report(partial(_unfinished, found))
    return found


def _unfinished(found: Explanation) -> Explanation:
    return found.model_copy(update={"not_computed": (*found.not_computed, _CUT_OFF)})


def _parts(
    case: Case,
    resolve: ProblemSolver,
    linear: LinearSolver,
    account: _Omissions,
    time_left: TimeLeft,
    nearby: FindNearOptimal,
) -> Iterator[dict[str, object]]:
    """Yield the fields of an explanation; those that grow come again."""
    yield {"why_not": tuple(_why_not_answers(case, resolve, account))}
    yield {"pareto": _pareto(case, linear, account)}
    if case.everything:
        yield {"transition": _transition(case, account, time_left)}
        yield {"binding": _binding(case, linear, account)}
        yield from _conflicts_and_margins(case, resolve, nearby, account, time_left)


@dataclass(slots=True)
class _CountingSolver:
    """A solver that counts what it is asked."""

    resolve: ProblemSolver
    solves: int = 0

    def __call__(self, problem: Problem) -> Solution:
        self.solves += 1
        return self.resolve(problem)


def _size(case: Case) -> int:
    return int(np.count_nonzero(~np.isnan(case.problem.values)))


def _why_not_answers(
    case: Case, resolve: ProblemSolver, account: _Omissions
) -> Iterator[WhyNotAnswer]:
    answers = (_why_not_answer(case, item, resolve) for item in case.why_not)
    yield from account.each("questions", answers, len(case.why_not))


def _why_not_answer(case: Case, asked: Question, resolve: ProblemSolver) -> WhyNotAnswer:
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


def _pareto(case: Case, linear: LinearSolver, account: _Omissions) -> ParetoSet | None:
    if not case.pareto:
        return None
    if _size(case) > MAX_PRICED_ASSIGNMENTS:
        account.missing.append(f"Pareto set: more than {MAX_PRICED_ASSIGNMENTS} places")
        return None
    made = multi_objective(case.fleet, case.problem, case.pareto)
    return account.tried("Pareto set", lambda: pareto_set(made, linear, most=MAX_PARETO_POINTS))


def _binding(case: Case, linear: LinearSolver, account: _Omissions) -> tuple[BindingLimit, ...]:
    if _size(case) > MAX_PRICED_ASSIGNMENTS:
        account.missing.append(
            f"binding limits and prices: more than {MAX_PRICED_ASSIGNMENTS} places"
        )
        return ()
    made = account.tried(
        "binding limits and prices",
        lambda: binding_limits(case.problem, case.solution.decision, linear),
    )
    return made or ()


def _unplaced(
    case: Case,
    resolve: ProblemSolver,
    nearby: FindNearOptimal,
    account: _Omissions,
    time_left: TimeLeft,
) -> Iterator[UnplacedReason]:
    names = short_of_replicas(case.fleet, case.solution)
    if names and case.solution.status == "NotSolved":
        account.missing.append(f"{len(names)} conflicts: no plan was found that has any place")
        return
    if names and _size(case) > MAX_CONFLICT_ASSIGNMENTS:
        account.missing.append(
            f"{len(names)} conflicts: more than {MAX_CONFLICT_ASSIGNMENTS} places"
        )
        return
    if len(names) > MAX_UNPLACED:
        left = len(names) - MAX_UNPLACED
        account.missing.append(f"{left} conflicts: no more than {MAX_UNPLACED} are looked for")
    first = names[:MAX_UNPLACED]
    found = UnplacedReasons(case.fleet, case.problem, case.solution, resolve, nearby, time_left)
    yield from account.each("conflicts", map(found.of, first), len(first))
    if found.late:
        account.missing.append(f"a part of {len(found.late)} conflicts: the time did not allow it")


def _conflicts_and_margins(
    case: Case,
    resolve: ProblemSolver,
    nearby: FindNearOptimal,
    account: _Omissions,
    time_left: TimeLeft,
) -> Iterator[dict[str, object]]:
    """Yield bounds of margins, which are cheap, then conflicts and margins in turns."""
    sought = Margins(case.problem, case.solution, resolve, nearby, time_left)
    proven = case.solution.status == "Optimal"
    conflicts, left = (
        _unplaced(case, resolve, nearby, account, time_left),
        _budgeted(sought.exact() if proven else ()),
    )
    reasons, known = list[UnplacedReason](), dict[int, Margin]()
    learnt = list(_budgeted(sought.bounds() if proven else ()))
    while True:
        known |= {item.place: item for item in learnt}
        yield {"unplaced": tuple(reasons), "places": tuple(_places(case, known, _Omissions()))}
        more, learnt = list(islice(conflicts, 1)), list(islice(left, 1))
        if not more and not learnt:
            break
        reasons += more
    yield {"unplaced": tuple(reasons), "places": tuple(_places(case, known, account))}


def _budgeted(margins: Iterable[Margin]) -> Iterator[Margin]:
    """Yield margins until the budget is spent."""
    with contextlib.suppress(BudgetExceeded):
        yield from margins


def _places(
    case: Case, known: Mapping[int, Margin], account: _Omissions
) -> Iterator[AssignmentReason]:
    """Yield every place; those that the time was too short for come without a margin."""
    taken = placed(case.problem, case.solution)
    left = len(taken) - sum(item.exact for item in known.values())
    if taken and case.solution.status != "Optimal":
        account.missing.append("margins: the plan is not proven to be the best")
    elif left:
        bounded = sum(not item.exact for item in known.values())
        some = f"; {bounded} of them are known to be at most something" if bounded else ""
        account.missing.append(f"{left} of {len(taken)} margins: the time did not allow it{some}")
    yield from assignment_reasons(case.problem, case.solution, taken, known)


def _transition(case: Case, account: _Omissions, time_left: TimeLeft) -> TransitionPlan | None:
    """Return the way from what runs now; None where nothing is known to run."""
    goal, fleet, problem = case.solution.decision, case.fleet, case.problem
    if _size(case) <= MAX_CONFLICT_ASSIGNMENTS:
        fleet = with_enforced_candidates(fleet)
        problem = problem if fleet is case.fleet else formulate(fleet)
    begin = current_state(problem, goal)
    if len(set(begin.decision.assignments) ^ set(goal.assignments)) > MAX_TRANSITION_ASSIGNMENTS:
        account.missing.append(
            f"transition: more than {MAX_TRANSITION_ASSIGNMENTS} places are taken or left"
        )
        return None
    return transition_plan(fleet, problem, begin, goal, time_left)
