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

from optimizer.domain.arrays import Floats, Ints, grouped, members_by_key
from optimizer.domain.solution import Assignment, Decision, Variable
from optimizer.model.nodes.node_fit import NodeFit
from optimizer.model.parameters import ProblemWorkload, largest_supplies
from optimizer.model.problem import Problem

TOLERANCE = 5e-6
"""By how much a row may be exceeded, relative to its largest coefficient: solvers are inexact."""

_LARGE = 1e6
"""Coefficient above which a row is scaled: solvers' tolerances are absolute."""

_SHOWN = 5
"""Names that a message lists before it says how many more there are."""

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

    @property
    def tolerance(self) -> float:
        """By how much the sum may exceed the limit."""
        return TOLERANCE * max(1.0, float(np.abs(self.coefficients).max(initial=0.0)))

    def holds(self, activity: float) -> bool:
        """Tell whether this sum of coefficient x variable is allowed."""
        return activity <= self.limit or activity <= self.limit + self.tolerance


Rule = Callable[[Problem], Iterator[Row]]


def one_policy_per_pool(problem: Problem) -> Iterator[Row]:
    """At most one of the candidate policies of a cluster and pool is enforced."""
    for (cluster, pool), columns in problem.pools.items():
        where = f"pool {pool} of cluster" if pool else "cluster"
        says = f"{where} {problem.clusters[cluster]} enforces one policy"
        yield _sum(says, np.array(columns), 1.0)


def capacity(problem: Problem) -> Iterator[Row]:
    """Workloads on a resource take at most its base and the supply of enforced policies."""
    demand, supply = problem.demand, problem.supply
    supplied = dict(grouped(supply.resource))
    for resource, uses in grouped(demand.resource):
        given = supplied.get(resource, _NONE)
        columns = np.concatenate([demand.column[uses], supply.column[given]])
        amounts = np.concatenate([demand.amount[uses], -supply.amount[given]])
        says = f"{_resource(problem, resource)} suffices"
        yield _scaled(_merged(says, columns, amounts, float(problem.base[resource])))


def supplied(problem: Problem) -> Iterator[Row]:
    """A workload runs only on a resource that has a base or is supplied by an enforced policy.

    Where only one pool supplies the resource, the policy has to supply enough alone. `capacity`
    implies that for integral decisions; stated per assignment it makes the relaxation tight.
    """
    assignments, first = problem.assignments, len(problem.policies)
    serving = dict(grouped(problem.supply.resource))
    for resource, members in grouped(assignments.resource):
        uses = serving.get(resource, _NONE)
        policies, amounts = problem.supply.column[uses], problem.supply.amount[uses]
        alone = len({problem.policies[policy].pool for policy in policies.tolist()}) <= 1
        for assignment in members.tolist():
            workload = problem.workloads[assignments.workload[assignment]]
            needed = workload.amount - problem.base[resource]
            if needed <= 0 < problem.base[resource]:
                continue
            enough = policies[amounts >= needed] if alone else policies
            says = f"workload {workload.name} has {_where(problem, resource)}"
            columns = np.concatenate([[first + assignment], enough])
            yield Row(says, columns, np.concatenate([[1.0], np.full(len(enough), -1.0)]), 0.0)


def once_per_cluster(problem: Problem) -> Iterator[Row]:
    """A workload of several replicas runs at most once on a cluster, as one ManifestWork.

    With one replica, `replicas` implies it.
    """
    for index, workload in enumerate(problem.workloads):
        for cluster, columns in _by_cluster(problem, index) if workload.replicas > 1 else ():
            if len(columns) > 1:
                says = f"workload {workload.name} runs once on cluster {problem.clusters[cluster]}"
                yield _sum(says, columns, 1.0)


def workload_affinity(problem: Problem) -> Iterator[Row]:
    """A workload runs only where another of each set that its affinity names runs too."""
    users = [
        (workload.name, wanted)
        for workload in problem.workloads
        for wanted in workload.workload_affinity
    ]
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


def workload_anti_affinity(problem: Problem) -> Iterator[Row]:
    """A workload never runs on the same cluster as one to which it has an anti-affinity.

    One row covers a set of workloads that all exclude each other.
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


def node_fit(problem: Problem) -> Iterator[Row]:
    """Every Pod that starts finds a node of its cluster, on whatever nodes the others start.

    A workload p with the loads l_w of others, of which p allows `most`, has the row

        sum_w l_w y_w + (M - most) y_p <= M

    where M bounds the loads by their sum and by capacity. Where the nodes are those of an enforced
    policy, its variable is one more indicator.
    """
    assignments, first = problem.assignments, len(problem.policies)
    for cluster, members in grouped(assignments.cluster) if problem.nodes else ():
        candidates = [
            (problem.workloads[workload], first + members[own])
            for workload, own in grouped(assignments.workload[members])
        ]
        for policy in (None, *problem.policies_on[cluster]):
            yield from _node_rows(problem, cluster, policy, candidates)


def _node_rows(
    problem: Problem,
    cluster: int,
    policy: int | None,
    candidates: Sequence[tuple[ProblemWorkload, Ints]],
) -> Iterable[Row]:
    """Yield the rows of the workloads that may run on a cluster, each with its variables there."""
    nodes = problem.nodes.get(cluster) if policy is None else problem.policies[policy].nodes
    if nodes is None:
        return
    fit, asked = NodeFit(nodes, cluster, [item for item, _ in candidates]), problem.node_rows
    for at, (item, own) in enumerate(candidates):
        if asked is not None and (item.name, problem.clusters[cluster]) not in asked:
            continue
        for loads, most, sought, _ in fit.conditions(at):
            bound, beside = _load_bounds(problem, cluster, candidates, at, loads)
            if most >= beside:
                continue
            others = [candidates[one][1] for one in np.flatnonzero(loads).tolist()]
            repeated = np.repeat(loads[loads > 0], [len(columns) for columns in others])
            indicators = own if policy is None else np.append(own, policy)
            columns = np.concatenate([*others, indicators])
            coefficients = np.append(repeated, np.full(len(indicators), bound - most))
            says = f"a Pod of workload {item.name} finds {sought} on cluster"
            limit = bound + (bound - most) * (len(indicators) - len(own))
            yield _scaled(Row(f"{says} {problem.clusters[cluster]}", columns, coefficients, limit))


def _load_bounds(
    problem: Problem,
    cluster: int,
    candidates: Sequence[tuple[ProblemWorkload, Ints]],
    at: int,
    loads: Floats,
) -> tuple[float, float]:
    """Return the most that loads can sum to by capacity, and beside one of the candidates."""
    total, workload = float(loads.sum()), candidates[at][0]
    loaded = [candidates[one][0] for one in np.flatnonzero(loads).tolist()]
    kinds = {item.kind for item in loaded}
    if len(kinds) != 1 or not all(item.amount for item in loaded):
        return total, total
    kind = kinds.pop()
    ratio = max(loads[loads > 0] / np.array([item.amount for item in loaded]))
    enforced = largest_supplies(problem.policies[item] for item in problem.policies_on[cluster])
    supply = sum(
        problem.base[item]
        for item in problem.resources_on[cluster]
        if problem.resources[item].kind == kind
    )
    supply += sum(much for item, much in enforced if problem.resources[item].kind == kind)
    used = workload.amount if workload.kind == kind else 0.0
    return min(total, float(ratio * supply)), min(total, float(ratio * (supply - used)))


def replicas(problem: Problem) -> Iterator[Row]:
    """A workload runs on at most as many clusters as it wants to."""
    first = len(problem.policies)
    for index, workload in enumerate(problem.workloads):
        members = problem.assignments_of(index)
        often = "once" if workload.replicas == 1 else f"on {workload.replicas} clusters at most"
        yield _sum(
            f"workload {workload.name} runs {often}", first + members, float(workload.replicas)
        )


def spread(problem: Problem) -> Iterator[Row]:
    """Workloads of a spread have at most `most` assignments per value of a cluster label."""
    for (key, most, group), workloads in _spreads(problem).items():
        members = np.concatenate([problem.assignments_of(workload) for workload in workloads])
        codes, values = _coded(problem.labels[key])
        for code, positions in grouped(codes[problem.assignments.cluster[members]]):
            says = f"at most {most} of {group} where {key} is {values[code] or 'not set'}"
            yield _sum(says, len(problem.policies) + members[positions], float(most))


def limits(problem: Problem) -> Iterator[Row]:
    """What assignments and policies use together stays within each fleet-wide limit."""
    for limit in problem.limits:
        assignments = problem.assignments
        amounts = np.concatenate(
            [limit.policies, limit.used(assignments.workload, assignments.resource)]
        )
        columns = np.nonzero(amounts)[0]
        yield _scaled(
            Row(f"{limit.name} is at most {limit.most:g}", columns, amounts[columns], limit.most)
        )


LOCAL_RULES: tuple[Rule, ...] = (
    one_policy_per_pool,
    capacity,
    supplied,
    once_per_cluster,
    workload_affinity,
    workload_anti_affinity,
    node_fit,
)
"""Every row speaks of the variables of one cluster."""

COUPLING_RULES: tuple[Rule, ...] = (replicas, spread, limits)
"""Rows speak of several clusters; their coefficients are never below 0."""

RULES = (*LOCAL_RULES, *COUPLING_RULES)

BLOCK_RULES: tuple[Rule, ...] = (
    one_policy_per_pool,
    capacity,
    supplied,
    once_per_cluster,
    replicas,
)
"""Rules that an allocation, and a block of the decomposition, keeps without rows."""


def linking_rows(problem: Problem) -> list[Row]:
    """Return the rows of all rules but BLOCK_RULES."""
    return [row for rule in RULES if rule not in BLOCK_RULES for row in rule(problem)]


def violations(
    problem: Problem, decision: Decision, rules: Iterable[Rule] = RULES
) -> tuple[str, ...]:
    """Return in words which rules a decision breaks, and which variables are not candidates."""
    part, unknown = chosen_part(problem, decision)
    broken = [
        row.says
        for rule in rules
        for row in rule(part)
        if not row.holds(float(row.coefficients.sum()))
    ]
    return (*map(_not_a_candidate, unknown), *broken)


def chosen_part(problem: Problem, decision: Decision) -> tuple[Problem, tuple[Variable, ...]]:
    """Return the problem of the variables that a decision sets, and those that it lacks."""
    policies = {item: problem.policy_index.get(item) for item in decision.policies}
    assignments = {assignment: problem.indexes(assignment) for assignment in decision.assignments}
    pairs = [pair for pair in assignments.values() if pair is not None]
    part = problem.part(
        sorted(policy for policy in policies.values() if policy is not None),
        np.array([workload for workload, _ in pairs], dtype=np.int64),
        np.array([resource for _, resource in pairs], dtype=np.int64),
    )
    unknown: list[Variable] = [item for item, index in policies.items() if index is None]
    unknown += [assignment for assignment, pair in assignments.items() if pair is None]
    return part, tuple(unknown)


def _not_a_candidate(variable: Variable) -> str:
    if isinstance(variable, Assignment):
        device = f"{variable.device} of " if variable.device else ""
        return f"workload {variable.workload} can't run on {device}cluster {variable.cluster}"
    return f"policy {variable.policy} is not a candidate of cluster {variable.cluster}"


def _sum(says: str, columns: Ints, limit: float) -> Row:
    return Row(says, columns, np.ones(len(columns)), limit)


def _merged(says: str, columns: Ints, amounts: Floats, limit: float) -> Row:
    """Return a row with one entry per variable, the sum of its coefficients."""
    distinct, inverse = np.unique(columns, return_inverse=True)
    return Row(says, distinct, np.bincount(inverse, weights=amounts).astype(np.float64), limit)


def _scaled(row: Row) -> Row:
    """Return the row with a largest coefficient of at most 1 if it is large, as of bytes."""
    largest = float(np.abs(row.coefficients).max(initial=0.0))
    if largest <= _LARGE:
        return row
    return Row(row.says, row.columns, row.coefficients / largest, row.limit / largest)


def _resource(problem: Problem, resource: int) -> str:
    cluster, kind, device = problem.resources[resource]
    return f"{kind} {device} of cluster {problem.clusters[cluster]}".replace("  ", " ")


def _where(problem: Problem, resource: int) -> str:
    cluster, kind, device = problem.resources[resource]
    return f"{device or kind} on cluster {problem.clusters[cluster]}"


def _by_cluster(problem: Problem, workload: int) -> Iterator[tuple[int, Ints]]:
    members = problem.assignments_of(workload)
    for cluster, positions in grouped(problem.assignments.cluster[members]):
        yield cluster, len(problem.policies) + members[positions]


def _columns(problem: Problem, names: Iterable[str]) -> dict[str, dict[int, Ints]]:
    """Return, of the names that are workloads, the variables by cluster."""
    found = {name: problem.workload_index.get(name) for name in dict.fromkeys(names)}
    return {
        name: dict(_by_cluster(problem, workload))
        for name, workload in found.items()
        if workload is not None
    }


def _apart(problem: Problem) -> list[tuple[str, ...]]:
    """Return sets of names; at most one of each set may run on a cluster."""
    users: dict[tuple[str, ...], set[str]] = {}
    for workload in problem.workloads:
        if workload.workload_anti_affinity:
            users.setdefault(workload.workload_anti_affinity, set()).add(workload.name)
    found: set[tuple[str, ...]] = set()
    for wanted, by in users.items():
        present = problem.workload_index.keys() & set(wanted)
        if present == by:
            found.add(tuple(sorted(by)))
        else:
            found |= {(min(a, b), max(a, b)) for a in by for b in present if a != b}
    return sorted(found)


def _listed(names: Sequence[str], last: str) -> str:
    shown = [
        *map(str, names[:_SHOWN]),
        *([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []),
    ]
    return f" {last} ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def _spreads(problem: Problem) -> dict[tuple[str, int, str], list[int]]:
    return members_by_key(
        ((key, most, f"group {group}" if group else f"workload {workload.name}"), index)
        for index, workload in enumerate(problem.workloads)
        for key, most, group in workload.spread
    )


def _coded(values: tuple[str, ...]) -> tuple[Ints, list[str]]:
    distinct = sorted(set(values))
    number = {value: code for code, value in enumerate(distinct)}
    return np.array([number[value] for value in values], dtype=np.int64), distinct
