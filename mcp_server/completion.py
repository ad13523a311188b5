"""Completes arguments of prompts and of resource templates with names that the hub has."""

from collections.abc import Iterable, Mapping

from mcp_types import Completion

from dsf.kube.errors import KubeError
from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.overview.fleet_facts import FleetFacts
from optimizer.wire.request_problem import RequestProblem

MOST_VALUES = 100
"""Values of one completion. Source: MCP, completion/complete."""


async def completed(
    caller: AuthorizedOptimizer, argument: str, typed: str, known: Mapping[str, str]
) -> Completion:
    """Return the names that contain what was typed, those that begin with it first.

    Nothing is proposed if the caller may not see the names, or the hub can't be read.
    """
    try:
        facts = await caller.fleet(known.get("namespace") or "default")
    except KubeError:
        return Completion(values=[])
    if isinstance(facts, RequestProblem):
        return Completion(values=[])
    wanted = typed.lower()
    found = sorted(
        (name for name in _names(facts, argument, known) if wanted in name.lower()),
        key=lambda name: (not name.lower().startswith(wanted), name),
    )
    return Completion(
        values=found[:MOST_VALUES], total=len(found), has_more=len(found) > MOST_VALUES
    )


def _names(facts: FleetFacts, argument: str, known: Mapping[str, str]) -> Iterable[str]:
    match argument:
        case "cluster":
            return map(str, facts.hub.clusters)
        case "workload":
            return map(str, facts.workloads)
        case "scorer":
            return (str(item.name) for item in facts.scorers)
        case "name" | "goal":
            cluster = known.get("cluster")
            return (
                name
                for name, rows in facts.scores.items()
                if not cluster or cluster in {row.cluster for row in rows}
            )
        case "namespace":
            return (facts.namespace,)
        case _:
            return ()
