"""A scoring API that an author names by its URL, seen and called as hub and agent would."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dsf.agent.failure import Failure
from dsf.agent.fetch.credentials import CalledEndpoint, EndpointCredentials
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.secret_data import Token
from dsf.api import names
from dsf.api.crd.dynamic_scorer import DEFAULT_FORMAT, DynamicScorerSpec
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.assess.config_resolution import resolve
from dsf.hub.observe.prober import Prober, TrustedAuthorities
from dsf.hub.snapshot import urls
from dsf.hub.snapshot.registered_scorer import ProbeFailure, ProbeResult, ProbeTarget
from dsf.scorer_kit.invented_series import TYPICAL_SERIES, forms_of, invented
from dsf.scorer_kit.registration import further_formats
from dsf.scorer_kit.trial_context import with_invented_context

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

    def refused(self, endpoint: CalledEndpoint, used: EndpointCredentials) -> bool:
        """Return False: there is no other token."""
        del endpoint, used
        return False


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


UNREACHABLE = frozenset({"Unreachable", "TimedOut", "Denied"})
"""Reasons of a probe that got no answer."""

_CONFIG_PATH = "/config"


@dataclass(frozen=True, slots=True)
class NamedApi:
    """What an author says about a scoring API.

    `scoring_url` replaces the endpoint that the config names; `dimension_format` is empty if it is
    not decided yet, and `further_formats` are the scoreDimensionFormats. `ca_file` has
    the PEM certificates to trust; None for public authorities.
    """

    config_url: str
    scoring_url: str = ""
    dimension_format: str = ""
    ca_file: Path | None = None
    further_formats: tuple[str, ...] = ()

    @property
    def ca(self) -> str:
        """The PEM certificates for the agent's client; empty for public authorities."""
        return self.ca_file.read_text("utf-8", "replace") if self.ca_file else ""


@dataclass(frozen=True, slots=True)
class ScorerTarget:
    """What a scoring API answered, and the summary that agents would get of it.

    If the config asks for a context, the summary has an invented one.
    """

    named: NamedApi
    probed: ProbeResult
    summary: ScorerSummary | InvalidInput

    @property
    def config(self) -> ScorerConfig | None:
        """The config, if it was usable."""
        return self.probed.config if isinstance(self.probed.config, ScorerConfig) else None

    @property
    def why_unusable(self) -> str:
        """Why the config is not usable; empty if it is."""
        return self.probed.config.message if isinstance(self.probed.config, ProbeFailure) else ""

    @property
    def unreachable(self) -> str:
        """Why neither the health nor the config endpoint answered; empty if one of them did."""
        config = self.probed.config
        if (
            isinstance(config, ProbeFailure)
            and config.reason in UNREACHABLE
            and self.probed.health is not None
        ):
            return config.message
        return ""


def named_api(
    url: str,
    scoring_url: str = "",
    dimension_formats: Sequence[str] = (),
    ca_file: Path | None = None,
) -> NamedApi | InvalidInput:
    """Return what an author says; `/config` is added to a URL without a path."""
    for each in filter(None, (url, scoring_url)):
        checked = urls.server(each, "the URL")
        if isinstance(checked, InvalidInput):
            return checked
    bare = urlsplit(url).path in {"", "/"}
    config_url = url.rstrip("/") + _CONFIG_PATH if bare else url
    first, *further = dimension_formats or ("",)
    return NamedApi(config_url, scoring_url, first, ca_file, tuple(further))


async def look_at(named: NamedApi) -> ScorerTarget:
    """Ask a scoring API for its health and its config, as the hub does.

    Raises UnusableAuthorityFile.
    """
    probed = await probe(named, full=True)
    summary = _summary(named, probed.config)
    if isinstance(summary, ScorerSummary):
        summary = with_invented_context(summary)
    return ScorerTarget(named, probed, summary)


async def probe(named: NamedApi, *, full: bool) -> ProbeResult:
    """Ask for the health, and if `full` for the config. Raises UnusableAuthorityFile."""
    prober = Prober(trust=TrustedAuthorities(named.ca_file))
    return await prober.probe(ProbeTarget(named.config_url, full=full))


def object_name(config: ScorerConfig) -> str:
    """Return the name of the DynamicScorer of a config."""
    return names.score_object_name(config.name) or "scorer"


def _summary(
    named: NamedApi, config: ScorerConfig | ProbeFailure | None
) -> ScorerSummary | InvalidInput:
    if not isinstance(config, ScorerConfig):
        return InvalidInput("ConfigMissing", "the config could not be used")
    form = named.dimension_format or DEFAULT_FORMAT
    spec = DynamicScorerSpec(
        description=config.description,
        config_url=named.config_url,
        score_dimension_format=form,
        score_dimension_formats=[*named.further_formats, *further_formats(config, form)],
    )
    resolved = resolve(object_name(config), spec, config)
    if isinstance(resolved, InvalidInput):
        return resolved
    if named.scoring_url:
        return resolved.summary.model_copy(update={"scoring_endpoint": named.scoring_url})
    if _server(resolved.summary.scoring_endpoint) != _server(named.config_url):
        return InvalidInput("AnotherServer", "scoring.host of the config is another server")
    return resolved.summary


def _server(url: str) -> str | InvalidInput:
    return urls.server(url.lower(), "the URL")
