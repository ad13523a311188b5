"""The rules of a placement, each a function from problem to linear rows.

The same rows constrain the solver and check a given decision, so every rule can be tested alone
without solving. To add a rule, write a function and put it into RULES.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from optimizer.problem import Problem, serves
from optimizer.solution import Choice, Decision, Place, Variable

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """The sum of coefficient x variable is at most `limit`; `says` is the rule for a person."""

    says: str
    coefficients: Mapping[Variable, float]
    limit: float


Rule = Callable[[Problem], Iterator[Row]]


def one_policy_per_cluster(problem: Problem) -> Iterator[Row]:
    """At most one of a cluster's candidate policies is enforced."""
    by_cluster: dict[str, list[Choice]] = defaultdict(list)
    for choice in problem.supplies:
        by_cluster[choice.cluster].append(choice)
    for cluster, choices in by_cluster.items():
        yield Row(f"cluster {cluster} enforces one policy", dict.fromkeys(choices, 1.0), 1.0)


def one_place_per_workload(problem: Problem) -> Iterator[Row]:
    """A workload runs at most once: the Placement of its MWRS selects one cluster."""
    by_workload: dict[str, list[Place]] = defaultdict(list)
    for place in problem.values:
        by_workload[place.workload].append(place)
    for workload, places in by_workload.items():
        yield Row(f"workload {workload} runs once", dict.fromkeys(places, 1.0), 1.0)


def capacity(problem: Problem) -> Iterator[Row]:
    """The requests on a cluster, kind and device fit what the enforced policy supplies of them."""
    rows: dict[tuple[str, str, str], dict[Variable, float]] = defaultdict(dict)
    for place in problem.values:
        demand = problem.demands[place.workload]
        rows[place.cluster, demand.kind, place.device][place] = float(demand.amount)
    for choice, supply in problem.supplies.items():
        rows[choice.cluster, supply.kind, supply.device][choice] = -float(supply.amount)
    for (cluster, kind, device), coefficients in rows.items():
        yield Row(f"{kind} {device} of cluster {cluster} suffices", coefficients, 0.0)


def supplied(problem: Problem) -> Iterator[Row]:
    """A workload runs only on a device of which the enforced policy supplies enough for it.

    Implied by `capacity` for whole decisions; stated per place it makes the relaxation tight.
    """
    by_cluster: dict[str, list[Choice]] = defaultdict(list)
    for choice in problem.supplies:
        by_cluster[choice.cluster].append(choice)
    for place in problem.values:
        demand = problem.demands[place.workload]
        serving: dict[Variable, float] = {
            choice: -1.0
            for choice in by_cluster[place.cluster]
            if serves(problem.supplies[choice], demand, place.device)
        }
        says = f"workload {place.workload} has {place.device} on cluster {place.cluster}"
        yield Row(says, {place: 1.0, **serving}, 0.0)


RULES: tuple[Rule, ...] = (one_policy_per_cluster, one_place_per_workload, capacity, supplied)


def violations(
    problem: Problem, decision: Decision, rules: Iterable[Rule] = RULES
) -> tuple[str, ...]:
    """Return what a decision breaks, in words; a variable that the problem lacks breaks it too."""
    chosen: tuple[Variable, ...] = (*decision.choices, *decision.places)
    candidates = frozenset(problem.variables)
    unknown = [f"{variable} is no candidate" for variable in chosen if variable not in candidates]
    selected = frozenset(chosen)
    broken = [row.says for rule in rules for row in rule(problem) if not _holds(row, selected)]
    return (*unknown, *broken)


def _holds(row: Row, selected: frozenset[Variable]) -> bool:
    total = sum(value for variable, value in row.coefficients.items() if variable in selected)
    return total <= row.limit + _TOLERANCE
