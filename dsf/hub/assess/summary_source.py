"""A source of a scorer as agents get it, or why nobody could read it."""

from dsf.api.crd.scorer_source import (
    DEFAULT_RANGE_SECONDS,
    DEFAULT_SOURCE_PATH,
    DEFAULT_STEP_SECONDS,
    Auth,
    Source,
    SourceAuth,
    SourceParams,
)
from dsf.api.scoring import series_selector
from dsf.api.scoring.json_path import object_paths
from dsf.api.scoring.scorer_summary import SummarySource
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.snapshot import urls

PROMETHEUS, KUBERNETES, NO_SOURCE = "Prometheus", "Kubernetes", "None"


def summary_source(source: Source | None, name: str, place: str) -> SummarySource | InvalidInput:
    """Return a source as agents get it."""
    if source is None or source.type == NO_SOURCE:
        return SummarySource(name=name, type=NO_SOURCE)
    if source.type == KUBERNETES:
        return _kubernetes(source, name, place)
    prometheus = source.type == PROMETHEUS
    if unusable := _unusable(source, place):
        return unusable
    path = source.path or (DEFAULT_SOURCE_PATH if prometheus else "")
    endpoint = urls.endpoint(source.host, path, place) if source.host else ""
    if isinstance(endpoint, InvalidInput):
        return endpoint
    params = source.params or SourceParams()
    auth = source.auth or SourceAuth()
    token, authority = auth.token_secret_ref, source.tls and source.tls.ca_secret_ref
    return SummarySource(
        name=name,
        type=source.type,
        endpoint=endpoint,
        endpoint_auth_name=token.name if token else "",
        endpoint_auth_key=token.key if token else "",
        endpoint_auth_service_account=bool(auth.service_account_token),
        endpoint_ca_name=authority.name if authority else "",
        endpoint_ca_key=authority.key if authority else "",
        endpoint_certificate_name=auth.certificate_name,
        endpoint_oauth2=auth.oauth2,
        endpoint_tenant=(source.tenant or "") if prometheus else "",
        query=params.query or "",
        range=DEFAULT_RANGE_SECONDS if params.range is None else params.range,
        step=params.step or DEFAULT_STEP_SECONDS,
    )


def _kubernetes(source: Source, name: str, place: str) -> SummarySource | InvalidInput:
    objects, params = source.kubernetes, source.params or SourceParams()
    if objects is None:
        message = f"source type Kubernetes needs {place}.kubernetes: the objects to read"
        return InvalidInput("MissingObjects", message)
    paths = object_paths(objects)
    if isinstance(paths, InvalidInput):
        return InvalidInput(paths.reason, f"{place}.kubernetes.{paths.message}")
    return SummarySource(
        name=name,
        type=KUBERNETES,
        range=params.range or 0,
        step=params.step or DEFAULT_STEP_SECONDS,
        kubernetes=objects,
    )


def _unusable(source: Source, place: str) -> InvalidInput | None:
    """Return why a source is unusable; None if it is usable."""
    prometheus = source.type == PROMETHEUS
    query = source.params.query if source.params else None
    for value, reason, field in (
        (query, "MissingQuery", "params.query"),
        (source.host or not prometheus, "MissingSourceHost", "host"),
    ):
        if not value:
            return InvalidInput(
                reason,
                f"source type {source.type} needs {place}.{field}: set it in the API's config or"
                " in spec",
            )
    selectors = () if prometheus else series_selector.parse(query or "")
    if isinstance(selectors, InvalidInput):
        return InvalidInput(selectors.reason, f"{place}.params.query: {selectors.message}")
    return unusable_client(source.auth, place)


def unusable_client(auth: Auth | None, place: str) -> InvalidInput | None:
    """Return why nobody could ask for a token of an OAuth client; None if one can, or is none."""
    if auth is None or auth.oauth2 is None:
        return None
    server = urls.server(auth.oauth2.token_url, f"{place}.auth.oauth2.tokenURL")
    return server if isinstance(server, InvalidInput) else None
