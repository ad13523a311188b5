"""What nodes no longer have of what a decision needs, as the newest inventories say.

Nodes are no part of a plan's digest or basis, because what runs there changes all the time; only a
change that makes the decision impossible makes its plan out of date.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dsf.api.untrusted_text import UntrustedName, joined
from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet
from optimizer.domain.solution import Decision, PolicyEnforcement
from optimizer.model.formulate import decided_problem
from optimizer.model.rules import capacity, chosen_part, node_fit, supplied, violations
from optimizer.wire.request_problem import FieldProblem

MAX_BROKEN = 3
"""Rules that one message names: a missing device breaks its own and that of each workload on it."""

Enforced = Mapping[str, tuple[CandidatePolicy, ...]]
"""The policies that a decision enforces, by cluster."""


def enforced_candidates(fleet: Fleet, decision: Decision) -> Enforced:
    """Return the candidates that a decision enforces on clusters whose nodes are known."""
    chosen = set(decision.policies)
    return {
        cluster.name: tuple(
            item
            for item in cluster.candidates
            if PolicyEnforcement(cluster.name, item.policy) in chosen
        )
        for cluster in fleet.clusters
        if cluster.nodes is not None
    }


def lacking_nodes(fleet: Fleet, decision: Decision, enforced: Enforced) -> Iterator[FieldProblem]:
    """Yield what a decision needs of each cluster and its nodes do not have in this fleet.

    `enforced`: as it was planned; what the fleet says of these policies now wins.
    """
    for item in fleet.workloads:
        for place in decision.assignments:
            if place.workload == item.name and place.cluster in item.unseen:
                yield FieldProblem(
                    f"managed cluster {UntrustedName(place.cluster)}",
                    f"its inventory is too old to start workload {UntrustedName(item.name)}",
                )
    for cluster in fleet.clusters:
        if cluster.nodes is None:
            continue
        there = Decision(
            tuple(item for item in decision.policies if item.cluster == cluster.name),
            tuple(item for item in decision.assignments if item.cluster == cluster.name),
        )
        known = replace(cluster, candidates=_candidates(cluster, enforced.get(cluster.name, ())))
        problem = decided_problem(replace(fleet, clusters=(known,), limits=()), there)
        if broken := violations(problem, there, (capacity, supplied, node_fit)):
            lacking = len(chosen_part(problem, there)[1])
            prefixes = ["", "not true: "]
            said = joined(
                (f"{prefixes[at >= lacking]}{rule}" for at, rule in enumerate(broken)),
                MAX_BROKEN,
                separator="; ",
            )
            yield FieldProblem(f"managed cluster {UntrustedName(cluster.name)}", said)


def _candidates(
    cluster: Cluster, enforced: Sequence[CandidatePolicy]
) -> tuple[CandidatePolicy, ...]:
    known = {item.policy: item for item in cluster.candidates}
    return tuple(known.get(item.policy, item) for item in enforced)
