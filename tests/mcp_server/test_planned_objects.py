"""What a plan that is not applied would write, as YAML, by pages of the call that it names."""

import re
from typing import Any

import pytest
import yaml
from fastmcp import Client

from dsf.kube import kinds
from dsf.kube.clock import utc_now
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.evals.fleets import FLEETS


async def said(client: Client[Any], tool: str, **arguments: Any) -> str:
    return str((await client.call_tool(tool, arguments)).content[0].text)


MORE = {
    "add": [{"name": f"w{n}", "like": "worker01"} for n in range(3)],
    "run": [{"name": f"n{n}", "like": "app01", "amount": 2} for n in range(3)],
}


@pytest.mark.parametrize(("what_if", "pages"), [({}, 1), (MORE, 2)])
async def test_a_new_plan_is_shown_as_yaml_page_by_page(
    what_if: dict[str, Any], pages: int
) -> None:
    hub = await FLEETS["guide"]()
    optimizer = Optimizer(hub, now=utc_now)
    asked = {"objective": "performance", "what_if": what_if, "objects": True}
    async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
        made = await client.call_tool("plan_placement", asked)
        assert made.structured_content is not None
        text, written = made.content[0].text, made.structured_content["writes"]
        found = re.search(r"# Not applied; what plan (\w+) would write:\n", text)
        assert found
        assert len(text) < 5_000
        shown, left = text[found.end() :], re.compile(r"offset (\d+)\.$")
        objects, count = [*yaml.safe_load_all(shown)], 1
        while at := left.search(shown.strip()):
            page = {"plan": found[1], "objects": "plan", "offset": int(at[1])}
            assert f"plan_history with objects plan, plan {found[1]}, offset" in shown
            shown = await said(client, "plan_history", **page)
            objects += yaml.safe_load_all(shown)
            count += 1
        if not what_if:
            digest = made.structured_content["digest"]
            await client.call_tool("apply_plan", {"digest": digest})
            shown = next(obj["metadata"] for obj in objects if obj["kind"] == "Placement")
            there = await hub.get(kinds.PLACEMENT, shown["name"], "default")
            added = there["metadata"]["annotations"].keys() - shown.get("annotations", {}).keys()
            assert f"adds the annotations {', '.join(sorted(added))} to each." in text
    assert count == pages
    assert len({(obj["kind"], obj["metadata"]["name"]) for obj in objects}) == written["create"]
    assert {obj["kind"] for obj in objects} == {"Placement", "PlacementBinding"}


async def test_what_a_plan_deletes_is_named_beside_what_it_writes() -> None:
    optimizer = Optimizer(await FLEETS["running"](), now=utc_now)
    async with Client(create_mcp(lambda: optimizer)) as client:
        lost = {"lose": ["worker02"]}
        text = await said(
            client, "plan_placement", objective="performance", objects=True, what_if=lost
        )
        assert "it would delete PlacementBinding binding-worker02-" in text
        (stopped,) = yaml.safe_load_all(text[text.index("apiVersion") :])
        assert stopped["metadata"] == {"name": "app02-placement", "namespace": "default"}
        assert stopped["spec"]["numberOfClusters"] == 0
        same = await said(client, "plan_placement", objective="performance", objects=True)
        assert same.endswith("would write:\n# none\n")
