"""Prompts: the phrases of the guide, the ways of working that need several tools, and arguments.

Arguments of prompts and of resource templates are completed with names that the hub has.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastmcp.server.providers import LocalProvider
from mcp_types import Completion
from pydantic import Field

from dsf.api.untrusted_text import quoted
from dsf.kube.errors import KubeError
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.access.delegated_auth import ReviewCache
from optimizer.operations.fleet import fleet_facts
from optimizer.wire.request_problem import RequestProblem

if TYPE_CHECKING:
    from dsf.kube.access_reviews import UserInfo
    from optimizer.follow.overview.fleet_facts import FleetFacts


_APPROVE = {
    True: "This server is read-only: say who can apply it, and how.",
    False: "Ask me whether to apply it. Only after my yes call apply_plan with the digest, then"
    " follow_rollout until every workload has landed. Offer rollback if it does not land.",
}

Scorer = Annotated[str, Field(max_length=253, description="Name of the scorer or its score.")]
Workload = Annotated[str, Field(max_length=253, description="Name of the workload.")]
Cluster = Annotated[str, Field(max_length=253, description="Name of the managed cluster.")]
Goal = Annotated[str, Field(max_length=253, description="A score, or words for one.")]


def add_prompts(provider: LocalProvider, *, read_only: bool) -> None:
    """Add the prompts to a server; each has the phrase that it stands for as its title."""
    approve = _APPROVE[read_only]

    @provider.prompt(title="Please get AddonPlacementScores and summarize them")
    def summarize_scores() -> str:
        """Summarize the scores of the fleet."""
        return (
            "Please get the AddonPlacementScores and summarize them: call list_scores. Say for each"
            " score what it means, which direction is better, which cluster is best and worst, and"
            " which scores have expired."
        )

    @provider.prompt(title="Optimize for a goal")
    def optimize(goal: Goal) -> str:
        """Plan for a goal, show the plan, and apply it only after a yes."""
        return _optimize(goal, approve)

    for goal in ("performance", "power consumption"):
        provider.prompt(
            _optimizing_for(goal, approve),
            name=f"optimize_for_{goal.replace(' ', '_')}",
            title=f"Optimize for {goal}",
        )

    @provider.prompt(title="Find out why a scorer does not score")
    def diagnose_scorer(scorer: Scorer) -> str:
        """Follow a scorer from its API to the clusters."""
        return (
            f"Find out why scorer {quoted(scorer)} does not score everywhere: call describe_scorer,"
            " then diagnose with its name. Say on which clusters it fails, the first cause, and the"
            " next step for the scorer's owner and for the administrator."
        )

    @provider.prompt(title="Move a workload, with approval")
    def move_workload(workload: Workload, cluster: Cluster) -> str:
        """Ask what a move costs, show it, and make it only after a yes."""
        return (
            f"Move workload {quoted(workload)} to cluster {quoted(cluster)}. First call"
            " explain_placement for both to learn what the move costs. Then call plan_placement"
            f" with what_if.pin for this workload, and tell me what else moves. {approve}"
        )


def _optimizing_for(goal: str, approve: str) -> Callable[[], str]:
    def optimize() -> str:
        """Plan, show the plan, and apply it only after a yes."""
        return _optimize(goal, approve)

    return optimize


def _optimize(goal: str, approve: str) -> str:
    return (
        f"Optimize for {quoted(goal)}. Call plan_placement with this objective; if no score is"
        " named so, list_scores describes the scores. Tell me by workload what moves, what it"
        f" gains, and what is uncovered meanwhile. {approve}"
    )


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
