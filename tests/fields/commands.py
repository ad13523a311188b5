"""The options of each `dsf` command that asks a hub, as click publishes them."""

import json
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import yaml

from dsf.cli.root import AUTHORS, COMMANDS, PROGRAMS, root
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.errors import KubeError
from tests.command_line import invoked_meanwhile
from tests.dsf.agent.servers import matrix, replying
from tests.dsf.agent.servers import serving as answering
from tests.fields.door import Case, Door, Fields, with_values
from tests.fields.optimize_request import CASES as OPTIMIZE_CASES
from tests.fields.optimize_request import MIG, base_body, hub_in, on_hub, seen

NO_QUESTION = {"demo", "completion", "crds", "mig", "simulate", "top", "uninstall"}
"""Commands that ask no hub: `test_program_options` names the tests of their options."""

ELSEWHERE = {"another": "hub"}
"""A kubeconfig without the hub."""
PROMETHEUS = "the Prometheus"
NEWEST = "the digest of the newest plan"
PER_RUN = re.compile(r"\b[0-9a-f]{12,64}\b|\d+(\.\d+)? s\b|\d+[smhd]( ago)?\b")


def file_of(name: str) -> Fields:
    """The body that shows a field of the request."""
    return with_values({**base_body(), "dryRun": False}, OPTIMIZE_CASES[name].given)


JSON = {"--output": "json"}
ASKED = {**JSON, "--objective": "performance"}
DIVIDED = {**JSON, "--request": with_values({**base_body(), "dryRun": False}, MIG)}
MISSING = {**JSON, "--request": file_of("missingScore")}
MANY = {**JSON, "--request": file_of("gap")}
ONE = {**ASKED, "--workload": ["app01"]}
HUB: dict[str, Case] = {"--kubeconfig": Case(ELSEWHERE, ASKED), "--context": Case("nope", ASKED)}
OBJECTS: dict[str, Case] = {
    "--mig-config-map": Case("other/config", DIVIDED),
    "--mig-labels": Case("guide", DIVIDED),
    "--claim-name": Case("other-claim", ASKED),
    "--cluster-label-key": Case("zone", ASKED),
}
FORMULATION: dict[str, Case] = {
    "--prefer-no-select-cost": Case(0, ONE, "avoided"),
    "--default-toleration-seconds": Case(10**9, ASKED, "lost"),
    "--pending-grace-seconds": Case(2**31, {**JSON, "--objective": "power"}, "applied pending"),
    "--max-places": Case(1, ASKED),
    "--time-limit": Case("0.0001", MANY, "many"),
}
CHOICE: dict[str, Case] = {
    "--missing-score": Case("5", MISSING),
    "--memory-limit": Case(1, MANY, "many"),
    "--gap": Case("0.5", MANY, "many"),
    "--solver": Case("cbc", ASKED),
}
PLANNED: dict[str, Case] = {
    **HUB,
    "--namespace": Case("worker01", ASKED),
    "--objective": Case("performance", JSON, "applied"),
    "--aggregation": Case("Min", ASKED, "placeless"),
    "--cluster": Case(["worker01"], ASKED),
    "--workload": Case(["app01"], ASKED),
    "--optimization": Case("team-b", ASKED),
    "--request": Case(base_body(), JSON, "applied"),
    **OBJECTS,
    **FORMULATION,
    **CHOICE,
    "--output": Case("yaml", {"--objective": "performance"}),
}
SAME_PLAN = "both solvers find the same plan: `dsf plan` tells which did"
WHY = {"workload": "app01"}
SAID = {**WHY, "--objective": "power"}
NOT_THERE = {**WHY, "cluster": "worker02"}
EXPLAINED = {"workload": "w1", "--objective": "performance"}
ROLLOUT = {
    "--kubeconfig": Case(ELSEWHERE, on="rolling"),
    "--context": Case("nope", on="rolling"),
    "--namespace": Case("worker01", on="rolling"),
    "--optimization": Case("team-b", on="rolling"),
    "--record-key-secret": Case("default/other-key", on="rolling"),
}


def given(cases: dict[str, Case], values: Fields, on: str = "") -> dict[str, Case]:
    """The same options where a command needs other values."""
    return {name: Case(case.value, values, on or case.on) for name, case in cases.items()}


FORMULATED = given(FORMULATION, {**WHY, "--objective": "performance"})
CASES: dict[str, dict[str, Case]] = {
    "plan": {
        "--filename": Case("scenario", {"--objective": "performance", "--output": "json"}),
        **PLANNED,
        "--picture": Case("plan.html", ASKED),
        "--what-if": Case('{"lose": ["worker02"]}', ASKED),
        "--explain": Case(True, ASKED),
    },
    "diff": {
        "--filename": Case("scenario", {"--objective": "performance"}),
        **PLANNED,
        "--aggregation": Case(why_not="the same objects at another value: `dsf plan` tells it"),
        "--solver": Case(why_not=SAME_PLAN),
    },
    "optimize": {
        **{
            name: Case(case.value, {**case.given, "--yes": True}, case.on)
            for name, case in PLANNED.items()
        },
        "--rollout": Case("Stepwise", {**ASKED, "--yes": True}, "applied"),
        "--expected-digest": Case("0" * 64, {**ASKED, "--yes": True}),
        "--yes": Case(True, ASKED),
        "--dry-run": Case(True, {**ASKED, "--yes": True}),
        "--plan-history-limit": Case(1, {**ASKED, "--yes": True}, "applied"),
        "--record-key-secret": Case("nowhere/key", {**ASKED, "--yes": True}),
    },
    "status": {
        **given(HUB, {}),
        "--namespace": Case("default", on="applied"),
        "--optimization": Case("team-b", {"--namespace": "default"}, "applied"),
        "--wait": Case(1),
        "--output": Case("json"),
    },
    "doctor": {
        **given(HUB, {}),
        "--namespace": Case("worker01", JSON),
        "--prometheus-url": Case(PROMETHEUS, JSON),
        "--output": Case("json"),
    },
    "why": {
        **given(HUB, WHY, "applied"),
        "workload": Case("app02", WHY, "applied"),
        "cluster": Case("worker02", WHY, "applied"),
        "--namespace": Case("worker01", WHY, "applied"),
        "--objective": Case("performance", WHY, "applied"),
        **FORMULATED,
        "--default-toleration-seconds": Case(
            10**9, {**WHY, "--objective": "power"}, "applied gone"
        ),
        "--missing-score": Case("5", {**NOT_THERE, "--objective": "performance"}, "unscored"),
        "--time-limit": Case("0.0001", EXPLAINED, "many"),
        "--memory-limit": Case(1, EXPLAINED, "many"),
        "--gap": Case("0.5", EXPLAINED, "many"),
        "--solver": Case(why_not=SAME_PLAN),
        "--output": Case("json", WHY, "applied"),
    },
    "plans": {
        **given(HUB, {}, "applied"),
        "--namespace": Case("worker01", on="applied"),
        "--optimization": Case("team-b", on="applied"),
        "--output": Case("json", on="applied"),
    },
    "constraints": {
        **given(HUB, {}),
        "--namespace": Case("worker01", {"--output": "json"}),
        "--output": Case("json"),
    },
    "rollback": {
        **given(HUB, {}, "replaced"),
        "--namespace": Case("worker01", on="replaced"),
        "--optimization": Case("team-b", on="replaced"),
        "--to-revision": Case(2, on="replaced"),
        "--digest": Case("abc", on="replaced"),
        "--rollout": Case("Stepwise", on="replaced"),
        "--workload": Case("app02", on="replaced"),
        "--dry-run": Case(True, on="replaced"),
        "--plan-history-limit": Case(1, on="replaced"),
        "--record-key-secret": Case("default/other-key", on="replaced"),
        **given(OBJECTS, {}, "replaced"),
        **given(FORMULATION, {}, "replaced"),
        "--mig-config-map": Case("other/config", on="divided"),
        "--mig-labels": Case("guide", on="divided"),
        "--prefer-no-select-cost": Case(0, on="avoided replaced"),
        "--default-toleration-seconds": Case(10**9, on="replaced"),
        "--pending-grace-seconds": Case(2**31, on="replaced pending"),
        "--time-limit": Case(why_not="few steps are ordered in no time"),
    },
    "rollout status": {
        **ROLLOUT,
        "--watch": Case(True, on="cancelled"),
        "--output": Case("json", on="rolling"),
    },
    "rollout pause": ROLLOUT,
    "rollout resume": ROLLOUT,
    "rollout undo": ROLLOUT,
    "rollout cancel": ROLLOUT,
    "scores": {
        **given(HUB, {}),
        "--cluster": Case(["worker01"]),
        "--score": Case(["power"]),
        "--valid": Case(True, on="expired"),
        "--plot": Case(True),
        "--prometheus-url": Case(PROMETHEUS),
        "--since": Case("1h", {"--prometheus-url": PROMETHEUS}),
        "--watch": Case(why_not="it never ends: tests/dsf/cli/test_scores.py reads its tables"),
        "--output": Case("json"),
    },
}


def commands() -> Iterator[tuple[str, click.Command]]:
    """The commands that ask a hub, each with its words."""
    context = click.Context(root, info_name="dsf")
    for name, entry in COMMANDS.items():
        if entry.section in (PROGRAMS, AUTHORS) or name in NO_QUESTION:
            continue
        command = root.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            for sub, inner in command.commands.items():
                yield f"{name} {sub}", inner
        else:
            yield name, command


def fields_of(command: click.Command) -> Callable[[], Iterable[str]]:
    return lambda: [
        (item.name or "") if isinstance(item, click.Argument) else item.opts[0]
        for item in command.params
    ]


def ask_by(command: click.Command) -> Callable[[Fields, str], Awaitable[Any]]:
    order = fields_of(command)()

    async def ask(values: Fields, on: str) -> Any:
        hub = await hub_in(on)
        with tempfile.TemporaryDirectory() as name:
            async with serving(hub) as url, answering(replying(matrix())) as prometheus:
                place = Path(name)
                said = {"--kubeconfig": kubeconfig(url), **values}
                if "--filename" in said:
                    del said["--kubeconfig"]
                words = {
                    option: prometheus.url
                    if value == PROMETHEUS
                    else _on_disk(place, option, value)
                    for option, value in said.items()
                }
                options = [word for option in words for word in _words(option, words[option])]
                arguments = [words[item] for item in order if item in words and item[0] != "-"]
                try:
                    code, out, err = await invoked_meanwhile(command, *options, *arguments)
                except KubeError as error:  # `dsf` tells it in one line
                    return _told(str(error)).replace(name, "FOLDER").replace(url, "HUB")
                drawn = "plan.svg" in os.listdir(name)  # noqa: PTH208 - a Path would block too
                steps = [call.parameters.get("step") for call in prometheus.calls]
        told = [_told(text).replace(name, "FOLDER").replace(url, "HUB") for text in (out, err)]
        return code, told, drawn, steps, await on_hub(hub)

    return ask


def _told(text: str) -> str:
    """A text without what differs from run to run."""
    with suppress(ValueError):
        text = json.dumps(seen(json.loads(text)))
    return PER_RUN.sub("#", text)


def _on_disk(place: Path, option: str, value: Any) -> Any:
    """The value of an option; files are written first."""
    if option in ("--kubeconfig", "--request"):
        file = place / f"{option[2:]}.yaml"
        file.write_text(yaml.safe_dump(value), encoding="utf-8")
        return str(file)
    if option == "--picture":
        return str(place / value)
    return value


def _words(option: str, value: Any) -> list[str]:
    if not option.startswith("-"):
        return []
    if value is True:
        return [option]
    many = value if isinstance(value, list) else [value]
    return [f"{option}={item}" for item in many]


HUB_COMMANDS = [
    Door(f"dsf {name}", fields_of(command), CASES.get(name, {}), ask_by(command))
    for name, command in commands()
]
