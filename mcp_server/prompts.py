"""Prompts: the phrases of the guide, and the ways of working that need several tools."""

from collections.abc import Callable
from typing import Annotated, NamedTuple

from fastmcp.server.providers import LocalProvider
from pydantic import Field

from dsf.api.untrusted_text import quoted

_APPROVE = {
    True: "This server is read-only: say who can apply it, and how.",
    False: "Ask me whether to apply it. Only after my yes call apply_plan with the digest, then"
    " follow_rollout until every workload has landed. Offer rollback if it does not land.",
}

Scorer = Annotated[str, Field(max_length=253, description="Name of the scorer or its score.")]
Workload = Annotated[str, Field(max_length=253, description="Name of the workload.")]
Cluster = Annotated[str, Field(max_length=253, description="Name of the managed cluster.")]
Goal = Annotated[str, Field(max_length=253, description="A score, or words for one.")]


class _PromptDefinition(NamedTuple):
    """A prompt: its name, the phrase that it stands for, and how it is written."""

    name: str
    title: str
    write: Callable[..., str]


def add_prompts(provider: LocalProvider, *, read_only: bool) -> None:
    """Add the prompts to a server."""
    approve = _APPROVE[read_only]
    for item in (
        _PromptDefinition(
            "summarize_scores",
            "Please get AddonPlacementScores and summarize them",
            _summarize_scores,
        ),
        _PromptDefinition("optimize", "Optimize for a goal", _optimizing(approve)),
        _PromptDefinition(
            "optimize_for_performance",
            "Optimize for performance",
            _optimizing_for("performance", approve),
        ),
        _PromptDefinition(
            "optimize_for_power_consumption",
            "Optimize for power consumption",
            _optimizing_for("power consumption", approve),
        ),
        _PromptDefinition("diagnose_scorer", "Find out why a scorer does not score", _diagnose),
        _PromptDefinition("move_workload", "Move a workload, with approval", _moving(approve)),
    ):
        provider.prompt(item.write, name=item.name, title=item.title)


def _summarize_scores() -> str:
    """Summarize the scores of the fleet."""
    return (
        "Please get the AddonPlacementScores and summarize them: call list_scores. Say for each"
        " score what it means, which direction is better, which cluster is best and worst, and"
        " which scores have expired."
    )


def _optimizing(approve: str) -> Callable[[Goal], str]:
    def optimize(goal: Goal) -> str:
        """Plan for a goal, show the plan, and apply it only after a yes."""
        return _optimize(goal, approve)

    return optimize


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


def _diagnose(scorer: Scorer) -> str:
    """Follow a scorer from its API to the clusters."""
    return (
        f"Find out why scorer {quoted(scorer)} does not score everywhere: call describe_scorer,"
        " then diagnose with its name. Say on which clusters it fails, the first cause, and the"
        " next step for the scorer's owner and for the administrator."
    )


def _moving(approve: str) -> Callable[[Workload, Cluster], str]:
    def move(workload: Workload, cluster: Cluster) -> str:
        """Ask what a move costs, show it, and make it only after a yes."""
        return (
            f"Move workload {quoted(workload)} to cluster {quoted(cluster)}. First call"
            " explain_placement for both to learn what the move costs. Then call plan_placement"
            f" with what_if.pin for this workload, and tell me what else moves. {approve}"
        )

    return move
