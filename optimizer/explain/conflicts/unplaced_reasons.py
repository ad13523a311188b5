"""For every workload without a place, or with fewer than it wants: what is in its way."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution
from optimizer.domain.time_left import TimeLeft, unlimited
from optimizer.explain.conflicts.feasibility_oracle import symmetry_keys
from optimizer.explain.conflicts.feasibility_problem import replica_counts
from optimizer.explain.conflicts.irreducible_subsystem import infeasible_subsystem
from optimizer.explain.conflicts.relaxable_limits import (
    RelaxableLimit,
    RequiredReplicas,
    missing_scores,
    relaxable_limits,
)
from optimizer.explain.conflicts.repair import (
    LimitChanges,
    LimitSet,
    RepairSearch,
    RepairTrials,
    TriedRepair,
    forced_to_run,
    minimal_correction_sets,
    repair_that_pays,
    repair_value,
    sized_repairs,
)
from optimizer.explain.solver_ports import BudgetExceeded, FindNearOptimal, ProblemSolver, find_none
from optimizer.model.problem import Problem
from optimizer.wire.explanation import ConflictingLimit, UnplacedReason

_NO_ROOM = "these limits together leave no room while everything placed keeps running"
_ROOM = "there is room for it"


def short_of_replicas(fleet: Fleet, solution: Solution) -> tuple[str, ...]:
    """Return the workloads that run on fewer clusters than they want, in their order."""
    found = replica_counts(solution.decision)
    return tuple(w.name for w in fleet.workloads if found.get(w.name, 0) < w.replicas)


@dataclass(frozen=True, slots=True)
class _KnownConflict:
    """Limits in the way of a workload, and what to change about them, the cheapest first.

    `ways`: which to change; `changes`: by how much. None: not looked for yet.
    """

    wanted: RequiredReplicas
    members: LimitSet
    irreducible: bool
    ways: tuple[LimitSet, ...] | None = None
    changes: tuple[LimitChanges, ...] | None = None


class UnplacedReasons:
    """Why workloads have not one place more; what is alike is found out once.

    `late`: the workloads of which only a part was found out in time.
    """

    def __init__(
        self,
        fleet: Fleet,
        problem: Problem,
        solution: Solution,
        resolve: ProblemSolver,
        nearby: FindNearOptimal = find_none,
        time_left: TimeLeft = unlimited,
    ) -> None:
        self._fleet, self._problem, self._solution = fleet, problem, solution
        self._resolve, self._nearby, self._time_left = resolve, nearby, time_left
        self._counts = replica_counts(solution.decision)
        self._trials = RepairTrials(fleet, resolve, nearby)
        self._known = dict[Hashable, _KnownConflict]()
        self._room = dict[Hashable, bool]()
        self.late: list[str] = []

    def of(self, workload: str) -> UnplacedReason:
        """Return what is in the way of one place more, and the cheapest change that gives it.

        Raises Spent where nothing of that was found out in time.
        """
        if not self._time_left():
            raise BudgetExceeded
        wanted = RequiredReplicas(
            workload, {**self._counts, workload: self._counts.get(workload, 0) + 1}
        )
        if wanted.counts[workload] > len(self._fleet.clusters):
            count = len(self._fleet.clusters)
            message = f"it runs on all of the {count} clusters that the request names"
            return UnplacedReason(workload=workload, message=message)
        named = relaxable_limits(self._fleet, wanted)
        search = RepairSearch(self._fleet, wanted, named, self._resolve, self._time_left)
        key = self._keys[workload]
        answer = self._room[key] if key in self._room else search.answers.possible(())
        if answer is None:
            self.late.append(workload)
            return UnplacedReason(workload=workload, message="not computed in time")
        self._room[key] = answer
        return self._does_not_pay(wanted) if answer else self._no_room(search, key)

    @cached_property
    def _keys(self) -> Mapping[str, Hashable]:
        """By workload, what is the same for those that are in the same way kept out."""
        apps = {
            item.app for item in self._fleet.workloads if any(missing_scores(self._fleet, item))
        }
        return symmetry_keys(self._fleet, self._counts, apps)

    def _no_room(self, search: RepairSearch, key: Hashable) -> UnplacedReason:
        found = self._translated(search, self._known[key]) if key in self._known else None
        if found is None:
            found = self._found(search)
        if found is None:
            message = "no change of the limits that have a name makes room for it"
            return UnplacedReason(workload=search.wanted.workload, message=message)
        self._known[key] = found
        reason = UnplacedReason(
            workload=search.wanted.workload,
            message=_NO_ROOM,
            limits=tuple(
                ConflictingLimit(rule=item.rule, message=item.says) for item in found.members
            ),
            irreducible=found.irreducible,
        )
        return self._with_remedy(reason, search.wanted, lambda: self._cheapest(search, key))

    def _cheapest(self, search: RepairSearch, key: Hashable) -> TriedRepair | None:
        found = self._known[key]
        ways = (
            tuple(minimal_correction_sets(search, found.members))
            if found.ways is None
            else found.ways
        )
        changes = tuple(sized_repairs(search, ways)) if found.changes is None else found.changes
        self._known[key] = replace(found, ways=ways, changes=changes)
        return self._trials.cheapest(search.wanted, changes)

    def _with_remedy(
        self,
        reason: UnplacedReason,
        wanted: RequiredReplicas,
        sought: Callable[[], TriedRepair | None],
    ) -> UnplacedReason:
        """Return a reason with its remedy; it counts without one where the time is over."""
        try:
            change = sought()
        except BudgetExceeded:
            self.late.append(wanted.workload)
            message = f"{reason.message}; what would change that was not computed in time"
            return reason.model_copy(update={"message": message})
        return reason.model_copy(
            update={"remedy": None if change is None else repair_value(wanted, change)}
        )

    def _found(self, search: RepairSearch) -> _KnownConflict | None:
        search.answers.learn(self._solution.decision)
        if search.feasible_with(()) is False:
            return None
        found = infeasible_subsystem(search.named, search.feasible_with)
        return _KnownConflict(search.wanted, found.members, found.irreducible)

    def _translated(self, search: RepairSearch, known: _KnownConflict) -> _KnownConflict | None:
        """Return a conflict that one like this workload has, in its own words; None: it has none.

        Limits correspond where they are the same but for the workloads' names.
        """
        names = {known.wanted.workload: search.wanted.workload}
        names |= {new: old for old, new in names.items()}
        own = {(item.rule, item.subject): item for item in search.named}

        def same(item: RelaxableLimit) -> RelaxableLimit | None:
            named = item.rule not in ("capacity", "limits", "one_policy_per_pool", "unscored")
            subject = tuple(names.get(part, part) for part in item.subject)
            return own.get((item.rule, subject if named else item.subject))

        members = [same(item) for item in known.members]
        ways = [[same(item) for item in way] for way in known.ways or ()]
        if not all(members) or not all(all(way) for way in ways):
            return None
        free = all(item.rule in ("capacity", "limits") for way in known.ways or () for item in way)
        return replace(
            known,
            wanted=search.wanted,
            members=tuple(item for item in members if item),
            ways=known.ways and tuple(tuple(item for item in way if item) for way in ways),
            changes=known.changes if free else None,
        )

    def _does_not_pay(self, wanted: RequiredReplicas) -> UnplacedReason:
        """Explain a workload for which there would be room: a better use was found for it."""
        problem, solution, name = self._problem, self._solution, wanted.workload
        if solution.status == "Feasible":
            message = (
                f"{_ROOM}; what it costs is not known, as the plan is not proven to be the best"
            )
            return UnplacedReason(workload=name, message=message)
        found = forced_to_run(problem, solution, wanted, self._resolve, self._nearby)
        if found.lost is None:
            self.late.append(name)
            message = f"{_ROOM}; what placing it would cost was not computed in time"
            return UnplacedReason(workload=name, message=message)
        cost = found.lost
        message = f"{_ROOM}, but the best solution that has it is worth {cost.total:g} less"
        if cost.total <= 0:
            message = f"{_ROOM}, and a solution with it is worth as much"
        now = TriedRepair((), problem, solution, verified=False)
        return self._with_remedy(
            UnplacedReason(workload=name, message=message, lost=cost),
            wanted,
            lambda: repair_that_pays(self._fleet, now, found, wanted, self._resolve),
        )
