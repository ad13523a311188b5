"""The health of a scoring API that only agents can judge, from what they publish."""

from dataclasses import replace

from dsf.api.conditions import Condition
from dsf.hub.assess.scorer_assessment import AGENTS_FAIL, ScorerAssessment, ScorerHealth
from dsf.hub.report.scorer_counts import ScorerCounts


def with_health_from_agents(standing: ScorerAssessment, tally: ScorerCounts) -> ScorerAssessment:
    """Return the standing with the agents' word on an API that only they can judge.

    It stays distributed whatever they say: nobody else would notice that it is well again.
    """
    if not standing.health.judged_by_agents:
        return standing
    health = standing.health
    if tally.answered:
        message = f"the hub can't reach it; it answers the agents of {tally.answered} clusters"
        told = ScorerHealth("Active", True, Condition("Healthy", "True", "AgentsReachIt", message))
    elif tally.refused:
        message = (
            f"neither the hub nor the agents of {tally.refused} managed clusters get scores from"
            " it: see failingClusters"
        )
        told = ScorerHealth("Inactive", True, Condition("Healthy", "False", AGENTS_FAIL, message))
    else:
        told = health
    return replace(standing, health=told)
