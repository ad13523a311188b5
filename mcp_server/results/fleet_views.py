"""The structured results of the tools that see the fleet, its scores, and what is broken."""

from typing import Annotated

from pydantic import Field

from mcp_server.results.result_views import ScorePage
from optimizer.overview.findings import FleetFinding
from optimizer.overview.score_overview import ScoreOverview
from optimizer.overview.scorer_overview import ScorerOverview
from optimizer.wire.base import ResultPart


class ScoresView(ResultPart):
    """Scores with their best and worst managed clusters, and the entries of one cluster."""

    scores: tuple[ScoreOverview, ...]
    omitted: Annotated[int, Field(description="Scores that are left out.")]
    entries: Annotated[ScorePage | None, Field(description="Only if a cluster was named.")]


class ScorerView(ResultPart):
    """A scorer and its score; null where there is none."""

    scorer: ScorerOverview | None
    score: ScoreOverview | None
    findings: tuple[FleetFinding, ...]


class DiagnosisView(ResultPart):
    """What is broken, in the order from scorer to landed workload, and how much was looked at."""

    findings: tuple[FleetFinding, ...]
    omitted: int
    checked: dict[str, int]
