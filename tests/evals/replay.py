"""Makes the calls of conversations against an embedded hub, through a real MCP client."""

import json
import math
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from fastmcp import Client
from mcp_types import Tool

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from mcp_server.server import create_mcp
from optimizer.domain.settings import OptimizerSettings
from optimizer.service.optimizer import Optimizer
from tests.evals.conversation import Conversation, ToolCall, missing_facts, wrong_facts
from tests.evals.fleets import FLEETS, INJECTION
from tests.evals.hub_facts import HubFacts, hub_facts, not_written
from tests.evals.recorded_past import PASTS, RecordedPast, prometheus
from tests.evals.told_names import guessed
from tests.mcp_server.tokens import answer_tokens

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True)
class Exchange:
    """One call with its result. `text` is what a model reads: text and structured content."""

    call: ToolCall
    text: str
    structured: Mapping[str, Any] | None
    failed: bool
    guessed: tuple[str, ...] = ()

    @property
    def read(self) -> str:
        """Everything that a model may read of the result."""
        return self.text + ("\n" + json.dumps(self.structured) if self.structured else "")


@dataclass
class Replay:
    """The calls of one conversation with their results."""

    conversation: Conversation
    exchanges: list[Exchange] = field(default_factory=list)
    not_written: list[str] = field(default_factory=list)

    @property
    def told(self) -> str:
        """The question, and all that was answered."""
        return "\n".join([self.conversation.question, *(item.read for item in self.exchanges)])

    @property
    def characters(self) -> int:
        """Characters of all results: texts and structures."""
        return sum(len(item.read) for item in self.exchanges)

    @property
    def tokens(self) -> int:
        """Tokens of all results, at most."""
        return math.ceil(sum(answer_tokens(item.text, item.structured) for item in self.exchanges))


class AssistantClient:
    """An MCP client of a server on one hub, with or without the tools that write."""

    def __init__(self, client: Client[Any], tools: list[Tool]) -> None:
        self._client = client
        self._simulated = dict[str, Any]()
        self.tools = tools

    @property
    def instructions(self) -> str:
        """What the server tells every assistant."""
        return self._client.instructions or ""

    async def call(self, replay: Replay, call: ToolCall) -> Exchange:
        """Make a call, and add it with its result to the conversation."""
        arguments = filled(call.arguments, replay.exchanges)
        schemas = [item.input_schema for item in self.tools]
        unknown = guessed(arguments, replay.told, schemas)
        asked = json.dumps([call.tool, arguments])
        result = self._simulated.get(asked) or await self._client.call_tool(
            call.tool, arguments, raise_on_error=False
        )
        if call.tool == "simulate_settings":  # it takes long, and each wording asks the same
            self._simulated[asked] = result
        text = "\n".join(getattr(item, "text", "") for item in result.content)
        exchange = Exchange(
            ToolCall(call.tool, arguments, call.fails),
            text,
            result.structured_content,
            failed=bool(result.is_error),
            guessed=tuple(unknown),
        )
        replay.exchanges.append(exchange)
        return exchange


@asynccontextmanager
async def assistant(
    hub: EmbeddedHub, *, writes: bool, past: RecordedPast | None = None
) -> AsyncIterator[AssistantClient]:
    """Yield a client of a server on this hub, whose agents a Prometheus has scraped."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(prometheus(past)) if past else ""
        optimizer = Optimizer(hub, OptimizerSettings(prometheus_url=url), now=utc_now)
        mcp = create_mcp(lambda: optimizer, read_only=not writes)
        client = await stack.enter_async_context(Client(mcp))
        yield AssistantClient(client, await client.list_tools())


async def replayed(client: AssistantClient, conversation: Conversation) -> Replay:
    """Make the calls of a conversation, one after the other."""
    replay = Replay(conversation)
    for call in conversation.calls:
        await client.call(replay, call)
    return replay


async def replay_all(wanted: list[Conversation]) -> list[Replay]:
    """Replay conversations; those that only read share one hub for each fleet."""
    done: list[Replay] = []
    for fleet in dict.fromkeys(item.fleet for item in wanted):
        reading = [item for item in wanted if item.fleet == fleet and not item.writes]
        hub, past = await FLEETS[fleet](), PASTS.get(fleet)
        facts = await hub_facts(hub, past)
        async with assistant(hub, writes=False, past=past) as client:
            done += [await replayed(client, true_of(facts, item)) for item in reading]
    for item in wanted:
        if item.writes:
            hub = await FLEETS[item.fleet]()
            facts = await hub_facts(hub)
            async with assistant(hub, writes=True) as client:
                done.append(await replayed(client, true_of(facts, item)))
            done[-1].not_written = await not_written(hub, item.written)
    return done


def true_of(facts: HubFacts, conversation: Conversation) -> Conversation:
    """Return a conversation that is judged by what is true of a hub."""
    return replace(
        conversation,
        facts=tuple(map(facts.filled, conversation.facts)),
        wrong=tuple(map(facts.filled, conversation.wrong)),
    )


def problems(replay: Replay) -> Iterator[str]:
    """Yield what is wrong with the replay of a conversation's own calls."""
    asked, made = replay.conversation, replay.exchanges
    if asked.remains:
        return
    yield from _call_problems(asked, made)
    yield from (f"the hub differs: {item}" for item in replay.not_written)
    if missing := missing_facts(asked, "\n".join(item.read for item in made)):
        yield f"the results lack {missing}"
    if wrong := wrong_facts(asked, "\n".join(item.text for item in made)):
        yield f"the results say {wrong}"
    if len(made) > asked.max_calls:
        yield f"{len(made)} calls; at most {asked.max_calls}"
    if replay.tokens > asked.max_tokens:
        yield f"{replay.tokens} tokens; at most {asked.max_tokens}"
    if asked.max_characters and replay.characters > asked.max_characters:
        yield f"{replay.characters} characters; at most {asked.max_characters}"


def _call_problems(asked: Conversation, made: Sequence[Exchange]) -> Iterator[str]:
    for wanted, exchange in zip(asked.calls, made, strict=True):
        if exchange.failed is not wanted.fails:
            did = "failed" if exchange.failed else "did not fail"
            yield f"{wanted.tool} {did}: {exchange.text}"
        if exchange.guessed:
            yield f"{wanted.tool} names what nobody told: {exchange.guessed}"
        if INJECTION.split()[0] in _QUOTED.sub("", exchange.text):
            yield f"{exchange.call.tool} says in its own words what a stranger wrote"
        if "internal error" in exchange.read.lower():
            yield "an internal error"


def filled(value: Any, exchanges: list[Exchange]) -> Any:
    """Return arguments in which each `$2.digest` is that field of the second result."""
    match value:
        case str() if found := re.fullmatch(r"\$(\d+)\.([\w.]+)", value):
            start: Any = exchanges[int(found[1]) - 1].structured or {}
            return reduce(_field, found[2].split("."), start)
        case dict():
            return {key: filled(item, exchanges) for key, item in value.items()}
        case list():
            return [filled(item, exchanges) for item in value]
        case _:
            return value


def _field(value: Any, name: str) -> Any:
    return value[int(name)] if isinstance(value, list) else value[name]
