"""Bearer tokens and authorities from Secrets of the agent's namespace on the managed cluster."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsf.agent.failure import Failure
from dsf.agent.fetch.watched_secrets import WatchedSecrets
from dsf.agent.wire import allowed_hosts
from dsf.agent.wire.http_answer import UNAUTHORIZED, shown
from dsf.agent.wire.secret_data import Token, clean, host_refused, read_authority, read_token
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.kube.errors import KubeError, NotFound
from dsf.kube.kinds import SECRET
from dsf.kube.port import Kube

SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
IN_CLUSTER = ("*.svc", "*.svc.cluster.local")


@dataclass(frozen=True, slots=True)
class CalledEndpoint:
    """A host that a scorer names, and what proves who talks to whom; empty names are none."""

    url: str
    token_name: str = ""
    token_key: str = ""
    ca_name: str = ""
    ca_key: str = ""
    service_account: bool = False


@dataclass(frozen=True, slots=True)
class EndpointCredentials:
    """How an endpoint is called: with a token, if any, trusting these PEM certificates."""

    token: Token | None = None
    ca: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The header that carries the token."""
        return self.token.headers if self.token else {}


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The agent's own token, and the hosts that it may be sent to."""

    hosts: tuple[str, ...] = IN_CLUSTER
    path: Path = SERVICE_ACCOUNT_TOKEN

    async def token(self, url: str) -> Token | InvalidInput:
        """Return the token for a URL; only https and a host that is allowed may have it."""
        if not url.lower().startswith("https://") or not allowed_hosts.allowed(self.hosts, url):
            message = (
                f"the agent's own token is not sent to {shown(url)}: only over https, to"
                f" {', '.join(self.hosts) or 'no host'}; see --service-account-token-hosts"
            )
            return InvalidInput("HostNotAllowed", message)
        try:
            data = await asyncio.to_thread(self.path.read_bytes)
        except OSError as error:
            message = f"the agent has no service account token: {error.strerror} ({self.path})"
            return InvalidInput("TokenUnreadable", message)
        return clean(data) or InvalidInput("InvalidToken", f"{self.path} holds no token")


@dataclass(frozen=True, slots=True)
class AgentSecrets:
    """The Secrets of one namespace; `kube` is None where the agent knows no API server.

    What is `watched` is known without asking; all else is read at each call. Either way what was
    rotated acts at the next call.
    """

    kube: Kube | None
    namespace: str
    own: ServiceAccount = field(default_factory=ServiceAccount)
    watched: WatchedSecrets | None = None

    async def credentials(self, endpoint: CalledEndpoint) -> EndpointCredentials | InvalidInput:
        """Return how an endpoint is called."""
        token = await self.token(endpoint)
        if isinstance(token, InvalidInput):
            return token
        ca = await self._authority(endpoint.ca_name, endpoint.ca_key)
        return ca if isinstance(ca, InvalidInput) else EndpointCredentials(token, ca)

    def refused(self, endpoint: CalledEndpoint, failure: object) -> None:
        """Have the token of an endpoint read anew where a call failed since it was not accepted."""
        if self.watched and isinstance(failure, Failure) and failure.reason == UNAUTHORIZED:
            self.watched.doubt(endpoint.token_name)

    async def token(self, endpoint: CalledEndpoint) -> Token | InvalidInput | None:
        """Return the token for an endpoint; None where it needs none."""
        if endpoint.service_account:
            return await self.own.token(endpoint.url)
        if not endpoint.token_name:
            return None
        secret = await self._read(endpoint.token_name, "token")
        if isinstance(secret, InvalidInput):
            return secret
        refused = host_refused(secret, endpoint.url)
        return refused or read_token(secret, endpoint.token_key)

    async def _authority(self, name: str, key: str) -> str | InvalidInput:
        if not name:
            return ""
        secret = await self._read(name, "PEM certificates")
        return secret if isinstance(secret, InvalidInput) else read_authority(secret, key)

    async def _read(self, name: str, what: str) -> Mapping[str, Any] | InvalidInput:
        if self.kube is None:
            message = f"Secret {name} cannot be read without the managed cluster's kubeconfig"
            return InvalidInput("SecretUnreadable", message)
        try:
            known = self.watched.find(name) if self.watched else None
            return known or await self.kube.get(SECRET, name, self.namespace)
        except NotFound:
            message = f"Secret {self.namespace}/{name} does not exist on this managed cluster"
            return InvalidInput("SecretNotFound", f"{message}: create it with the {what}")
        except KubeError as error:
            message = f"Secret {self.namespace}/{name} could not be read: {error}"
            return InvalidInput("SecretUnreadable", message)


def source(summary: ScorerSummary, url: str) -> CalledEndpoint:
    """Return the endpoint of a scorer's source, which is at `url`."""
    return CalledEndpoint(
        url,
        summary.source_endpoint_auth_name,
        summary.source_endpoint_auth_key,
        summary.source_endpoint_ca_name,
        summary.source_endpoint_ca_key,
        summary.source_endpoint_auth_service_account,
    )


def scoring(summary: ScorerSummary) -> CalledEndpoint:
    """Return the endpoint of a scorer's API."""
    return CalledEndpoint(
        summary.scoring_endpoint,
        summary.scoring_endpoint_auth_name,
        summary.scoring_endpoint_auth_key,
        summary.scoring_endpoint_ca_name,
        summary.scoring_endpoint_ca_key,
    )
