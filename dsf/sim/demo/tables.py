"""What the demo observes, as plain values, and the tables that show it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dsf.api.scoring.placement_scores import ByDimension, by_score
from dsf.kube.port import Object

SHOWN_DIMENSIONS = 8

OptimizeAnswer = Mapping[str, Any]
"""The JSON answer of POST /optimize."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be shown: a title, its columns, and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PolicyState:
    """A replicated policy and its compliance."""

    cluster: str
    policy: str
    compliant: str


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """A delivered workload."""

    workload: str
    cluster: str
    delivered: bool


def score_tables(scores: Iterable[Object], clusters: Sequence[str]) -> list[Table]:
    """Return one table per score: dimensions by managed cluster."""
    return [
        Table(name, ("dimension", *clusters), tuple(_score_rows(dimensions, clusters)))
        for name, dimensions in by_score(scores).items()
    ]


def _score_rows(dimensions: ByDimension, clusters: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for dimension, values in islice(dimensions.items(), SHOWN_DIMENSIONS):
        yield (dimension, *(str(values.get(cluster, "-")) for cluster in clusters))
    left = len(dimensions) - SHOWN_DIMENSIONS
    if left > 0:
        yield (f"({left} more)", *("" for _ in clusters))


def plan_tables(answer: OptimizeAnswer) -> list[Table]:
    """Return the tables of a plan: the policy of each cluster, the place of each workload."""
    return [
        Table("", ("cluster", "policy"), tuple(sorted(answer["policies"].items()))),
        Table(
            "",
            ("workload", "cluster", "device", "score"),
            tuple(
                (item["workload"], item["cluster"], item["device"], format(item["score"], "g"))
                for item in answer["placements"]
            ),
        ),
    ]


def policy_states(replicas: Iterable[Object]) -> list[PolicyState]:
    """Return the compliance of replicated policies."""
    return sorted(
        (
            PolicyState(
                obj["metadata"]["namespace"],
                obj["metadata"]["name"],
                (obj.get("status") or {}).get("compliant") or "Pending",
            )
            for obj in replicas
        ),
        key=lambda state: (state.cluster, state.policy),
    )


def policy_table(states: Iterable[PolicyState], claims: Mapping[str, str]) -> Table:
    """Return the table of compliance and of the claims that follow from it."""
    return Table(
        "",
        ("cluster", "policy", "compliant", "policy-watcher-claim"),
        tuple(
            (state.cluster, state.policy, state.compliant, claims.get(state.cluster, "-"))
            for state in states
        ),
    )


def placement_table(placements: Iterable[Object]) -> Table:
    """Return the table of Placements as `kubectl get placements` shows them."""
    rows = []
    for obj in sorted(placements, key=lambda item: str(item["metadata"]["name"])):
        status = obj.get("status") or {}
        condition: Mapping[str, str] = next(iter(status.get("conditions") or []), {})
        rows.append(
            (
                obj["metadata"]["name"],
                condition.get("status", "-"),
                condition.get("reason", "-"),
                str(status.get("numberOfSelectedClusters", "-")),
            )
        )
    return Table("", ("placement", "succeeded", "reason", "clusters"), tuple(rows))


def workload_table(states: Iterable[WorkloadState]) -> Table:
    """Return the table of delivered workloads."""
    return Table(
        "",
        ("workload", "cluster", "running there"),
        tuple((s.workload, s.cluster, "yes" if s.delivered else "no") for s in states),
    )


def comparison_table(answers: Mapping[str, OptimizeAnswer]) -> Table:
    """Return the results side by side, a row for each cluster."""
    return Table(
        "",
        ("preference", "status", "objective", "cluster", "policy", "workloads"),
        tuple(
            (
                name,
                str(answer["status"]),
                format(answer["objective_value"], "g"),
                cluster,
                policy,
                ", ".join(p["workload"] for p in answer["placements"] if p["cluster"] == cluster),
            )
            for name, answer in answers.items()
            for cluster, policy in sorted(answer["policies"].items())
        ),
    )
