"""One plan for Workloads that wait: an assignment to worker clusters, by an integer program; pure.

Workloads that request the same and are worth the same everywhere are one kind, and one integer says
how many of a kind go to a cluster. Their worth is maximised, subject to how many there are of each
kind and to what is free on each cluster: a generalised assignment problem.

Source: S. Martello and P. Toth, Knapsack Problems, 1990, chapter 7.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dsf.runtime.reconcile.reflector import Key


class Contender(NamedTuple):
    """A Workload of a plan: what it requests, and its worth on each cluster where it fits."""

    requests: Mapping[str, float]
    worths: Mapping[str, float]


Row = Mapping[int, float]
"""Coefficients by column; their sum is at most 1."""

Solve = Callable[
    [Sequence[float], Sequence[int], Sequence[Row]], tuple[Sequence[float], float] | None
]
"""Maximises an objective over integers from 0 to their upper bounds, subject to rows.

Returns them and a bound of the objective; None without a solution.
"""


def assigned(
    contenders: Mapping[Key, Contender], free: Callable[[str, str], float], solve: Solve
) -> tuple[dict[Key, str], float] | None:
    """Return the cluster of each Workload that gets one, and a bound on the worth of all.

    None if the solver finds nothing. `free` returns how much of a resource is left on a cluster.
    The first Workloads of a kind get its better clusters.
    """
    kinds = defaultdict[object, list[Key]](list)
    for at, each in contenders.items():
        kinds[frozenset(each.requests.items()), frozenset(each.worths.items())].append(at)
    columns = list[tuple[list[Key], str, float]]()
    rows = defaultdict[object, dict[int, float]](dict)
    for kind, keys in enumerate(kinds.values()):
        requests, worths = contenders[keys[0]]
        for cluster, worth in sorted(worths.items(), key=lambda item: -item[1]):
            rows[kind][len(columns)] = 1 / len(keys)
            for resource, amount in requests.items():
                if amount and (left := free(cluster, resource)) < math.inf:
                    rows[cluster, resource][len(columns)] = amount / left
            columns.append((keys, cluster, worth))
    objective, upper = [each[2] for each in columns], [len(each[0]) for each in columns]
    found = solve(objective, upper, [*rows.values()])
    if found is None:
        return None
    chosen = dict[Key, str]()
    for (keys, cluster, _), value in zip(columns, found[0], strict=True):
        chosen |= dict.fromkeys([keys.pop(0) for _ in range(round(value))], cluster)
    return chosen, found[1]
