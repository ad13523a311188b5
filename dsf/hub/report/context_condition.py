"""The condition ContextAvailable: whether agents can send a scorer the context it asks for."""

from collections import Counter
from collections.abc import Iterable, Mapping

from dsf.api.conditions import Condition
from dsf.api.invalid_input import InvalidInput
from dsf.api.plural import counted
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.hub.assess.scorer_assessment import ScorerAssessment
from dsf.hub.distribute.audience import ClusterShare
from dsf.hub.report.wording import first_items

CONTEXT_AVAILABLE = "ContextAvailable"


def lacking_keys(summary: ScorerSummary, shares: Iterable[ClusterShare]) -> dict[str, int]:
    """Return the labels and claims that managed clusters lack, and how many lack each.

    A key is `label region` or `claim id.k8s.io`. Clusters that mask the score do not count.
    """
    if summary.context is None or not (summary.context.labels or summary.context.claims):
        return {}
    asked = [f"label {key}" for key in summary.context.labels]
    asked += [f"claim {name}" for name in summary.context.claims]
    clusters, present = 0, Counter[str]()
    for share in shares:
        if summary.score_name in share.masked:
            continue
        clusters += 1
        present.update(f"label {key}" for key, _ in share.labels)
        present.update(f"claim {name}" for name, _ in share.claims)
    return {key: clusters - present[key] for key in asked if present[key] < clusters}


def context_condition(
    assessment: ScorerAssessment, clusters: int, lacking: Mapping[str, int]
) -> Condition:
    """Return the condition; `clusters` is the number of managed clusters that should score."""
    if isinstance(assessment.resolution, InvalidInput):
        message = "see the condition ConfigSynced"
        return Condition(CONTEXT_AVAILABLE, "Unknown", "NotResolved", message)
    if not assessment.resolution.summary.context and not assessment.unknown_context:
        return _available("NotAsked", "the scorer asks for no context")
    if isinstance(assessment.completed, InvalidInput):
        return _unavailable(assessment.completed.reason, assessment.completed.message)
    if assessment.unknown_context:
        fields = first_items(assessment.unknown_context)
        return _unavailable(
            "UnknownContext", f"{fields}: not sent, because this hub does not know it"
        )
    nowhere = [key for key, number in lacking.items() if clusters and number >= clusters]
    if nowhere:
        message = f"no managed cluster has {first_items(nowhere)}: correct it in context"
        return _unavailable("KeysNotFound", message)
    return _available("Available", _parts(assessment, clusters, lacking))


def _parts(assessment: ScorerAssessment, clusters: int, lacking: Mapping[str, int]) -> str:
    summary = assessment.completed
    said = ["agents send what the scorer asks for"]
    if isinstance(summary, ScorerSummary) and summary.context and summary.context.from_manifests:
        workloads = counted(len(summary.context_workloads), "workload")
        said.append(f"{workloads} and {counted(len(summary.context_devices), 'device')}")
    said += [
        f"{number} of {clusters} managed clusters lack {key}" for key, number in lacking.items()
    ]
    return first_items(said)


def _available(reason: str, message: str) -> Condition:
    return Condition(CONTEXT_AVAILABLE, "True", reason, message)


def _unavailable(reason: str, message: str) -> Condition:
    return Condition(CONTEXT_AVAILABLE, "False", reason, message)
