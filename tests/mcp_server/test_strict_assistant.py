"""A strict assistant on simulated OCM: each sentence and number is checked against the hub."""

from typing import Any

import pytest
from fastmcp import Client

from tests.mcp_server.service import serving_hub
from tests.mcp_server.strict_play import StrictAssistant, play
from tests.optimizer.follow.placement_status.guide_run import guide_run

HUB = "https://hub.example:6443"


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_each_sentence_of_apply_roll_back_and_reset_is_true(era: Any, asks: bool) -> None:
    run = await guide_run()
    assistant = StrictAssistant(run.hub, "default", HUB)

    def planned(objective: str, *workloads: str) -> Any:
        async def arguments() -> dict[str, Any]:
            return {"objective": objective, "workloads": workloads}

        return arguments

    async with serving_hub(run.hub, run.optimizer, read_only=False, hub_name=HUB) as service:
        handler = {"elicitation_handler": assistant.user} if asks else {}
        async with Client(service.mcp, mode=era, **handler) as client:
            plans = [planned("power"), planned("performance"), planned("power", "app02")]
            await play(assistant, client, "default", plans, run.settle)
    for rule in ("_applied", "_repeated", "_not_in_force", "_in_force", "_landed", "_deleted"):
        assert assistant.checked[rule] > 0, rule
    if asks and era == "auto":
        assert assistant.checked["_at_stake"] == assistant.checked["_objects"] > 1
        assert assistant.checked["_asked_to_reset"] == 2
