"""What a scoring call says besides series: its headers, and the context in its body."""

from urllib.parse import quote

import msgspec

from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import (
    CLUSTER_HEADER,
    SCORE_HEADER,
    SCORER_HEADER,
    RequestContext,
)


def caller_headers(cluster: str, summary: ScorerSummary) -> dict[str, str]:
    """Return the headers that say who asks.

    Their values are percent-encoded, so a name can't end its header or begin another one.
    """
    named = {
        CLUSTER_HEADER: cluster,
        SCORE_HEADER: summary.score_name,
        SCORER_HEADER: summary.name,
    }
    return {header: quote(name, safe="") for header, name in named.items()}


def encoded_context(cluster: str, summary: ScorerSummary) -> bytes:
    """Return the JSON of the context that a scorer asks for; empty if it asks for none."""
    asked = summary.context
    if asked is None:
        return b""
    named = {"cluster": cluster, "score": summary.score_name, "scorer": summary.name}
    context = RequestContext(
        **(named if asked.cluster else {}),
        labels=summary.context_labels if asked.labels else None,
        claims=summary.context_claims if asked.claims else None,
        workloads=list(summary.context_workloads) if asked.workloads else None,
        devices=list(summary.context_devices) if asked.devices else None,
    )
    return context.model_dump_json(by_alias=True).encode()


def encoded_params(summary: ScorerSummary) -> bytes:
    """Return the JSON of the further parameters of a scorer; empty if it has none."""
    return msgspec.json.encode(summary.scoring_params) if summary.scoring_params else b""
