"""Calls a scoring API with the token of its author, by the agent's own code."""

from dataclasses import dataclass

from dsf.agent.failure import Failure
from dsf.agent.fetch.credentials import CalledEndpoint, EndpointCredentials
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.secret_data import Token
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.scorer_kit.invented_series import TYPICAL_SERIES, forms_of, invented

CLUSTER = "cluster1"
"""Stands for the managed cluster that asks."""


@dataclass(frozen=True, slots=True)
class AuthorCredentials:
    """A token and PEM certificates for one scoring endpoint, each empty for none.

    Other endpoints get neither.
    """

    scoring_url: str
    token: str
    ca: str

    async def credentials(self, endpoint: CalledEndpoint) -> EndpointCredentials:
        """Return the token and the certificates for the scoring endpoint."""
        if endpoint.url != self.scoring_url:
            return EndpointCredentials()
        return EndpointCredentials(Token(self.token) if self.token else None, self.ca)

    def refused(self, endpoint: CalledEndpoint, failure: object) -> None:
        """Do nothing: there is no cache of tokens."""


async def typical_results(
    summary: ScorerSummary, credentials: AuthorCredentials, now: float
) -> list[ScoringResult] | Failure:
    """Return the results of a request with invented series that end at `now` (unix seconds)."""
    series = invented(forms_of(summary, int(now)), TYPICAL_SERIES)
    async with http_client() as client:
        api = ScoringApi(CLUSTER, client, credentials, CallLimits())
        deadline = api.deadline(summary)
        sent = () if summary.source_type == "None" else series
        answer = await api.call(summary, sent, deadline)
        if isinstance(answer, Failure):
            return answer
        return await api.results(summary, answer, deadline)
