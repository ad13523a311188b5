"""The agent of one managed cluster, put together and run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry

from dsf.agent.exchange import Limits
from dsf.agent.http_client import http_client
from dsf.agent.loop import Agent
from dsf.agent.metrics import AgentMetrics
from dsf.agent.publish import Publisher
from dsf.agent.round import Rounder
from dsf.agent.scoring import ScoringApi
from dsf.agent.secrets import IN_CLUSTER, Secrets, ServiceAccount
from dsf.agent.sources import Sources
from dsf.agent.watch import watch_config_map, watch_file
from dsf.api import names
from dsf.kube.port import Kube
from dsf.runtime.endpoints import serve_endpoints


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Settings:
    """What an agent is told at its start; `summaries_file` replaces the ConfigMap.

    `prometheus_url` replaces the server of every Prometheus source: clusters differ in where
    theirs lives. `service_account_token_hosts` may be sent the agent's own token.
    """

    cluster: str
    namespace: str = names.AGENT_NAMESPACE
    metrics_bind_address: str = "127.0.0.1:8080"
    summaries_file: Path | None = None
    limits: Limits = field(default_factory=Limits)
    prometheus_url: str = ""
    service_account_token_hosts: tuple[str, ...] = IN_CLUSTER


async def run(
    settings: Settings,
    *,
    hub: Kube,
    managed: Kube | None,
    now: Callable[[], datetime] = utc_now,
    listening: Callable[[str], None] = lambda _: None,
) -> None:
    """Run the agent until cancelled.

    `hub` is the hub's API server and `managed` the managed cluster's, which may be missing where
    there is a summaries file and no Secret is needed. `listening` is called with the base URL of
    `/healthz`, `/readyz` and `/metrics`. Raises CannotListen.
    """
    registry = CollectorRegistry()
    metrics = AgentMetrics(registry, lambda: now().timestamp())
    publisher = Publisher(hub, settings.cluster, now)
    async with rounder(settings, managed, now) as performer:
        agent = Agent(performer, publisher, metrics, settings.limits)
        bind = settings.metrics_bind_address
        async with (
            serve_endpoints(bind, registry=registry, ready=agent.missing) as url,
            asyncio.TaskGroup() as tasks,
        ):
            listening(url)
            tasks.create_task(_watch(settings, managed, agent.configure))
            tasks.create_task(agent.run())


@asynccontextmanager
async def rounder(
    settings: Settings, managed: Kube | None, now: Callable[[], datetime]
) -> AsyncIterator[Rounder]:
    """Yield what performs rounds, with its HTTP client open."""
    own = ServiceAccount(settings.service_account_token_hosts)
    secrets = Secrets(managed, settings.namespace, own)
    async with http_client() as client:
        yield Rounder(
            settings.cluster,
            Sources(client, secrets, settings.limits, settings.prometheus_url),
            ScoringApi(client, secrets, settings.limits),
            now,
        )


async def _watch(settings: Settings, managed: Kube | None, emit: Callable[[str], None]) -> None:
    if settings.summaries_file is not None:
        await watch_file(settings.summaries_file, emit)
    elif managed is not None:
        await watch_config_map(managed, settings.namespace, emit)
    else:
        raise ValueError("an agent needs a summaries file or the managed cluster's API server")
