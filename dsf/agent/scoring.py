"""The call of a scoring API."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx
from pydantic import TypeAdapter, ValidationError

from dsf.agent.answer import Answer, misfit, refusal
from dsf.agent.exchange import Deadline, Limits, Request, exchange
from dsf.agent.failure import Failure
from dsf.agent.secrets import Secrets
from dsf.api.invalid import Invalid
from dsf.api.scoring_api import ScoringRequest, ScoringResponse, Series
from dsf.api.summary import ScorerSummary

_REQUEST = TypeAdapter(ScoringRequest)


@dataclass(frozen=True, slots=True)
class ScoringApi:
    """Scoring APIs over one shared client."""

    client: httpx.AsyncClient
    secrets: Secrets
    limits: Limits

    async def score(
        self, summary: ScorerSummary, series: Sequence[Series]
    ) -> ScoringResponse | Failure:
        """Send series to a scorer's API and return its results, checked for their form."""
        token = await self.secrets.token(
            summary.scoring_endpoint_auth_name, summary.scoring_endpoint_auth_key
        )
        if isinstance(token, Invalid):
            return Failure("scoring", token.reason, token.message)
        headers = {"Content-Type": "application/json", **(token.headers if token else {})}
        body = _REQUEST.dump_json(ScoringRequest.model_construct(data=list(series)))
        answer = await exchange(
            self.client,
            Request("POST", summary.scoring_endpoint, body, headers),
            stage="scoring",
            deadline=Deadline.within(self.limits.deadline(summary.scoring_interval)),
            max_bytes=self.limits.max_bytes,
        )
        if isinstance(answer, Failure):
            return answer
        return parse(summary.scoring_endpoint, answer)


def parse(url: str, answer: Answer) -> ScoringResponse | Failure:
    """Return the results in an answer of `url`; what does not fit is named by its place."""
    if not answer.ok:
        return refusal("scoring", url, answer)
    try:
        return ScoringResponse.model_validate_json(answer.body)
    except ValidationError as error:
        return misfit("scoring", url, answer, "a scoring response", error)
