"""The health of a scoring API that the hub can't reach, from the scores that agents publish."""

from dataclasses import replace

from dsf.api.conditions import Condition
from dsf.api.plural import counted
from dsf.hub.assess.scorer_assessment import AGENTS_FAIL, ScorerAssessment, ScorerHealth
from dsf.hub.report.scorer_counts import ScorerCounts


def with_health_from_agents(assessment: ScorerAssessment, counts: ScorerCounts) -> ScorerAssessment:
    """Return the assessment with the agents' verdict, if only agents can judge the API.

    The scorer stays distributed even if every agent fails: nobody else would notice that the API
    works again.
    """
    if not assessment.health.judged_by_agents:
        return assessment
    return replace(assessment, health=_from_agents(assessment.health, counts))


def _from_agents(health: ScorerHealth, counts: ScorerCounts) -> ScorerHealth:
    if counts.answered:
        message = (
            f"the hub can't reach it; agents of {counted(counts.answered, 'managed cluster')} can"
        )
        return ScorerHealth("Active", True, Condition("Healthy", "True", "AgentsReachIt", message))
    if counts.unanswered:
        message = (
            f"neither the hub nor the agents of {counted(counts.unanswered, 'managed cluster')} get"
            " scores from it: see failingClusters"
        )
        return ScorerHealth("Inactive", True, Condition("Healthy", "False", AGENTS_FAIL, message))
    return health
