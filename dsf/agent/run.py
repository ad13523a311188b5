"""Assembles and runs the agent of one managed cluster, and watches its scorer summaries."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from dsf import __version__
from dsf.agent.fetch.answer_budget import AnswerBudget
from dsf.agent.fetch.credentials import (
    IN_CLUSTER,
    AgentSecrets,
    CallCredentials,
    ServiceAccount,
    WatchedSecrets,
)
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.issued_tokens import IssuedTokens
from dsf.agent.fetch.kubernetes_source import KubernetesSource
from dsf.agent.fetch.scoring_call import Observe, ScoringApi, unobserved
from dsf.agent.fetch.sources import ReceivedSource, Sources
from dsf.agent.inventory.inventory_metrics import InventoryMetrics
from dsf.agent.inventory.inventory_publisher import keep_inventory
from dsf.agent.metrics import AgentMetrics
from dsf.agent.publish.addon_lease import AddOnLease
from dsf.agent.publish.publisher import Publisher
from dsf.agent.publish.write_permission import PublisherIdentity
from dsf.agent.push_receiver import PushSettings, receiving_pushes
from dsf.agent.round import RoundRunner
from dsf.agent.round_loop import Agent
from dsf.agent.score.result_rules import MAX_SERIES
from dsf.api import names
from dsf.kube.clock import utc_now
from dsf.kube.kinds import CONFIG_MAP
from dsf.kube.port import Kube, Object
from dsf.outbound.destinations import Destinations
from dsf.runtime.endpoints import serve_endpoints
from dsf.runtime.reconcile.reflector import View

if TYPE_CHECKING:
    from dsf.agent.otlp.received_metrics import ReceivedMetrics


log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
"""Seconds between two reads of a file: mounted files change without a reliable event."""

NO_SUMMARIES = "[]"

Emit = Callable[[str], None]


async def watch_config_map(kube: Kube, namespace: str, emit: Emit) -> None:
    """Emit `data.summaries` at the start and at every change, until cancelled.

    A missing ConfigMap means an empty list.
    """
    fields = f"metadata.name={names.CONFIG_MAP}"
    config_maps = View(kube, CONFIG_MAP, namespace, fields=fields, read=summaries_of)
    changed = asyncio.Event()
    config_maps.on_change(lambda _: changed.set())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(config_maps.run())
        await config_maps.synced.wait()
        while True:
            changed.clear()
            emit(config_maps.items.get((namespace, names.CONFIG_MAP), NO_SUMMARIES))
            await changed.wait()


def summaries_of(config_map: Object) -> str:
    """Return the text of a ConfigMap's summaries; empty if the key is missing."""
    return str((config_map.get("data") or {}).get(names.SUMMARIES_KEY, ""))


async def watch_file(path: Path, emit: Emit, *, poll_seconds: float = POLL_SECONDS) -> None:
    """Emit a file's text at the start and whenever it differs, until cancelled."""
    before: str | None = None
    while True:
        text = await asyncio.to_thread(read, path)
        if text is not None and text != before:
            before = text
            emit(text)
        await asyncio.sleep(poll_seconds)


def read(path: Path) -> str | None:
    """Return a file's text; if it can't be read, log why and return None."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        log.warning("summaries file unreadable", extra={"path": str(path), "error": reason})
        return None


ANSWERS_IN_FLIGHT = 80 << 20
"""Bytes of answers of all rounds together: as many as one round may need (79 MiB), rounded up."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The flags of an agent; `summaries_file` replaces the ConfigMap.

    `prometheus_url` replaces the server of every Prometheus source, because its address differs
    from cluster to cluster. `service_account_token_hosts` may receive the agent's own token.
    `otlp_bind_address` is empty unless OTLP is received. `max_series` limits the label sets of one
    score. `watched_secrets` names the Secrets that are watched; others are read at each call.
    `answers_in_flight` limits the bytes of answers that all rounds hold at the same time; it is
    raised to what one round may need. `destinations` says where calls may go. `push` is None
    unless pushes are received. With `inventory` the nodes and Pods of the managed cluster are
    reported to the hub, with the labels of nodes in `inventory_node_labels` besides the usual ones.
    """

    cluster: str
    namespace: str = names.AGENT_NAMESPACE
    metrics_bind_address: str = "127.0.0.1:8080"
    summaries_file: Path | None = None
    limits: CallLimits = field(default_factory=CallLimits)
    prometheus_url: str = ""
    service_account_token_hosts: tuple[str, ...] = IN_CLUSTER
    otlp_bind_address: str = ""
    max_series: int = MAX_SERIES
    watched_secrets: tuple[str, ...] = ()
    answers_in_flight: int = ANSWERS_IN_FLIGHT
    destinations: Destinations = field(default_factory=Destinations)
    push: PushSettings | None = None
    inventory: bool = False
    inventory_node_labels: tuple[str, ...] = ()


async def run(
    settings: AgentSettings,
    *,
    hub: Kube,
    managed: Kube | None,
    now: Callable[[], datetime] = utc_now,
    listening: Callable[[str], None] = lambda _: None,
    receiving: Callable[[str], None] = lambda _: None,
    receiving_push: Callable[[str], None] = lambda _: None,
    holder: str = f"{socket.gethostname()}_{os.getpid()}",
    registry: CollectorRegistry | None = None,
) -> None:
    """Run the agent until cancelled.

    `hub` is the hub's API server and `managed` the managed cluster's. `managed` may be None if
    there is a summaries file and no Secret is needed. `listening` is called with the base URL of
    `/healthz`, `/readyz` and `/metrics`, `receiving` with that of OTLP, `receiving_push` with that
    of pushes. `holder` identifies this process among other agents. Its metrics are in `registry`,
    by default its own. Raises CannotListen.
    """
    registry = registry or CollectorRegistry()
    metrics = AgentMetrics(registry, lambda: now().timestamp())
    identity = PublisherIdentity("" if managed else socket.gethostname())
    publisher = Publisher(hub, settings.cluster, now, identity=identity)
    watched = (
        WatchedSecrets(managed, settings.namespace, settings.watched_secrets) if managed else None
    )
    async with (
        _otlp(settings, now, receiving, registry) as received,
        round_runner(settings, managed, now, received, metrics.api_called, watched) as performer,
    ):
        metrics.held.set_function(lambda: performer.answer_budget.held)
        agent = Agent(performer, publisher, metrics, settings.limits)
        bind = settings.metrics_bind_address
        async with (
            serve_endpoints(bind, registry=registry, ready=agent.unready_reason) as url,
            AsyncExitStack() as push,
            asyncio.TaskGroup() as tasks,
        ):
            if settings.push:
                door = receiving_pushes(settings.push, agent, performer.scoring.secrets, metrics)
                receiving_push(await push.enter_async_context(door))
            listening(url)
            _say(settings, url)

            def configure(text: str) -> None:
                agent.configure(text)
                if received is not None:
                    received.configure(text)

            tasks.create_task(_watch(settings, managed, configure))
            if watched is not None:
                tasks.create_task(watched.run())
            if managed is not None:
                lease = AddOnLease(managed, settings.namespace, holder, identity, now)
                tasks.create_task(lease.keep(agent.configured))
                await lease.decided.wait()
                if settings.inventory:
                    reported = keep_inventory(
                        hub,
                        managed,
                        settings.cluster,
                        settings.inventory_node_labels,
                        metrics=InventoryMetrics(registry, lambda: now().timestamp()),
                        identity=identity,
                        now=now,
                    )
                    tasks.create_task(reported)
            tasks.create_task(agent.run())


def _say(settings: AgentSettings, url: str) -> None:
    log.info(
        "agent started",
        extra={
            "version": __version__,
            "cluster": settings.cluster,
            "namespace": settings.namespace,
            "summaries": str(settings.summaries_file or f"ConfigMap {names.CONFIG_MAP}"),
            "metrics": f"{url}/metrics",
        },
    )


@asynccontextmanager
async def round_runner(
    settings: AgentSettings,
    managed: Kube | None,
    now: Callable[[], datetime],
    received: ReceivedSource | None = None,
    observe: Observe = unobserved,
    watched: WatchedSecrets | None = None,
    secrets: CallCredentials | None = None,
) -> AsyncIterator[RoundRunner]:
    """Yield a runner of rounds with an open HTTP client.

    Credentials are those of the Secrets of `managed`, unless `secrets` has others.
    """
    own = ServiceAccount(settings.service_account_token_hosts)
    async with http_client(settings.destinations) as client:
        tokens = IssuedTokens(client)
        secrets = secrets or AgentSecrets(managed, settings.namespace, tokens, own, watched)
        scoring = ScoringApi(
            settings.cluster, client, secrets, settings.limits, observe, settings.max_series
        )
        objects = KubernetesSource(managed)
        sources = Sources(
            client, secrets, settings.limits, settings.prometheus_url, received, objects
        )
        budget = AnswerBudget(settings.answers_in_flight)
        runner = RoundRunner(settings.cluster, sources, scoring, now, budget, settings.max_series)
        budget.total = max(budget.total, runner.max_memory)
        yield runner


@asynccontextmanager
async def _otlp(
    settings: AgentSettings,
    now: Callable[[], datetime],
    receiving: Callable[[str], None],
    registry: CollectorRegistry,
) -> "AsyncIterator[ReceivedMetrics | None]":
    """Receive OTLP while the context lasts; import its optional packages only then."""
    if not settings.otlp_bind_address:
        yield None
        return
    from dsf.agent.otlp import receiver  # noqa: PLC0415 - see above
    from dsf.agent.otlp.received_metrics import ReceivedMetrics  # noqa: PLC0415 - see above
    from dsf.agent.otlp.receiver import OtlpMetrics  # noqa: PLC0415 - see above

    memory = ReceivedMetrics(lambda: now().timestamp())
    registry.register(OtlpMetrics(memory))
    async with receiver.receiving(settings.otlp_bind_address, memory) as url:
        receiving(url)
        yield memory


async def _watch(
    settings: AgentSettings, managed: Kube | None, emit: Callable[[str], None]
) -> None:
    if settings.summaries_file is not None:
        await watch_file(settings.summaries_file, emit)
    elif managed is not None:
        await watch_config_map(managed, settings.namespace, emit)
    else:
        raise ValueError("either a summaries file or the managed cluster's API server is required")
