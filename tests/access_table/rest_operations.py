"""The rows of REST: each operation of the OpenAPI document, and what the document leaves out."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from optimizer.wire.rollout import RolloutCommand
from tests.access_table.answers import Answer, Asker
from tests.access_table.operations import Operation
from tests.optimizer.build import body
from tests.optimizer.service.kept_fleet import WAITING
from tests.repository import ROOT

WHERE = "?namespace=default"
ROLLOUT = "/rollouts/default/default"
KEPT = "/placementoptimizations"
COMMANDS: tuple[RolloutCommand, ...] = ("pause", "resume", "undo", "cancel")
NAMED: dict[str, Any] = {"namespace": "default"}
ROLLBACK: dict[str, Any] = {**NAMED, "toRevision": 1}

OPEN = ("/", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json")
FILES = "/static-offline-docs/swagger-ui.css"
MCP = ("/mcp", "/mcp/")
"""Paths that the OpenAPI document leaves out; the tables of MCP have the rows of `/mcp`."""


def got(path: str) -> Callable[[Asker], Awaitable[Answer]]:
    return lambda asker: asker.rest("GET", path)


def posted(path: str, sent: Any = None) -> Callable[[Asker], Awaitable[Answer]]:
    return lambda asker: asker.rest("POST", path, sent)


async def recorded(asker: Asker) -> Answer:
    """Ask for a plan by a digest that no plan has, unless the caller may see which there are."""
    async with asker.client() as http:
        listed = await http.get(f"/plans{WHERE}")
    digest = listed.json()["items"][0]["digest"] if listed.is_success else "0" * 64
    return await asker.rest("GET", f"/plans/{digest}{WHERE}")


DOCUMENTED: dict[str, tuple[Operation, ...]] = {
    "GET /addonplacementscores": (
        Operation("GET /addonplacementscores", got("/addonplacementscores")),
        Operation(
            "GET /addonplacementscores of a cluster",
            got("/addonplacementscores?namespace=worker01"),
        ),
    ),
    "GET /placements/status": (
        Operation("GET /placements/status", got(f"/placements/status{WHERE}")),
    ),
    "POST /reset": (Operation("POST /reset", posted("/reset", NAMED), writes=True),),
    "GET /fleet": (Operation("GET /fleet", got(f"/fleet{WHERE}")),),
    "GET /scores/history": (
        Operation("GET /scores/history", got("/scores/history?score=power&cluster=worker01")),
        Operation("GET /scores/history of all clusters", got("/scores/history?score=power")),
    ),
    "GET /scorers/history": (Operation("GET /scorers/history", got("/scorers/history")),),
    "POST /optimize": (
        Operation("POST /optimize, a dry run", posted("/optimize?dry_run=true", body())),
        Operation("POST /optimize", posted("/optimize", body()), writes=True),
    ),
    "GET /fleet/events": (
        Operation("GET /fleet/events", lambda asker: asker.events(f"/fleet/events{WHERE}")),
    ),
    "POST /plan": (Operation("POST /plan", posted("/plan", {"objective": {"performance": 1}})),),
    "GET /plans": (Operation("GET /plans", got(f"/plans{WHERE}")),),
    "GET /plans/{digest}": (Operation("GET /plans/{digest}", recorded),),
    "POST /rollback": (
        Operation("POST /rollback, a dry run", posted("/rollback", {**ROLLBACK, "dryRun": True})),
        Operation("POST /rollback", posted("/rollback", ROLLBACK), writes=True),
    ),
    "GET /rollouts": (Operation("GET /rollouts", got(f"/rollouts{WHERE}"), "paused"),),
    "GET /rollouts/{namespace}/{optimization}": (
        Operation("GET /rollouts/{namespace}/{optimization}", got(ROLLOUT), "paused"),
    ),
    "GET /rollouts/{namespace}/{optimization}/events": (
        Operation(
            "GET /rollouts/{namespace}/{optimization}/events",
            lambda asker: asker.events(f"{ROLLOUT}/events"),
            "paused",
        ),
    ),
    "POST /rollouts/{namespace}/{optimization}/{command}": tuple(
        Operation(
            f"POST /rollouts/{{namespace}}/{{optimization}}/{command}",
            posted(f"{ROLLOUT}/{command}"),
            "paused" if command == "resume" else "rolling",
            writes=True,
        )
        for command in COMMANDS
    ),
    f"GET {KEPT}": (Operation(f"GET {KEPT}", got(f"{KEPT}{WHERE}"), "kept"),),
    f"GET {KEPT}/{{namespace}}/{{optimization}}": (
        Operation(
            f"GET {KEPT}/{{namespace}}/{{optimization}}", got(f"{KEPT}/default/kept"), "kept"
        ),
    ),
    f"GET {KEPT}/{{namespace}}/{{optimization}}/plan": (
        Operation(
            f"GET {KEPT}/{{namespace}}/{{optimization}}/plan",
            got(f"{KEPT}/default/kept/plan"),
            "kept",
        ),
    ),
    f"POST {KEPT}/{{namespace}}/{{optimization}}/approve": (
        Operation(
            f"POST {KEPT}/{{namespace}}/{{optimization}}/approve",
            posted(f"{KEPT}/default/kept/approve?digest={WAITING}"),
            "kept",
            writes=True,
        ),
    ),
    "GET /constraints": (Operation("GET /constraints", got(f"/constraints{WHERE}")),),
    "POST /constraints": (
        Operation(
            "POST /constraints",
            posted("/constraints", {"namespace": "default", "remember": {"drain": ["worker02"]}}),
            writes=True,
        ),
    ),
    "GET /healthz": (Operation("GET /healthz", got("/healthz")),),
    "GET /readyz": (Operation("GET /readyz", got("/readyz")),),
    "GET /metrics": (Operation("GET /metrics", got("/metrics")),),
}
"""The rows of each operation of the OpenAPI document."""

REST = (
    *(row for rows in DOCUMENTED.values() for row in rows),
    *(Operation(f"GET {path}", got(path)) for path in OPEN),
    Operation("GET /static-offline-docs/...", got(FILES)),
)


def asked_by_the_page() -> set[str]:
    """The operations that the page's source asks by REST, with `{}` for what it fills in."""
    source = (ROOT / "optimizer/page/src/api/rest-api.ts").read_text(encoding="utf-8")
    paths = re.findall(r'[(<\s]["`](/[a-z/]+(?:\$\{[^}]*\})?)', source)
    return {re.sub(r"\$\{.*|/$", "", path) for path in paths}
