"""The whole explanation of a solution: the cheapest parts first, until the time is over."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import numpy as np

from optimizer.domain.solution import Solution, TimeLeft, unlimited
from optimizer.explain.case import (
    BudgetExceeded,
    Case,
    LinearSolver,
    ProblemSolver,
    ReportProgress,
    report_nothing,
)
from optimizer.explain.conflicts.unplaced_conflicts import UnplacedReasons, short_of_replicas
from optimizer.explain.margins import Margin, Margins
from optimizer.explain.tradeoffs import binding_limits, multi_objective, pareto_set
from optimizer.explain.why_not import why_not
from optimizer.model.current_state import current_state, with_enforced_candidates
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.transition.transition_steps import MAX_TRANSITION_ASSIGNMENTS, transition_plan
from optimizer.wire.explanation import (
    AssignmentReason,
    BindingLimit,
    Explanation,
    ParetoSet,
    TransitionPlan,
    UnplacedReason,
    WhyNotAnswer,
)

MAX_PARETO_POINTS = 25
"""Points of a Pareto set: more than a person compares; each costs an integer program."""

MAX_UNPLACED = 100
"""Workloads whose conflicts are computed: more than a person reads."""

MAX_PRICED_ASSIGNMENTS = 50_000
"""Candidate assignments up to which linear programs are built: PuLP builds them slowly."""

MAX_CONFLICT_ASSIGNMENTS = 200_000
"""Candidate assignments up to which conflicts are computed: each test formulates a problem."""

_TOO_LATE = "the time limit was reached"

T = TypeVar("T")


def compose(
    case: Case,
    solve: ProblemSolver,
    linear: LinearSolver,
    report: ReportProgress = report_nothing,
    time_left: TimeLeft = unlimited,
) -> Explanation:
    """Explain a solution; `not_computed` names what the time or the size did not allow.

    The solvers raise BudgetExceeded; `time_left` stops parts that call no solver.
    """
    parts, found = _Parts(case, solve, linear, time_left), Explanation()
    for part in parts.all():
        missing = tuple(parts.not_computed)
        found = found.model_copy(update={**part, "not_computed": missing, "solves": parts.solves})
        report(found)
    return found


@dataclass(slots=True)
class _Parts:
    """Computes the fields of an explanation one after the other.

    `not_computed`: what is missing and why, in words. `solves`: how often a solver was called.
    """

    case: Case
    solver: ProblemSolver
    linear: LinearSolver
    time_left: TimeLeft
    not_computed: list[str] = field(default_factory=list)
    solves: int = 0

    def solve(self, problem: Problem) -> Solution:
        """Solve a problem, and count that."""
        self.solves += 1
        return self.solver(problem)

    def all(self) -> Iterator[dict[str, object]]:
        """Yield fields; those that grow come again."""
        yield {"why_not": tuple(self._why_not())}
        yield {"pareto": self._pareto()}
        if self.case.everything:
            yield {"transition": self._transition()}
            yield {"binding": self._binding()}
        if self.case.everything or self.case.workloads:
            yield from self._conflicts_and_margins()

    @property
    def _size(self) -> int:
        """The number of candidate assignments."""
        return int(np.count_nonzero(~np.isnan(self.case.problem.values)))

    def _within(self, what: str, most: int) -> bool:
        """Tell whether the problem is small enough; if not, note what is missing."""
        if self._size <= most:
            return True
        self.not_computed.append(f"{what}: more than {most} candidate assignments")
        return False

    def _each(self, what: str, items: Iterable[T], count: int) -> Iterator[T]:
        """Yield items until the time is over; note how many are missing."""
        done = 0
        try:
            for item in items:
                yield item
                done += 1
        except BudgetExceeded:
            self.not_computed.append(f"{count - done} of {count} {what}: {_TOO_LATE}")

    def _why_not(self) -> Iterator[WhyNotAnswer]:
        case = self.case
        answers = (
            why_not(case.fleet, case.problem, case.solution, question, self.solve)
            for question in case.why_not
        )
        yield from self._each("questions", answers, len(case.why_not))

    def _pareto(self) -> ParetoSet | None:
        case = self.case
        if not case.pareto or not self._within("Pareto set", MAX_PRICED_ASSIGNMENTS):
            return None
        given = multi_objective(case.fleet, case.problem, case.pareto)
        return pareto_set(given, self.linear, most=MAX_PARETO_POINTS)

    def _binding(self) -> tuple[BindingLimit, ...]:
        what, case = "binding limits and prices", self.case
        if self._within(what, MAX_PRICED_ASSIGNMENTS):
            try:
                return binding_limits(case.problem, case.solution.decision, self.linear)
            except BudgetExceeded:
                self.not_computed.append(f"{what}: {_TOO_LATE}")
        return ()

    def _transition(self) -> TransitionPlan | None:
        """Return the transition from what runs now; None if nothing is known to run."""
        goal, fleet, problem = self.case.solution.decision, self.case.fleet, self.case.problem
        if self._size <= MAX_CONFLICT_ASSIGNMENTS:
            fleet = with_enforced_candidates(fleet)
            problem = problem if fleet is self.case.fleet else formulate(fleet)
        start = current_state(problem, goal)
        moved = len(set(start.decision.assignments) ^ set(goal.assignments))
        if moved > MAX_TRANSITION_ASSIGNMENTS:
            most = MAX_TRANSITION_ASSIGNMENTS
            self.not_computed.append(f"transition: more than {most} assignments change")
            return None
        return transition_plan(fleet, problem, start, goal, self.time_left)

    def _conflicts(self) -> Iterator[UnplacedReason]:
        case = self.case
        short = short_of_replicas(case.fleet, case.solution)
        names = [name for name in short if case.is_about(name)]
        count = f"{len(names)} conflicts"
        if names and case.solution.status == "NotSolved":
            self.not_computed.append(f"{count}: no plan with an assignment was found")
            return
        if names and not self._within(count, MAX_CONFLICT_ASSIGNMENTS):
            return
        if len(names) > MAX_UNPLACED:
            left = len(names) - MAX_UNPLACED
            self.not_computed.append(f"{left} conflicts: at most {MAX_UNPLACED} are computed")
        first = names[:MAX_UNPLACED]
        reasons = UnplacedReasons(
            case.fleet,
            case.problem,
            case.solution,
            self.solve,
            self.time_left,
            case.find_layouts() if names else {},
        )
        yield from self._each("conflicts", map(reasons.of, first), len(first))
        if reasons.late:
            self.not_computed.append(f"a part of {len(reasons.late)} conflicts: {_TOO_LATE}")

    def _conflicts_and_margins(self) -> Iterator[dict[str, object]]:
        """Yield margins that need no solve, then margins for as many solves as each conflict."""
        case = self.case
        margins = Margins(case.problem, case.solution, self.solve, self.time_left, case.is_about)
        steps = margins.steps() if case.solution.status == "Optimal" else ()
        solves, conflicts = _until_budget_exceeded(steps), self._conflicts()
        reasons, more = list[UnplacedReason](), True
        next(solves, None)
        while more:
            yield {"unplaced": tuple(reasons), "places": tuple(self._places(margins))}
            before, more = self.solves, False
            for reason in islice(conflicts, 1):
                reasons.append(reason)
                more = True
            for _ in islice(solves, max(1, self.solves - before)):
                yield {"unplaced": tuple(reasons), "places": tuple(self._places(margins))}
                more = True
        self._note_missing_margins(margins.known)
        yield {"unplaced": tuple(reasons), "places": tuple(self._places(margins))}

    def _places(self, margins: Margins) -> Iterator[AssignmentReason]:
        """Yield the assignments with the entries that they are worth."""
        fleet = self.case.fleet
        apps = {item.name: item.app for item in fleet.workloads}
        for item in margins.reasons():
            place = item.cluster, apps[item.workload], item.device
            named = {one.score: fleet.scores[one.score].entry(place) for one in fleet.objectives}
            entries = {score: entry for score, entry in named.items() if entry}
            yield item.model_copy(update={"entries": entries})

    def _note_missing_margins(self, known: Mapping[int, Margin]) -> None:
        placed = self.case.solution.decision.assignments
        count = sum(self.case.is_about(item.workload) for item in placed)
        left = count - sum(item.exact for item in known.values())
        if count and self.case.solution.status != "Optimal":
            self.not_computed.append(
                "margins: the plan is not proven to be the best; a gap of 0 asks for the proof"
            )
        elif left:
            bounded = sum(not item.exact for item in known.values())
            some = f"; {bounded} of them have an upper bound" if bounded else ""
            self.not_computed.append(f"{left} of {count} margins: {_TOO_LATE}{some}")


def _until_budget_exceeded(steps: Iterable[None]) -> Iterator[None]:
    with contextlib.suppress(BudgetExceeded):
        yield from steps
