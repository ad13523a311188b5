"""The Pods of workloads, with the quanta in which a node's amounts are counted for each."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from optimizer.domain.fleet import Fleet
from optimizer.domain.nodes import PODS, Amounts, PodGroup
from optimizer.model.parameters import PodDemand, common_divisor

SAME = 1e-9
"""Amounts that differ by less, relative to the larger, differ through rounding alone."""

_HALVES = 7
"""Quanta that are tried: a request, and its halves, quarters and so on."""


def pod_demands(fleet: Fleet) -> Mapping[str, tuple[PodDemand, ...]]:
    """Return the Pods of each workload with the quanta of their amounts.

    Quanta depend on all Pods of the fleet, so that a condition is the same for all decisions.
    """
    every = [pod for item in fleet.workloads for pod in item.pods]
    most = dict[str, float]()
    for group in (group for cluster in fleet.clusters for group in cluster.nodes or ()):
        for name, amount in group.free.items():
            most[name] = max(most.get(name, 0.0), amount)
    quanta = _Quanta([(_requests(pod), _rank(pod), pod.count or 1) for pod in every], most)
    demands = {pod: _demand(pod, quanta) for pod in dict.fromkeys(every)}
    return {item.name: tuple(demands[pod] for pod in item.pods) for item in fleet.workloads}


def _demand(pod: PodGroup, quanta: "_Quanta") -> PodDemand:
    requests, rank = _requests(pod), _rank(pod)
    return PodDemand(
        pod.count,
        tuple(sorted(requests.items())),
        (quanta.of(requests, ()), quanta.of(requests, rank)),
        rank,
        pod.affinity,
        pod.tolerations,
        pod.per_node,
        pod.claims,
    )


def _requests(pod: PodGroup) -> Amounts:
    return {PODS: 1.0, **{name: float(much) for name, much in pod.requests.items() if much > 0}}


def _rank(pod: PodGroup) -> tuple[float, ...]:
    """Return by what Pods are ordered, the largest first: devices, memory, cpu."""
    devices = sum(amount for name, amount in pod.requests.items() if "/" in name)
    return (
        float(pod.per_node),
        devices,
        pod.requests.get("memory", 0.0),
        pod.requests.get("cpu", 0.0),
    )


class _Quanta:
    """Chooses the quantum of each request: the one with which all others load a node least."""

    def __init__(
        self, pods: Sequence[tuple[Amounts, tuple[float, ...], int]], most: Amounts
    ) -> None:
        self._pods, self._most = pods, most
        self._chosen = dict[tuple[str, float, tuple[float, ...]], float]()

    def of(self, requests: Amounts, rank: tuple[float, ...]) -> tuple[tuple[str, float], ...]:
        """Return the quantum of each request among the Pods of at least a rank."""
        return tuple((name, self._of(name, size, rank)) for name, size in requests.items())

    def _of(self, name: str, size: float, rank: tuple[float, ...]) -> float:
        key = name, size, rank
        if key not in self._chosen:
            among = Counter[float]()
            for asked, other, count in self._pods:
                if other >= rank and asked.get(name):
                    among[asked[name]] += count
            self._chosen[key] = self._best(size, among, self._most.get(name, 0.0))
        return self._chosen[key]

    def _best(self, size: float, among: Mapping[float, int], most: float) -> float:
        exact = common_divisor((size, *among))
        amounts, counts = np.array([*among]), np.array([*among.values()])
        tried = [size / 2**halves for halves in range(_HALVES)] + ([exact] if exact else [])
        loads = [
            float(np.ceil(amounts / quantum - SAME) @ counts)
            * quantum
            / (max(most, size) - size + quantum)
            for quantum in tried
        ]
        return float(tried[int(np.argmin(loads))])
