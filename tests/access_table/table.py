"""Asks a served hub every operation as every caller, and writes docs/reference/access-by-caller.md.

`make references` writes the page; it takes about a minute.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from dsf.api.names import HUB_NAMESPACE
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import LEASE, NAMESPACE
from dsf.kube.port import Object
from mcp_server.app import create_service_app
from optimizer.api.serving import listen, serve, url
from optimizer.domain.settings import OptimizerSettings
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.service import optimization_controller
from optimizer.service.optimizer import Optimizer
from tests.access_table.answers import Answer, Asker, Refused
from tests.access_table.callers import CALLERS, OWN, Caller, own_rights, table
from tests.access_table.mcp_operations import MCP, PAGE
from tests.access_table.operations import Operation
from tests.access_table.rest_operations import REST
from tests.dsf.agent.servers import matrix, replying, serving
from tests.kube_wrappers.authorized import Authorized
from tests.kube_wrappers.reviewing_hub import AccessTable, ReviewingHub
from tests.optimizer.build import NOW, request
from tests.optimizer.neighbours import TEAM, applied, hub_of_two_teams, run_by_hand
from tests.optimizer.service.kept_fleet import declare_waiting

ROWS = (*REST, *MCP, *PAGE.values())
REFUSALS = frozenset({"Unauthorized", "Forbidden", "OptimizerForbidden", "ReadOnly"})
ADMINISTRATOR = CALLERS[-1]


@dataclass(frozen=True)
class Cell:
    """What a caller got.

    `wrote`: the audit log has a line of a write that was not refused. `in_full`: the administrator
    is shown the same.
    """

    answer: Answer
    wrote: bool
    in_full: bool = False

    @property
    def text(self) -> str:
        """Return the text of the cell."""
        if self.answer.refused:
            return " ".join(filter(None, (self.answer.refused, self.answer.words)))
        if self.wrote:
            return "**writes**"
        if self.in_full:
            return "yes"
        return "less" if self.answer.shown else "nothing"


class AuditLines(logging.Handler):
    """Collects the lines of the audit log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(record)

    def wrote(self, caller: Caller) -> bool:
        """Return whether a caller has written since this was asked last."""
        own = [line for line in self.lines if line.user == caller.user.name]
        self.lines.clear()
        return bool({line.outcome for line in own} - REFUSALS)


@contextmanager
def audited() -> Iterator[AuditLines]:
    """Collect the lines of the audit log meanwhile."""
    logger, lines = logging.getLogger("audit"), AuditLines()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(lines)
    try:
        yield lines
    finally:
        logger.removeHandler(lines)
        logger.setLevel(level)


async def hub_in(state: str) -> EmbeddedHub:
    """A hub of two teams on which a plan for power has replaced one for performance.

    `rolling`: a rollout to performance has begun since; `paused`: and was paused. `kept`: a plan of
    a PlacementOptimization waits for an approval.
    """
    hub = await hub_of_two_teams(table())
    await run_by_hand(hub, "theirs", "worker02", "1", TEAM)
    for score in ("performance", "power"):
        await applied(hub, request(score))
    if state == "kept":
        await hub.create(LEASE, another_keeps())
        await declare_waiting(hub)
    elif state != "replaced":
        await applied(hub, request("performance", rollout="Stepwise"))
    if state == "paused":
        await Optimizer(hub, now=lambda: NOW).rollouts.command("default", "default", "pause")
    return hub


async def copy_of(hub: EmbeddedHub) -> EmbeddedHub:
    """A hub with the same objects, which costs less than to plan again."""
    copy = ReviewingHub(now=lambda: NOW, access=table())
    resources = sorted(hub.server.catalog.all(), key=lambda item: item.kind != NAMESPACE)
    for resource in resources:
        for obj in () if resource.review else (await hub.list(resource.kind)).items:
            objects, metadata = copy.server.objects, obj["metadata"]
            old = objects.find(resource.kind, metadata["name"], metadata.get("namespace"))
            objects.put(resource, old, obj)
    return copy


def another_keeps() -> Object:
    """The Lease of another server's controller: the served one looks at nothing that is kept."""
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 86_400}
    times = dict.fromkeys(("acquireTime", "renewTime"), "2126-01-01T00:00:00.000000Z")
    metadata = {"name": optimization_controller.LEASE, "namespace": HUB_NAMESPACE}
    return LEASE.object(metadata=metadata, spec={**spec, **times})


@asynccontextmanager
async def served(hub: EmbeddedHub, *, impersonates: bool) -> AsyncIterator[str]:
    """Serve an optimizer of a hub, which has rights of its own; yield its URL."""
    own = Authorized(hub, OWN, AccessTable(rights={OWN: own_rights(impersonates=impersonates)}))

    def impersonate(user: Any) -> Authorized:
        return Authorized(hub, user.name, table())

    access = Access(DelegatedAuth(hub), impersonate if impersonates else None)
    async with serving(replying(matrix())) as prometheus:
        settings = OptimizerSettings(prometheus_url=prometheus.url)
        optimizer = Optimizer(own, settings, now=lambda: NOW)
        app = create_service_app(optimizer, read_only=False, access=access)
        with listen("127.0.0.1", 0) as listener:
            task = asyncio.create_task(serve(app, listener))
            try:
                yield url(listener)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


class Servers:
    """The servers that are up, by the state of their hub and whether they impersonate."""

    def __init__(self) -> None:
        self._hubs: dict[str, EmbeddedHub] = {}
        self._up: dict[tuple[str, bool], tuple[str, AsyncExitStack]] = {}

    async def url(self, operation: Operation, caller: Caller) -> str:
        """Return the URL of the server to ask."""
        key = state, impersonates = operation.state, caller.impersonated
        if state not in self._hubs:
            self._hubs[state] = await hub_in(state)
        if key not in self._up:
            stack = AsyncExitStack()
            door = served(await copy_of(self._hubs[state]), impersonates=impersonates)
            self._up[key] = await stack.enter_async_context(door), stack
        return self._up[key][0]

    async def stop(self, operation: Operation, caller: Caller) -> None:
        """Stop a server whose hub was written."""
        _, stack = self._up.pop((operation.state, caller.impersonated))
        await stack.aclose()

    async def stop_all(self) -> None:
        """Stop all servers."""
        for _, stack in self._up.values():
            await stack.aclose()


async def answer_to(operation: Operation, url: str, caller: Caller) -> Answer:
    """Ask one operation as one caller."""
    try:
        return await operation.ask(Asker(url, caller))
    except Refused as refused:
        return refused.answer


async def is_in_full(operation: Operation, url: str, caller: Caller, answer: Answer) -> bool:
    """Return whether a caller is shown what the administrator is.

    The server watches plans meanwhile, so what it shows may change between two questions.
    """
    most = await answer_to(operation, url, ADMINISTRATOR)
    again = answer if answer == most else await answer_to(operation, url, caller)
    return again == most


async def cell_of(operation: Operation, caller: Caller, servers: Servers, log: AuditLines) -> Cell:
    """Return what a caller got; a write is the last question that its server is asked."""
    url = await servers.url(operation, caller)
    answer = await answer_to(operation, url, caller)
    wrote = log.wrote(caller)
    where = f"{operation.name} as {caller.name}"
    assert not (wrote and answer.refused), f"{where} was refused after it had written"
    assert wrote == (operation.writes and not answer.refused), where
    if wrote:
        await servers.stop(operation, caller)
    if wrote or answer.refused:
        return Cell(answer, wrote)
    return Cell(answer, wrote, await is_in_full(operation, url, caller, answer))


async def asked(rows: Iterable[Operation] = ROWS) -> dict[str, dict[str, Cell]]:
    """Ask operations as all callers; return the cells by operation and caller."""
    servers = Servers()
    try:
        with audited() as log:
            return {
                row.name: {
                    caller.name: await cell_of(row, caller, servers, log) for caller in CALLERS
                }
                for row in rows
            }
    finally:
        await servers.stop_all()
