"""Writes docs/reference/scorer-summary.md: the fields of what the hub sends to the agents.

Run `make references` after a change of a field. A field without a meaning here is an error.
"""

from collections.abc import Iterable, Iterator

from dsf.api.scoring.scorer_summary import ScorerSummary, SummarySource
from tests.repository import ROOT

PAGE = ROOT / "docs/reference/scorer-summary.md"
FIRST = "score_dimension_format"
"""The last field of the first documents; those after it came later."""

_HEAD = """# ScorerSummary: what agents get

A reference for people who look into the ConfigMap `dynamic-scoring-config` of a managed cluster, or
write an agent, written from the code by `make references`. The hub controller writes into
`data.summaries` a JSON list with one summary for each DynamicScorer that the cluster gets: the
DynamicScorer after [the merge with `/config`](scoring-api.md#who-decides-full-or-none), masks and
`sourceOverrides`.

```bash
kubectl get configmap dynamic-scoring-config -n dynamic-scoring --context kind-worker01 \\
  -o jsonpath='{.data.summaries}' | jq
```
"""
_LATER = """## Fields that came later

A summary has one of these only if it is set. Agents ignore those that they do not know.
"""
MEANINGS = {
    "name": "the DynamicScorer",
    "scoreName": "the score; with `-` for `_` it is the name of the AddOnPlacementScore",
    "sourceType": "`Prometheus`, `OpenTelemetry`, `Kubernetes`, `None`, or `Several` where"
    " `sources` counts",
    "sourceEndpoint": "URL of the source: host and path",
    "sourceEndpointAuthName": "Secret with the source's token, in the agent's namespace",
    "sourceEndpointAuthKey": "key of that Secret",
    "sourceQuery": "the query, or several that `;` joins",
    "sourceRange": "seconds of history that the query covers",
    "sourceStep": "seconds between its samples",
    "scoringEndpoint": "URL to which the agent posts the series",
    "scoringInterval": "seconds between rounds",
    "scoringEndpointAuthName": "Secret with the scoring API's token, in the agent's namespace",
    "scoringEndpointAuthKey": "key of that Secret",
    "location": "`Internal`, in the network of the clusters, or `External`",
    "scoreDestination": "`AddOnPlacementScore`, or `None`: only as metrics",
    "scoreDimensionFormat": "pattern of the names of the entries, such as `${node};${pod}`",
    "scoringNormalize": "the range that becomes 0 to 100",
    "scoringOnFailure": "what counts when the last good scores expire",
    "scoringRange": "the range of scores that the scoring API declares",
    "sourceEndpointAuthServiceAccount": "send the token of the agent's own ServiceAccount",
    "sourceEndpointCAName": "Secret with the source's certificate authority",
    "sourceEndpointCAKey": "key of it",
    "scoringEndpointCAName": "Secret with the scoring API's certificate authority",
    "scoringEndpointCAKey": "key of it",
    "sourceEndpointTenant": "tenant of the source, sent as the header `X-Scope-OrgID`",
    "forecast": "what the scores forecast: horizon, truth, quantile",
    "sources": "several sources; the fields of each are below",
    "scoringParams": "further parameters, sent with each call as `params`",
    "scoringDefaultScore": "the score where there is nothing to score",
    "scoreDimensionFormats": "further sets of entries",
    "sourceEndpointCertificateName": "Secret with the client certificate for the source",
    "sourceEndpointOAuth2": "where the agent gets a token for the source, as an OAuth client",
    "scoringEndpointCertificateName": "Secret with the client certificate for the scoring API",
    "scoringEndpointOAuth2": "where the agent gets a token for the scoring API",
    "sourceKubernetes": "the objects that a source of type Kubernetes reads",
    "context": "what the scoring API asks for besides series",
    "contextWorkloads": "the workloads of that context",
    "contextDevices": "the devices of that context",
    "contextLabels": "labels of the managed cluster in that context",
    "contextClaims": "claims of the managed cluster in that context",
}
"""What each field on the wire says."""


def page() -> str:
    """Return the page."""
    names = list(ScorerSummary.model_fields)
    count = names.index(FIRST) + 1
    return "\n".join(
        (
            _HEAD,
            f"## The {count} fields of the first documents\n\nEvery summary has all of them.\n",
            *_table(_named(ScorerSummary, names[:count])),
            _LATER,
            *_table(_named(ScorerSummary, names[count:])),
            "## Fields of each of several sources\n\nAs the field with `source` in front.\n",
            ", ".join(f"`{name}`" for name in _named(SummarySource, SummarySource.model_fields)),
            "",
        )
    )


def _named(model: type[ScorerSummary | SummarySource], names: Iterable[str]) -> list[str]:
    return [model.model_fields[name].alias or name for name in names]


def _table(names: Iterable[str]) -> Iterator[str]:
    yield "| field | what it says |\n|---|---|"
    yield from (f"| `{name}` | {MEANINGS[name]} |" for name in names)
    yield ""
