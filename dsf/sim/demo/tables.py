"""The tables that the demo prints, made of Kubernetes objects and of answers of POST /optimize."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dsf.api.scoring.placement_scores import ByDimension, by_score
from dsf.kube.port import Object

SHOWN_DIMENSIONS = 8
"""Rows of a table of scores; a table then fits a terminal of 24 lines, and the rest is counted."""

OptimizeAnswer = Mapping[str, Any]
"""The JSON answer of POST /optimize."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title (empty for none), columns, and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PolicyState:
    """The compliance of a replicated policy: Compliant, NonCompliant or Pending."""

    cluster: str
    policy: str
    compliant: str


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """A workload's ManifestWork on one cluster, and whether its resources are available there."""

    workload: str
    cluster: str
    delivered: bool


def score_tables(scores: Iterable[Object], clusters: Sequence[str]) -> list[Table]:
    """Return one table for each score: a row for each dimension, a column for each cluster."""
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
    """Return two tables of a plan: the policy of each cluster, the cluster of each workload."""
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
    """Return a table of the compliance of each policy and the claim of its cluster."""
    return Table(
        "",
        ("cluster", "policy", "compliant", "policy-watcher-claim"),
        tuple(
            (state.cluster, state.policy, state.compliant, claims.get(state.cluster, "-"))
            for state in states
        ),
    )


def placement_table(placements: Iterable[Object]) -> Table:
    """Return a table of Placements with the columns of `kubectl get placements`."""
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
    """Return a table of workloads, their clusters, and whether they run there."""
    return Table(
        "",
        ("workload", "cluster", "running there"),
        tuple((s.workload, s.cluster, "yes" if s.delivered else "no") for s in states),
    )


def comparison_table(answers: Mapping[str, OptimizeAnswer]) -> Table:
    """Return a table that compares answers: a row for each preference and cluster."""
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
