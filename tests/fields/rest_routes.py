"""The fields of each route of the HTTP API, as its OpenAPI document publishes them."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import httpx

from dsf.kube.embedded import EmbeddedHub
from optimizer.api.app import create_app
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.overview.plan_request import PartialRequest
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.planning import question
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from tests.dsf.agent.servers import matrix, replying, serving
from tests.fields.door import Case, Door, Fields, leaves, with_values
from tests.fields.optimize_request import CASES as OPTIMIZE_CASES
from tests.fields.optimize_request import base_body, hub_in, on_hub, seen
from tests.optimizer.build import NOW
from tests.optimizer.service.kept_fleet import WAITING

DEFAULT = {"query:namespace": "default"}
ROLLOUT = {"path:namespace": "default", "path:optimization": "default"}
COMMAND = {**ROLLOUT, "path:command": "pause"}
KEPT = {"path:namespace": "default", "path:optimization": "kept"}
APPROVED = {**KEPT, "query:digest": WAITING}
HISTORY = {"query:score": "power", "query:cluster": "worker01"}
ASKED = {"body:objective": {"performance": 1}}
COPY = {
    **ASKED,
    "body:whatIf.lose": ["worker01", "worker02"],
    "body:whatIf.add": [{"name": "worker03", "like": "worker01"}],
}
ADDED_GPUS = {
    **ASKED,
    "body:whatIf.drain": ["worker01", "worker02"],
    "body:whatIf.add": [
        {
            "name": "worker03",
            "like": "worker01",
            "gpus": [{"product": "NVIDIA-GH200-480GB", "count": 1}],
        }
    ],
}
CHANGED = {"score": "performance", "cluster": "worker01", "entry": "2g.24gb", "value": 99}
RUN = {**ASKED, "body:whatIf.run": [{"name": "new", "amount": 1}]}
NEW_POLICY = {
    **ASKED,
    "body:whatIf.lose": ["worker02"],
    "body:whatIf.policies": [
        {"name": "new", "supplies": [{"kind": "gpu", "device": "3g.48gb", "amount": 9}]}
    ],
}
RESCORED = {**ASKED, "body:whatIf.scores": [CHANGED]}
BASE: dict[str, Fields] = {
    "post /optimize": {f"body:{name}": value for name, value in base_body().items()},
    "post /reset": {"body:namespace": "default"},
    "post /rollback": {"body:namespace": "default"},
    "post /constraints": {"body:namespace": "default"},
}
"""What each question of a route says."""

CASES: dict[str, dict[str, Case]] = {
    "get /addonplacementscores": {"query:namespace": Case("worker01"), "query:name": Case("power")},
    "get /placements/status": {
        "query:namespace": Case("other", DEFAULT, "applied"),
        "query:optimization": Case("team-b", DEFAULT, "applied"),
    },
    "post /reset": {
        "body:namespace": Case("other", on="applied"),
        "body:optimization": Case("team-b", on="applied"),
        "body:stopWorkloads": Case(True, on="applied"),
    },
    "get /fleet": {"query:namespace": Case("worker01")},
    "get /fleet/events": {"query:namespace": Case("worker01")},
    "get /scores/history": {
        "query:score": Case("performance", HISTORY),
        "query:cluster": Case("worker02", HISTORY),
        "query:app": Case("app01", HISTORY),
        "query:hours": Case(2, HISTORY),
    },
    "get /scorers/history": {"query:hours": Case(2)},
    "post /optimize": {
        "query:dry_run": Case(True, {"body:dryRun": False}),
        "query:expected_digest": Case("abc", {"body:dryRun": False}),
        **{
            f"body:{name}": replace(
                case, given={f"body:{key}": value for key, value in case.given.items()}
            )
            for name, case in OPTIMIZE_CASES.items()
        },
    },
    "post /plan": {
        "body:namespace": Case("worker01", ASKED),
        "body:objective": Case({"power": 1}, on="replaced"),
        "body:clusters": Case(["worker01"], ASKED),
        "body:workloads": Case(["app01"], ASKED),
        "body:whatIf.lose": Case(["worker01"], ASKED),
        "body:whatIf.drain": Case(["worker01"], ASKED),
        "body:whatIf.add[].name": Case("worker09", COPY),
        "body:whatIf.add[].like": Case("worker02", COPY, "uneven"),
        "body:whatIf.add[].gpus[].product": Case("NVIDIA-A30", ADDED_GPUS),
        "body:whatIf.add[].gpus[].count": Case(2, ADDED_GPUS),
        "body:whatIf.run[].name": Case("newer", RUN),
        "body:whatIf.run[].amount": Case(9, RUN),
        "body:whatIf.run[].kind": Case("cpu", RUN),
        "body:whatIf.run[].device": Case("2g.24gb", RUN),
        "body:whatIf.run[].like": Case("app01", RUN),
        "body:whatIf.policies[].name": Case("new-worker01", NEW_POLICY),
        "body:whatIf.policies[].supplies[].kind": Case("cpu", NEW_POLICY),
        "body:whatIf.policies[].supplies[].device": Case("all", NEW_POLICY),
        "body:whatIf.policies[].supplies[].amount": Case(3, NEW_POLICY),
        "body:whatIf.policies[].clusters": Case(["worker02"], NEW_POLICY),
        "body:whatIf.pin": Case({"app01": "worker02"}, ASKED),
        "body:whatIf.exclude": Case({"app01": ["worker01"]}, ASKED),
        "body:whatIf.apart": Case([["app01", "app02"]], ASKED),
        "body:whatIf.together": Case([["app01", "app02"]], ASKED),
        "body:whatIf.atLeast": Case({"app01": 2}, ASKED),
        "body:whatIf.atMost": Case({"worker01": 0}, ASKED),
        "body:whatIf.scores[].score": Case("power", RESCORED),
        "body:whatIf.scores[].cluster": Case("worker02", RESCORED),
        "body:whatIf.scores[].entry": Case("app01;2g.24gb", RESCORED),
        "body:whatIf.scores[].value": Case(5, RESCORED),
        "body:whatIf.budget": Case({"performance": 60}, ASKED),
        "body:request": Case({"explain": True}, ASKED),
    },
    "get /plans": {
        "query:namespace": Case("other", DEFAULT, "applied"),
        "query:optimization": Case("team-b", DEFAULT, "applied"),
    },
    "get /plans/{digest}": {
        "path:digest": Case("abc", {**DEFAULT, "path:digest": "newest"}, "applied"),
        "query:namespace": Case("other", {**DEFAULT, "path:digest": "newest"}, "applied"),
    },
    "post /rollback": {
        "query:expected_digest": Case("abc", on="replaced"),
        "body:namespace": Case("other", on="replaced"),
        "body:optimization": Case("team-b", on="replaced"),
        "body:toRevision": Case(2, on="replaced"),
        "body:digest": Case("abc", on="replaced"),
        "body:rollout": Case("Stepwise", on="replaced"),
        "body:workload": Case("app02", on="replaced"),
        "body:dryRun": Case(True, on="replaced"),
    },
    "get /rollouts": {"query:namespace": Case("other", DEFAULT, "rolling")},
    "get /rollouts/{namespace}/{optimization}": {
        "path:namespace": Case("other", ROLLOUT, "rolling"),
        "path:optimization": Case("team-b", ROLLOUT, "rolling"),
    },
    "get /rollouts/{namespace}/{optimization}/events": {
        "path:namespace": Case("other", ROLLOUT, "cancelled"),
        "path:optimization": Case("team-b", ROLLOUT, "cancelled"),
    },
    "post /rollouts/{namespace}/{optimization}/{command}": {
        "path:namespace": Case("other", COMMAND, "rolling"),
        "path:optimization": Case("team-b", COMMAND, "rolling"),
        "path:command": Case("cancel", COMMAND, "rolling"),
    },
    "get /placementoptimizations": {"query:namespace": Case("other", DEFAULT, "waiting")},
    "get /placementoptimizations/{namespace}/{optimization}": {
        "path:namespace": Case("other", KEPT, "waiting"),
        "path:optimization": Case("other", KEPT, "waiting"),
    },
    "get /placementoptimizations/{namespace}/{optimization}/plan": {
        "path:namespace": Case("other", KEPT, "waiting"),
        "path:optimization": Case("other", KEPT, "waiting"),
    },
    "post /placementoptimizations/{namespace}/{optimization}/approve": {
        "path:namespace": Case("other", APPROVED, "waiting"),
        "path:optimization": Case("other", APPROVED, "waiting"),
        "query:digest": Case("b" * 64, APPROVED, "waiting"),
    },
    "get /constraints": {"query:namespace": Case("worker01")},
    "post /constraints": {
        "body:namespace": Case("worker01"),
        "body:remember.apart": Case([["app01", "app02"]]),
        "body:remember.together": Case([["app01", "app02"]]),
        "body:remember.pin": Case({"app01": "worker02"}),
        "body:remember.exclude": Case({"app01": ["worker01"]}),
        "body:remember.atLeast": Case({"app01": 2}),
        "body:remember.atMost": Case({"worker01": 1}),
        "body:remember.drain": Case(["worker01"]),
        "body:forget": Case({"worker01": ["drain"]}),
        "body:dryRun": Case(True, {"body:remember.atMost": {"worker01": 1}}),
    },
    "get /healthz": {},
    "get /readyz": {},
    "get /metrics": {},
}


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = create_app(Optimizer(EmbeddedHub(), now=lambda: NOW)).openapi()
    return found


def routes() -> Iterator[str]:
    """The routes of the document."""
    for path, operations in document()["paths"].items():
        yield from (f"{method} {path}" for method in operations)


def fields_of(route: str) -> Callable[[], Iterable[str]]:
    method, path = route.split()

    def fields() -> Iterable[str]:
        asked = document()["paths"][path][method]
        named = [f"{item['in']}:{item['name']}" for item in asked.get("parameters", ())]
        if "requestBody" not in asked:
            return named
        schema = asked["requestBody"]["content"]["application/json"]["schema"]
        return named + [f"body:{name}" for name in leaves(schema, document())]

    return fields


def ask_by(route: str) -> Callable[[Fields, str], Awaitable[Any]]:
    method, path = route.split()

    async def ask(values: Fields, on: str) -> Any:
        parts = _parts({**BASE.get(route, {}), **values})
        hub = await hub_in(on)
        async with serving(replying(matrix())) as prometheus:
            settings = OptimizerSettings(prometheus_url=prometheus.url)
            app = create_app(Optimizer(hub, settings, now=lambda: NOW), read_only=False)
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://hub") as http:
                if parts["path"].get("digest") == "newest":
                    listed = await http.get("/plans", params={"namespace": "default"})
                    parts["path"]["digest"] = listed.json()["items"][0]["digest"]
                answer = await http.request(
                    method,
                    path.format(**parts["path"]),
                    params=parts["query"],
                    json=parts["body"] if method == "post" else None,
                )
            asked = [call.parameters for call in prometheus.calls]
        said = answer.headers["content-type"].endswith("json")
        told = seen(answer.json()) if said else answer.text
        return answer.status_code, told, await on_hub(hub), asked

    return ask


def _parts(values: Fields) -> dict[str, Fields]:
    """The values by where they are said: in the path, the query or the body."""
    return {
        where: with_values(
            {},
            {
                name.removeprefix(f"{where}:"): value
                for name, value in values.items()
                if name.startswith(f"{where}:")
            },
        )
        for where in ("path", "query", "body")
    }


ROUTES = [Door(route, fields_of(route), CASES.get(route, {}), ask_by(route)) for route in routes()]


def question_cases() -> dict[str, Case]:
    """A case for each field of POST /optimize in `request` of a question that says the rest."""
    found: dict[str, Case] = {}
    for path, case in OPTIMIZE_CASES.items():
        field = re.split(r"[.\[]", path)[0]
        value = with_values(base_body(), {**case.given, path: case.value})[field]
        found.setdefault(field, Case(value))
    return found


async def ask_question(values: Fields, _: str) -> Any:
    """What POST /plan, the MCP tool plan_placement and the page complete a question to."""
    partial = PartialRequest({"performance": 1}, further=values)
    optimizer = Optimizer(await hub_in(""), now=lambda: NOW)
    found = await question(AuthorizedOptimizer(optimizer), partial)
    return found if isinstance(found, RequestProblem) else found.request


QUESTION = Door(
    "request of a question",
    lambda: OptimizeRequest.model_json_schema()["properties"],
    {**question_cases(), "dryRun": Case(False)},
    ask_question,
)
