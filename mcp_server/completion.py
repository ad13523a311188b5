"""Completes arguments of prompts and of resource templates with names that the hub has."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mcp_types import Completion

from dsf.kube.errors import KubeError
from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.access.review_cache import ReviewCache
from optimizer.operations.fleet import fleet_facts
from optimizer.wire.request_problem import RequestProblem

if TYPE_CHECKING:
    from dsf.kube.access_reviews import UserInfo
    from optimizer.overview.fleet_facts import FleetFacts

MOST_VALUES = 100
"""Values of one completion. Source: MCP, completion/complete."""

NAMES_SECONDS = 5.0
"""How long names are kept: a person types a name within it, and a client asks at each key."""

MOST_NAMES = 64
"""Users and namespaces whose names are kept. Those of 1,000 clusters with 10 scores take 0.5 MB."""


class CompletedNames(NamedTuple):
    """The names that a user may see, by what they name."""

    clusters: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    scorers: tuple[str, ...] = ()
    scores: Mapping[str, frozenset[str]] = {}
    """The clusters that have a score, by its name."""


class NameCompletion:
    """Completes arguments, and reads the fleet of a user at most once in NAMES_SECONDS."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._names: ReviewCache[tuple[UserInfo | None, str], CompletedNames] = ReviewCache(
            clock, seconds=NAMES_SECONDS, entries=MOST_NAMES
        )

    async def completed(
        self, caller: AuthorizedOptimizer, argument: str, typed: str, known: Mapping[str, str]
    ) -> Completion:
        """Return the names that contain what was typed, those that begin with it first.

        Nothing is proposed if the caller may not see the names, or the hub can't be read.
        """
        namespace = known.get("namespace") or "default"
        try:
            names = await self._names.get(
                (caller.user, namespace), lambda: _names_seen_by(caller, namespace)
            )
        except KubeError:
            return Completion(values=[])
        wanted = typed.lower()
        found = sorted(
            (name for name in _values(names, namespace, argument, known) if wanted in name.lower()),
            key=lambda name: (not name.lower().startswith(wanted), name),
        )
        return Completion(
            values=found[:MOST_VALUES], total=len(found), has_more=len(found) > MOST_VALUES
        )


async def _names_seen_by(caller: AuthorizedOptimizer, namespace: str) -> CompletedNames:
    facts: FleetFacts | RequestProblem = await fleet_facts(caller, namespace)
    if isinstance(facts, RequestProblem):
        return CompletedNames()
    return CompletedNames(
        clusters=tuple(map(str, facts.hub.clusters)),
        workloads=tuple(map(str, facts.workloads)),
        scorers=tuple(str(item.name) for item in facts.scorers),
        scores={
            str(name): frozenset(str(row.cluster) for row in rows)
            for name, rows in facts.scores.items()
        },
    )


def _values(
    names: CompletedNames, namespace: str, argument: str, known: Mapping[str, str]
) -> Iterable[str]:
    match argument:
        case "cluster":
            return names.clusters
        case "workload":
            return names.workloads
        case "scorer":
            return names.scorers
        case "name" | "goal":
            cluster = known.get("cluster")
            return (name for name, has in names.scores.items() if not cluster or cluster in has)
        case "namespace":
            return (namespace,) if names.clusters else ()
        case _:
            return ()
