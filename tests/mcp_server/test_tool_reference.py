"""docs/reference/assistant-tools.md lists the tools as the server has them.

python -m tests.mcp_server.test_tool_reference writes the generated part.
"""

import asyncio
import re
from pathlib import Path
from typing import Any

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from mcp_server.server import create_mcp
from mcp_server.tools.registration import tool_results
from optimizer.domain.settings import OptimizerSettings
from optimizer.service.optimizer import Optimizer

PAGE = Path(__file__).parents[2] / "docs/reference/assistant-tools.md"
BEGIN, END = "<!-- generated: tools -->", "<!-- end -->"


async def test_the_page_lists_every_tool_argument_and_field() -> None:
    assert await _generated() == _part(PAGE.read_text()), (
        "run: python -m tests.mcp_server.test_tool_reference"
    )


def _part(page: str) -> str:
    return page.partition(BEGIN)[2].partition(END)[0]


async def _generated() -> str:
    settings = OptimizerSettings(prometheus_url="http://prometheus")
    mcp = create_mcp(lambda: Optimizer(EmbeddedHub(), settings, now=utc_now), read_only=False)
    results = tool_results()
    return "\n".join(["", *[_tool(tool, results) for tool in await mcp.list_tools()], ""])


def _tool(tool: Any, results: Any) -> str:
    schema = results[tool.name].model_json_schema(mode="serialization")
    asked = [
        f"| `{name}` | {_words(field)} |" for name, field in tool.parameters["properties"].items()
    ]
    told = [
        f"| `{name}` | {_words(field)}{_inner(field, schema)} |"
        for name, field in schema["properties"].items()
    ]
    kind = "reads" if tool.annotations.read_only_hint else "writes"
    head = f"### {tool.name}\n\n{tool.title} ({kind}). {' '.join(tool.description.split())}\n"
    arguments = ["| argument | |", "|---|---|", *asked]
    fields = ["| field of the result | |", "|---|---|", *told]
    return "\n".join([head, *arguments, "", *fields, ""])


def _words(field: dict[str, Any]) -> str:
    said = [str(field.get("description") or "")]
    if field.get("examples"):
        said.append(f"For example `{field['examples'][0]}`.".replace("|", "\\|"))
    return " ".join(filter(None, said)) or _type(field)


def _inner(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the fields of the objects that a field holds."""
    for option in (field, field.get("items") or {}, *field.get("anyOf", ())):
        if "$ref" in option:
            model = schema["$defs"][option["$ref"].rpartition("/")[2]]
            if "properties" in model:
                return f" Fields: {', '.join(f'`{name}`' for name in model['properties'])}."
    return ""


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"])
    return str(field.get("type") or "object")


def _write() -> None:
    made = asyncio.run(_generated())
    page = PAGE.read_text()
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: f"{BEGIN}{made}{END}", page))


if __name__ == "__main__":
    _write()
