"""The rules of a placement, each a function from problem to linear rows.

The same rows constrain the solver and check a given decision, so every rule can be tested alone
without solving. To add a rule, write a function and list it: with LOCAL_RULES where each of its
rows speaks of one cluster, else with COUPLING_RULES. A row without any chosen variable must hold,
since deciding nothing is always allowed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from optimizer.domain.solution import Decision, Variable
from optimizer.model.problem import Floats, Ints, Problem, grouped

TOLERANCE = 5e-6
"""By how much a row may be exceeded, relative to its largest coefficient: solvers are inexact."""

_LARGE = 1e6
_SHOWN = 5
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The sum of coefficient x variable is at most `limit`; `says` is the rule for a person.

    `columns` are variable numbers, each once.
    """

    says: str
    columns: Ints
    coefficients: Floats
    limit: float

    def holds(self, activity: float) -> bool:
        """Tell whether this sum of coefficient x variable is allowed."""
        scale = max(1.0, float(np.abs(self.coefficients).max(initial=0.0)))
        return activity <= self.limit + TOLERANCE * scale


Rule = Callable[[Problem], Iterator[Row]]


def one_policy_per_pool(problem: Problem) -> Iterator[Row]:
    """At most one of the candidate policies of a cluster and pool is enforced."""
    by_pool: dict[tuple[int, str], list[int]] = {}
    for column, option in enumerate(problem.options):
        by_pool.setdefault((option.cluster, option.pool), []).append(column)
    for (cluster, pool), columns in by_pool.items():
        where = f"pool {pool} of cluster" if pool else "cluster"
        says = f"{where} {problem.clusters[cluster]} enforces one policy"
        yield _sum(says, np.array(columns), 1.0)


def capacity(problem: Problem) -> Iterator[Row]:
    """What runs on a slot fits what it has without a policy and what enforced policies supply."""
    demand, supply = problem.demand, problem.supply
    supplied = dict(grouped(supply.slot))
    for slot, uses in grouped(demand.slot):
        given = supplied.get(slot, _NONE)
        columns = np.concatenate([demand.column[uses], supply.column[given]])
        amounts = np.concatenate([demand.amount[uses], -supply.amount[given]])
        says = f"{_slot(problem, slot)} suffices"
        yield _scaled(_merged(says, columns, amounts, float(problem.base[slot])))


def supplied(problem: Problem) -> Iterator[Row]:
    """A task runs only on a slot that exists: with a base, or supplied by an enforced policy.

    Where no other pool can help, by a policy that alone supplies enough: implied by `capacity`
    for whole decisions, but stated per place it makes the relaxation tight.
    """
    places, first = problem.places, len(problem.options)
    serving = dict(grouped(problem.supply.slot))
    for slot, members in grouped(places.slot):
        uses = serving.get(slot, _NONE)
        options, amounts = problem.supply.column[uses], problem.supply.amount[uses]
        alone = len({problem.options[option].pool for option in options.tolist()}) <= 1
        for place in members.tolist():
            task = problem.tasks[places.task[place]]
            needed = task.amount - problem.base[slot]
            if needed <= 0 < problem.base[slot]:
                continue
            enough = options[amounts >= needed] if alone else options
            says = f"workload {task.name} has {_where(problem, slot)}"
            columns = np.concatenate([[first + place], enough])
            yield Row(says, columns, np.concatenate([[1.0], np.full(len(enough), -1.0)]), 0.0)


def once_per_cluster(problem: Problem) -> Iterator[Row]:
    """A workload of several replicas runs at most once on a cluster: a cluster has one work of it.

    Of one replica `replicas` says it already.
    """
    for index, task in enumerate(problem.tasks):
        for cluster, columns in _by_cluster(problem, index) if task.replicas > 1 else ():
            if len(columns) > 1:
                says = f"workload {task.name} runs once on cluster {problem.clusters[cluster]}"
                yield _sum(says, columns, 1.0)


def near(problem: Problem) -> Iterator[Row]:
    """A workload runs only where another of each set that it wants near runs too."""
    users = [(task.name, wanted) for task in problem.tasks for wanted in task.near]
    columns = _columns(problem, chain.from_iterable((name, *wanted) for name, wanted in users))
    for user, wanted in users:
        others = [name for name in wanted if name != user]
        company = f"workload {user} runs near {_listed(others, 'or') or 'nothing'}"
        for cluster, own in columns[user].items():
            there = [columns[name].get(cluster, _NONE) for name in others if name in columns]
            theirs = np.concatenate([_NONE, *there])
            says = f"{company} on cluster {problem.clusters[cluster]}"
            signs = np.concatenate([np.ones(len(own)), np.full(len(theirs), -1.0)])
            yield Row(says, np.concatenate([own, theirs]), signs, 0.0)


def apart(problem: Problem) -> Iterator[Row]:
    """Two workloads of which one wants the other apart never run on the same cluster.

    Where all of a set want that of each other, one row says it of all of them.
    """
    sets = _apart(problem)
    columns = _columns(problem, chain.from_iterable(sets))
    for names in sets:
        says = f"workloads {_listed(names, 'and')} run apart"
        present = [columns[name] for name in names if name in columns]
        shared = Counter(cluster for found in present for cluster in found)
        for cluster in sorted(cluster for cluster, count in shared.items() if count > 1):
            members = [found[cluster] for found in present if cluster in found]
            where = f"{says} on cluster {problem.clusters[cluster]}"
            yield _sum(where, np.concatenate(members), 1.0)


def replicas(problem: Problem) -> Iterator[Row]:
    """A workload runs on at most as many clusters as it wants to."""
    first = len(problem.options)
    for index, task in enumerate(problem.tasks):
        members = problem.places_of(index)
        often = "once" if task.replicas == 1 else f"on {task.replicas} clusters at most"
        yield _sum(f"workload {task.name} runs {often}", first + members, float(task.replicas))


def spread(problem: Problem) -> Iterator[Row]:
    """Workloads that spread together have at most so many places per value of a cluster label."""
    for (key, most, group), tasks in _spreads(problem).items():
        members = np.concatenate([problem.places_of(task) for task in tasks])
        codes, values = _coded(problem.labels[key])
        for code, positions in grouped(codes[problem.places.cluster[members]]):
            says = f"at most {most} of {group} where {key} is {values[code] or 'not set'}"
            yield _sum(says, len(problem.options) + members[positions], float(most))


def limits(problem: Problem) -> Iterator[Row]:
    """What places and policies use together stays within each fleet-wide limit."""
    for limit in problem.limits:
        places = problem.places
        amounts = np.concatenate([limit.options, limit.used(places.task, places.slot)])
        columns = np.nonzero(amounts)[0]
        yield _scaled(
            Row(f"{limit.name} is at most {limit.most:g}", columns, amounts[columns], limit.most)
        )


LOCAL_RULES: tuple[Rule, ...] = (
    one_policy_per_pool,
    capacity,
    supplied,
    once_per_cluster,
    near,
    apart,
)
"""Every row speaks of the variables of one cluster."""

COUPLING_RULES: tuple[Rule, ...] = (replicas, spread, limits)
"""Rows speak of several clusters; their coefficients are never below 0."""

RULES = (*LOCAL_RULES, *COUPLING_RULES)


def violations(
    problem: Problem, decision: Decision, rules: Iterable[Rule] = RULES
) -> tuple[str, ...]:
    """Return what a decision breaks, in words; a variable that the problem lacks breaks it too."""
    part, unknown = chosen_part(problem, decision)
    broken = [
        row.says
        for rule in rules
        for row in rule(part)
        if not row.holds(float(row.coefficients.sum()))
    ]
    return (*(f"{variable} is no candidate" for variable in unknown), *broken)


def chosen_part(problem: Problem, decision: Decision) -> tuple[Problem, tuple[Variable, ...]]:
    """Return the problem of what a decision chooses alone, and what is no candidate of it."""
    options = {item: problem.option_index.get(item) for item in decision.choices}
    places = {place: problem.indexes(place) for place in decision.places}
    pairs = [pair for pair in places.values() if pair is not None]
    part = problem.part(
        sorted(option for option in options.values() if option is not None),
        np.array([task for task, _ in pairs], dtype=np.int64),
        np.array([slot for _, slot in pairs], dtype=np.int64),
    )
    unknown: list[Variable] = [item for item, index in options.items() if index is None]
    unknown += [place for place, pair in places.items() if pair is None]
    return part, tuple(unknown)


def _sum(says: str, columns: Ints, limit: float) -> Row:
    return Row(says, columns, np.ones(len(columns)), limit)


def _merged(says: str, columns: Ints, amounts: Floats, limit: float) -> Row:
    """Return a row in which a variable that was named twice has the sum of its coefficients."""
    distinct, inverse = np.unique(columns, return_inverse=True)
    return Row(says, distinct, np.bincount(inverse, weights=amounts).astype(np.float64), limit)


def _scaled(row: Row) -> Row:
    """Return the same row with coefficients that a solver can tell apart (memory is in bytes)."""
    largest = float(np.abs(row.coefficients).max(initial=0.0))
    if largest <= _LARGE:
        return row
    return Row(row.says, row.columns, row.coefficients / largest, row.limit / largest)


def _slot(problem: Problem, slot: int) -> str:
    cluster, kind, device = problem.slots[slot]
    return f"{kind} {device} of cluster {problem.clusters[cluster]}".replace("  ", " ")


def _where(problem: Problem, slot: int) -> str:
    cluster, kind, device = problem.slots[slot]
    return f"{device or kind} on cluster {problem.clusters[cluster]}"


def _by_cluster(problem: Problem, task: int) -> Iterator[tuple[int, Ints]]:
    members = problem.places_of(task)
    for cluster, positions in grouped(problem.places.cluster[members]):
        yield cluster, len(problem.options) + members[positions]


def _columns(problem: Problem, names: Iterable[str]) -> dict[str, dict[int, Ints]]:
    """Return, of the names that are tasks, the variables by cluster."""
    found = {name: problem.task_index.get(name) for name in dict.fromkeys(names)}
    return {
        name: dict(_by_cluster(problem, task)) for name, task in found.items() if task is not None
    }


def _apart(problem: Problem) -> list[tuple[str, ...]]:
    """Return sets of names of which at most one may run on a cluster."""
    users: dict[tuple[str, ...], set[str]] = {}
    for task in problem.tasks:
        if task.apart:
            users.setdefault(task.apart, set()).add(task.name)
    found: set[tuple[str, ...]] = set()
    for wanted, by in users.items():
        present = problem.task_index.keys() & set(wanted)
        if present == by:
            found.add(tuple(sorted(by)))
        else:
            found |= {(min(a, b), max(a, b)) for a in by for b in present if a != b}
    return sorted(found)


def _listed(names: Sequence[str], last: str) -> str:
    shown = [*names[:_SHOWN], *([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])]
    return f" {last} ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def _spreads(problem: Problem) -> dict[tuple[str, int, str], list[int]]:
    found: dict[tuple[str, int, str], list[int]] = {}
    for index, task in enumerate(problem.tasks):
        for key, most, group in task.spread:
            name = f"group {group}" if group else f"workload {task.name}"
            found.setdefault((key, most, name), []).append(index)
    return found


def _coded(values: tuple[str, ...]) -> tuple[Ints, list[str]]:
    distinct = sorted(set(values))
    number = {value: code for code, value in enumerate(distinct)}
    return np.array([number[value] for value in values], dtype=np.int64), distinct
