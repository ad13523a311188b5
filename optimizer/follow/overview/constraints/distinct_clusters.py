"""Whether clusters are enough for workloads that share none, or only some: by augmenting paths.

H. W. Kuhn, The Hungarian method for the assignment problem, Naval Research Logistics 2, 1955.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

MOST_REPLICAS = 500
"""Replicas that are counted: a path may pass through each, and is as deep as it is long."""


def enough_clusters(
    replicas: Mapping[str, int],
    may: Mapping[str, Collection[str]],
    most: Mapping[str, int],
    otherwise: int,
) -> bool:
    """Tell whether each workload has as many clusters as it has replicas, of those that it may use.

    A cluster takes `most` workloads, or `otherwise`. True also where there are too many replicas.
    """
    users = defaultdict[str, list[str]](list)

    def placed(name: str, seen: set[str]) -> bool:
        for at in may[name]:
            there = users[at]
            if at in seen or name in there:
                continue
            seen.add(at)
            if len(there) < most.get(at, otherwise):
                there.append(name)
                return True
            for other in tuple(there):
                if placed(other, seen):
                    there[there.index(other)] = name
                    return True
        return False

    if sum(replicas.values()) > MOST_REPLICAS:
        return True
    room = sum(most.get(at, otherwise) for at in set[str]().union(*map(may.__getitem__, replicas)))
    if room < sum(replicas.values()):
        return False
    return all(placed(name, set()) for name, count in replicas.items() for _ in range(count))


def kept_apart(apart: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Yield for each workload others of which no two may share a cluster with it, or each other.

    Only once for workloads that are kept apart from each other and from the same ones.
    """
    near = {name: {*others} for name, others in apart.items()}
    for name, others in apart.items():
        for other in near.keys() & others:
            near[other].add(name)
    for start in {frozenset((name, *others)): name for name, others in near.items()}.values():
        found = [start]
        for name in apart[start]:
            if all(name in near.get(one, ()) or one in near.get(name, ()) for one in found):
                found.append(name)
        yield found
