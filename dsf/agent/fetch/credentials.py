"""Tokens and certificates for calls, from Secrets of the agent's own namespace.

Named Secrets are cached, each by a watch of its own. A watch of one name needs permission for that
Secret only: RBAC applies `resourceNames` to `list` and `watch` with the field selector
`metadata.name`. Source:
https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dsf.agent.failure import Failure, Stage
from dsf.agent.fetch.issued_tokens import IssuedTokens, TokenRequest
from dsf.agent.wire.http_answer import UNAUTHORIZED, HttpAnswer, display_url, status_meaning
from dsf.agent.wire.secret_data import (
    ClientCertificate,
    Token,
    host_allowed,
    host_refused,
    parse_token,
    read_authority,
    read_certificate,
    read_client,
    read_token,
)
from dsf.api import names
from dsf.api.crd.scorer_source import OAuth2
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.errors import Forbidden, KubeError, NotFound
from dsf.kube.kinds import SECRET
from dsf.kube.port import Kube, Object
from dsf.runtime.reconcile.reflector import View

SECRETS_LIMIT = 32
"""Watches that one agent keeps open; further Secrets are read at each call."""

BYTES_LIMIT = 1 << 16
"""Encoded bytes of one cached Secret; a larger one is read at each call."""


class WatchedSecrets:
    """A cache of Secrets, kept up to date while `run` runs."""

    def __init__(self, kube: Kube, namespace: str, secrets: Iterable[str]) -> None:
        self._namespace = namespace
        self._views = {
            name: View(kube, SECRET, namespace, fields=f"metadata.name={name}", read=_kept)
            for name in sorted(set(secrets))[:SECRETS_LIMIT]
        }
        self._doubted = dict[str, Mapping[str, Any]]()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for view in self._views.values():
                tasks.create_task(view.run())

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Return a Secret from the cache, or None if it has to be read from the API server.

        A Secret is not in the cache if it is not watched, not synced yet, does not exist, is too
        large, or its token was refused.
        """
        known = self._known(name)
        return None if known is self._doubted.get(name) else known

    def doubt(self, name: str) -> None:
        """Bypass the cache for a Secret, because its token was refused and may be outdated.

        This ends when the watch delivers another version.
        """
        if known := self._known(name):
            self._doubted[name] = known

    def _known(self, name: str) -> Mapping[str, Any] | None:
        view = self._views.get(name)
        return view.items.get((self._namespace, name)) if view else None


def _kept(secret: Object) -> Mapping[str, Any] | None:
    """Return the fields that tokens and authorities are read from; None if they are too large."""
    metadata, data = secret["metadata"], secret.get("data") or {}
    if sum(len(str(value)) for value in data.values()) > BYTES_LIMIT:
        return None
    read = {key: metadata.get(key) for key in ("name", "namespace")}
    hosts = (metadata.get("annotations") or {}).get(names.ALLOWED_HOSTS_ANNOTATION)
    annotations = {} if hosts is None else {names.ALLOWED_HOSTS_ANNOTATION: hosts}
    return {
        "metadata": {**read, "annotations": annotations},
        "type": secret.get("type"),
        "data": data,
    }


SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
IN_CLUSTER = ("*.svc", "*.svc.cluster.local")


@dataclass(frozen=True, slots=True)
class CalledEndpoint:
    """An endpoint that a scorer names, and the Secrets for it; an empty name means none.

    `oauth2` says where a token is asked for, None if nowhere.
    """

    url: str
    token_name: str = ""
    token_key: str = ""
    ca_name: str = ""
    ca_key: str = ""
    service_account: bool = False
    certificate_name: str = ""
    oauth2: OAuth2 | None = None


@dataclass(frozen=True, slots=True)
class EndpointCredentials:
    """The token to send, if any, and the PEM certificates to trust (empty: public ones).

    `certificate` is presented to a server that asks for one. `issued_for` is the request that was
    answered with the token.
    """

    token: Token | None = None
    ca: str = ""
    certificate: ClientCertificate | None = None
    issued_for: TokenRequest | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The header that carries the token."""
        return self.token.headers if self.token else {}


class CallCredentials(Protocol):
    """Finds what a call needs to authenticate."""

    async def credentials(self, endpoint: CalledEndpoint) -> EndpointCredentials | InvalidInput:
        """Return the token and the authority for an endpoint."""
        ...

    def refused(self, endpoint: CalledEndpoint, used: EndpointCredentials) -> bool:
        """Take note that a server refused credentials; tell whether others can be had at once."""
        ...


T = TypeVar("T", bound=object)


async def authorized(
    secrets: CallCredentials,
    endpoint: CalledEndpoint,
    stage: Stage,
    call: Callable[[EndpointCredentials], Awaitable[T | Failure]],
) -> T | Failure:
    """Return what a call with the credentials of its endpoint returns.

    It is repeated once if the server refused a token that can be issued anew.
    """
    for last in (False, True):
        used = await secrets.credentials(endpoint)
        if isinstance(used, InvalidInput):
            return Failure(stage, used.reason, used.message)
        answer = await call(used)
        if not _unauthorized(answer) or not secrets.refused(endpoint, used) or last:
            break
    return answer


def _unauthorized(answer: object) -> bool:
    if isinstance(answer, HttpAnswer):
        return status_meaning(answer.status)[0] == UNAUTHORIZED
    return isinstance(answer, Failure) and answer.reason == UNAUTHORIZED


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The agent's own token, and the hosts that it may be sent to."""

    hosts: tuple[str, ...] = IN_CLUSTER
    path: Path = SERVICE_ACCOUNT_TOKEN

    async def token(self, url: str) -> Token | InvalidInput:
        """Return the agent's own token for an https URL of an allowed host; else InvalidInput."""
        if not url.lower().startswith("https://") or not host_allowed(self.hosts, url):
            message = (
                f"the agent's own token is not sent to {display_url(url)}: only over https, to"
                f" {', '.join(self.hosts) or 'no host'}; see --service-account-token-hosts"
            )
            return InvalidInput("HostNotAllowed", message)
        try:
            data = await asyncio.to_thread(self.path.read_bytes)
        except OSError as error:
            where = f"its service account token in {self.path}"
            message = f"the agent can't read {where}: {error.strerror}"
            return InvalidInput("TokenUnreadable", message)
        return parse_token(data) or InvalidInput("InvalidToken", f"{self.path} holds no token")


@dataclass(frozen=True, slots=True)
class AgentSecrets:
    """The Secrets of one namespace; `kube` is None if the agent has no API server.

    Secrets in `watched` come from a cache, others are read at each call. Either way a rotated
    Secret takes effect at the next call. `tokens` asks token endpoints.
    """

    kube: Kube | None
    namespace: str
    tokens: IssuedTokens
    own: ServiceAccount = field(default_factory=ServiceAccount)
    watched: WatchedSecrets | None = None

    async def credentials(self, endpoint: CalledEndpoint) -> EndpointCredentials | InvalidInput:
        """Return the token and the certificates for an endpoint."""
        token = await self.token(endpoint)
        if isinstance(token, InvalidInput):
            return token
        oauth2 = endpoint.oauth2
        asked = await self._token_request(oauth2, endpoint.url) if oauth2 else None
        if isinstance(asked, InvalidInput):
            return asked
        if asked:
            token = await self.tokens.token(asked)
            if isinstance(token, InvalidInput):
                self._doubt(endpoint)
                return token
        ca = await self._authority(endpoint.ca_name, endpoint.ca_key)
        if isinstance(ca, InvalidInput):
            return ca
        certificate = await self._certificate(endpoint) if endpoint.certificate_name else None
        if isinstance(certificate, InvalidInput):
            return certificate
        return EndpointCredentials(token, ca, certificate, asked)

    def refused(self, endpoint: CalledEndpoint, used: EndpointCredentials) -> bool:
        """Bypass the cache for the Secret of a refused token; drop a token that was issued."""
        self._doubt(endpoint)
        if not (used.issued_for and used.token):
            return False
        self.tokens.drop(used.issued_for, used.token)
        return True

    def _doubt(self, endpoint: CalledEndpoint) -> None:
        if self.watched:
            client = endpoint.oauth2.client_secret_ref.name if endpoint.oauth2 else ""
            self.watched.doubt(endpoint.token_name or client)

    async def token(self, endpoint: CalledEndpoint) -> Token | InvalidInput | None:
        """Return the token that an endpoint's Secret or the agent itself has; None for none."""
        if endpoint.service_account:
            return await self.own.token(endpoint.url)
        if not endpoint.token_name:
            return None
        secret = await self._sendable(endpoint.token_name, "token", endpoint.url)
        return (
            secret if isinstance(secret, InvalidInput) else read_token(secret, endpoint.token_key)
        )

    async def _token_request(self, oauth2: OAuth2, called: str) -> TokenRequest | InvalidInput:
        """Return what to ask the token endpoint for calls of the URL `called`.

        The client's Secret has to allow both hosts: one gets the client, the other the token.
        """
        name, url = oauth2.client_secret_ref.name, oauth2.token_url
        secret = await self._sendable(name, "OAuth client", url, called)
        client = secret if isinstance(secret, InvalidInput) else read_client(secret)
        if isinstance(client, InvalidInput):
            return client
        authority = oauth2.tls.ca_secret_ref if oauth2.tls else None
        ca = await self._authority(authority.name, authority.key) if authority else ""
        if isinstance(ca, InvalidInput):
            return ca
        return TokenRequest(url, *client, tuple(oauth2.scopes), oauth2.audience or "", ca)

    async def _certificate(self, endpoint: CalledEndpoint) -> ClientCertificate | InvalidInput:
        what = "client certificate"
        secret = await self._sendable(endpoint.certificate_name, what, endpoint.url)
        return secret if isinstance(secret, InvalidInput) else read_certificate(secret)

    async def _authority(self, name: str, key: str) -> str | InvalidInput:
        if not name:
            return ""
        secret = await self._read(name, "PEM certificates")
        return secret if isinstance(secret, InvalidInput) else read_authority(secret, key)

    async def _sendable(self, name: str, what: str, *urls: str) -> Mapping[str, Any] | InvalidInput:
        """Return a Secret that allows the hosts of all URLs."""
        secret = await self._read(name, what)
        if isinstance(secret, InvalidInput):
            return secret
        return next(filter(None, (host_refused(secret, url) for url in urls)), secret)

    async def _read(self, name: str, what: str) -> Mapping[str, Any] | InvalidInput:
        if self.kube is None:
            message = f"Secret {name} can't be read without the managed cluster's kubeconfig"
            return InvalidInput("SecretUnreadable", message)
        try:
            known = self.watched.find(name) if self.watched else None
            return known or await self.kube.get(SECRET, name, self.namespace)
        except NotFound:
            message = f"Secret {self.namespace}/{name} does not exist on this managed cluster"
            return InvalidInput("SecretNotFound", f"{message}: create it with the {what}")
        except Forbidden:
            message = f"the agent may not read Secret {self.namespace}/{name}"
            hint = "if the chart's spokeSetting.agent.secretNames names Secrets, add it there"
            return InvalidInput("SecretUnreadable", f"{message}: {hint}")
        except KubeError as error:
            message = f"Secret {self.namespace}/{name} could not be read: {error}"
            return InvalidInput("SecretUnreadable", message)


def source_endpoint(summary: ScorerSummary, url: str) -> CalledEndpoint:
    """Return the endpoint of a scorer's source at `url`."""
    return CalledEndpoint(
        url,
        summary.source_endpoint_auth_name,
        summary.source_endpoint_auth_key,
        summary.source_endpoint_ca_name,
        summary.source_endpoint_ca_key,
        summary.source_endpoint_auth_service_account,
        summary.source_endpoint_certificate_name,
        summary.source_endpoint_oauth2,
    )


def scoring_endpoint(summary: ScorerSummary) -> CalledEndpoint:
    """Return the endpoint of a scorer's API."""
    return CalledEndpoint(
        summary.scoring_endpoint,
        summary.scoring_endpoint_auth_name,
        summary.scoring_endpoint_auth_key,
        summary.scoring_endpoint_ca_name,
        summary.scoring_endpoint_ca_key,
        certificate_name=summary.scoring_endpoint_certificate_name,
        oauth2=summary.scoring_endpoint_oauth2,
    )
