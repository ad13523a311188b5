"""What a strict assistant does: plan, approve, apply, go back, apply again, reset; all checked."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

from dsf.kube.port import Kube
from tests.mcp_server.strict_reader import StrictReader, read_truth


class StrictAssistant:
    """Calls tools; everything that it reads, and that its user is asked, is checked."""

    def __init__(self, hub: Kube, namespace: str, hub_name: str) -> None:
        self._hub = hub
        self._namespace = namespace
        self._hub_name = hub_name
        self._asked: list[str] = []
        self._about: tuple[str, ...] = ()
        self._told: list[str] = []
        """What a plan says that it will do: checked once it was applied."""
        self.checked: Counter[str] = Counter()

    async def user(self, message: str, *_: object) -> ElicitResult[Any]:
        """Say yes; the question is checked after the write."""
        self._asked.append(message)
        return ElicitResult(action="accept", content={"confirm": True})

    async def call(self, client: Client[Any], tool: str, **arguments: Any) -> Any:
        """Call a tool, check all that it said, and return the structured result."""
        before = await read_truth(self._hub, self._namespace)
        result = await client.call_tool(tool, arguments, raise_on_error=False)
        after = await read_truth(self._hub, self._namespace)
        if tool in ("plan_placement", "rollback"):
            self._about = tuple(arguments.get("workloads", ()))
        reader = StrictReader(
            self._namespace, self._hub_name, before, after, self._about, self.checked
        )
        while self._asked:
            reader.check(self._asked.pop())
        text, shown = result.content[0].text, result.structured_content or {}
        if tool == "plan_placement" or shown.get("plan"):
            *self._told, text = text.splitlines()
        elif reader.writes:
            reader.check("\n".join(self._told))
            self._told = []
        reader.check(text)
        return result.structured_content


async def play(
    assistant: StrictAssistant,
    client: Client[Any],
    namespace: str,
    plans: Sequence[Callable[[], Awaitable[dict[str, Any]]]],
    settle: Callable[[], Awaitable[object]],
) -> None:
    """Apply two plans, go back, apply again, reset; `plans` return arguments of plan_placement."""
    where, digests = {"namespace": namespace}, list[str]()

    async def follow() -> None:
        await settle()
        await assistant.call(client, "follow_rollout", **where)

    for arguments in plans:
        shown = await assistant.call(client, "plan_placement", **await arguments())
        digests.append(shown["digest"])
        await assistant.call(client, "apply_plan", digest=shown["digest"])
        await assistant.call(client, "apply_plan", digest=shown["digest"])
        await follow()
    await assistant.call(client, "apply_plan", digest=digests[0])
    back = await assistant.call(client, "rollback", **where)
    if back and back.get("plan"):
        digests.append(back["plan"]["digest"])
        await assistant.call(client, "apply_plan", digest=digests[-1])
    elif back:
        digests.append(back["applied"]["digest"])
    for digest in digests:
        await assistant.call(client, "apply_plan", digest=digest)
    await follow()
    goes = await assistant.call(client, "reset_placements", **where)
    await assistant.call(client, "reset_placements", **where, digest="0" * 64)
    await assistant.call(client, "reset_placements", **where, digest=goes["digest"])
    await assistant.call(client, "reset_placements", **where)
    await follow()
    for digest in digests:
        await assistant.call(client, "apply_plan", digest=digest)
