"""Results of scoring calls, as the agent reads them from an answer."""

import json
from collections.abc import Mapping

from msgspec import Raw

from dsf.agent.wire.scoring_answer import ScoringResult


def scoring_result(score: float, metric: Mapping[str, str]) -> ScoringResult:
    return ScoringResult(Raw(json.dumps(metric).encode()), score)
