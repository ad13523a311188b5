"""What the demo observes, as plain values, and the tables that show it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsf.api.placement_scores import by_score
from dsf.kube.port import Object

Answer = Mapping[str, Any]
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
        Table(
            name,
            ("dimension", *clusters),
            tuple(
                (dimension, *(str(values.get(cluster, "-")) for cluster in clusters))
                for dimension, values in dimensions.items()
            ),
        )
        for name, dimensions in by_score(scores).items()
    ]


def plan_tables(answer: Answer) -> list[Table]:
    """Return the tables of a plan: the policy of each cluster, the place of each workload."""
    return [
        Table("Policies", ("cluster", "policy"), tuple(sorted(answer["policies"].items()))),
        Table(
            "Workloads",
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
        "Compliance",
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
    return Table("Placements", ("name", "succeeded", "reason", "selected clusters"), tuple(rows))


def workload_table(states: Iterable[WorkloadState]) -> Table:
    """Return the table of delivered workloads."""
    return Table(
        "Delivered",
        ("workload", "cluster", "running there"),
        tuple((s.workload, s.cluster, "yes" if s.delivered else "no") for s in states),
    )


def comparison(answers: Mapping[str, Answer]) -> Table:
    """Return the two results side by side."""
    return Table(
        "Results",
        ("preference", "status", "objective", "policies", "workloads"),
        tuple(
            (
                name,
                str(answer["status"]),
                format(answer["objective_value"], "g"),
                ", ".join(f"{cluster}: {p}" for cluster, p in sorted(answer["policies"].items())),
                ", ".join(f"{p['workload']} on {p['cluster']}" for p in answer["placements"]),
            )
            for name, answer in answers.items()
        ),
    )
