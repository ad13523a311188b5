"""quickstart.md and development-guide.md work as they are typed, and then other pages do.

The other pages are typed on the hub that the tutorials leave.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.eventually import until
from tests.house.test_documents import shown
from tests.pages.blocks import ALL, Block, blocks, commands
from tests.pages.guides import GUIDE, typed_blocks

from ..harness.health import wait_healthy
from ..harness.ports import LOOPBACK
from .conftest import WORKERS
from .stand_in import EXTERNAL_SCORER

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from .kubelet import Kubelet
    from .terminal import Terminal

PROGRAMS = ("kubectl", "jq", "envsubst", "curl", "bash", "make")
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
SCORES = (
    "sample-my-score",
    "llm-forecast-score",
    "simple-prediction-score",
    "example-performance-score",
    "example-powerconsumption-score",
    "example-cost-score",
    "example-carbon-score",
)
"""Of each cluster: the five of the first guide, which two clusters have ten of, and two more."""


def has(*words: str) -> Callable[[str], bool]:
    return lambda output: all(word in output for word in words)


def plans(objective: int, profile: str) -> Callable[[str], bool]:
    def planned(output: str) -> bool:
        answer = json.loads(output)
        policies = {cluster: f"policy-enable-mig-{profile}-{cluster}" for cluster in WORKERS}
        found = answer["status"], answer["objective_value"], answer["policies"]
        return found == ("Optimal", objective, policies)

    return planned


def every_score(output: str) -> bool:
    lines = [line.split()[:2] for line in output.splitlines()]
    return all([cluster, score] in lines for cluster in WORKERS for score in SCORES)


READS = re.compile(
    r"(?:for .*?; do\n +)?(?:export \w+=\$\()?kubectl (?:get|wait|exec)|dsf (?:status|scores) ",
    re.DOTALL,
)
"""Commands that only read: they are typed until they show what they must."""
MUST_SHOW: dict[str, Callable[[str], bool]] = {
    "kubectl get managedclusters --context": has("worker01", "worker02"),
    "curl -sS http://$NODE_IP:30007/config": has('"name": "sample_my_score"'),
    "kubectl get dynamicscorers,dynamicscoringconfigs": has("sample-scorer", "Active"),
    "kubectl get addonplacementscores sample-my-score": has("name: n1;shop;cart", "value: 12"),
    "dsf scores": has("n1;shop;cart"),
    "kubectl get addonplacementscores -A": every_score,
    "dsf status": has("Landed"),
    "\"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\\n  -d @dsf/sim": plans(
        115, "3g"
    ),
    '"example-powerconsumption-score"': plans(170, "2g"),
    "localhost:8338/reset": has('"failed":[]'),
    "dsf plan -f dsf/sim/scenario": has("objective 115"),
}
"""What commands must show besides what their page shows."""
SHORTER = ((r"--timeout=\d+m", "--timeout=5s"), (r"--wait \d+", "--wait 5"))
"""A command that waits is typed again, after Deployments have started."""


@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
def test_the_tutorials_work_as_typed(terminal: Terminal, kubelets: dict[str, Kubelet]) -> None:
    expected = {*MUST_SHOW, *IN_ANOTHER_TERMINAL}
    seen: set[str] = set()
    for block in typed_blocks(GUIDE, {}):
        shown: dict[str, str] = {}
        for command in commands(block.commands):
            keys = {key for key in expected if key in command}
            seen |= keys
            shown[command] = type_command(block, command, keys, terminal, kubelets)
        show_lines(block, shown, terminal, kubelets)
    assert seen == expected, "the pages no longer have these commands"


def show_lines(
    block: Block, shown: dict[str, str], terminal: Terminal, kubelets: dict[str, Kubelet]
) -> None:
    """Type the reading commands of a block again until all lines that the page prints are there."""
    reads = [command for command in shown if READS.match(command)]

    def are_there() -> bool:
        if not missing_lines(block.printed or "", "".join(shown.values())):
            return True
        for command in reads:
            shown[command] = type_command(block, command, set(), terminal, kubelets)
        return False

    try:
        until(f"what {block.place} prints", are_there, seconds=PATIENCE_SECONDS if reads else 0)
    except TimeoutError:
        text = "".join(shown.values())
        pytest.fail(f"{block.place} misses {missing_lines(block.printed or '', text)} in\n{text}")


def type_command(
    block: Block, command: str, keys: set[str], terminal: Terminal, kubelets: dict[str, Kubelet]
) -> str:
    """Type a command of a tutorial and return what it shows."""
    for key in keys & IN_ANOTHER_TERMINAL.keys():
        IN_ANOTHER_TERMINAL[key](kubelets["hub"], terminal)
        return ""
    if not READS.match(command):
        shown = succeeded(block.page.name, command, terminal.run(command))
        assert all(MUST_SHOW[key](shown) for key in keys), (command, shown)
        return shown
    for long, short in SHORTER:
        command = re.sub(long, short, command)

    def right(output: str) -> bool:
        return all(MUST_SHOW[key](output) for key in keys)

    return read_until(block.page.name, command, right, terminal, kubelets)


def missing_lines(printed: str, shown: str) -> list[str]:
    """The lines that a page prints and a command has not shown, apart from what always differs."""
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    return [
        line
        for line in printed.splitlines()
        if not any(re.match(pattern(line), shown) for shown in lines)
    ]


def pattern(line: str) -> str:
    """The pattern of a line; ages, generated names, addresses, counts of containers vary."""
    words = (re.escape(word) for word in line.split())
    return " ".join(ALIKE.sub(lambda found: VARIES[found.lastgroup or ""], word) for word in words)


VARIES = {
    "age": r"(?:\d+[smhd])+",
    "generated": r"\-[0-9a-f]{8,10}(?:\-[a-z0-9]{5})?",
    "url": r"\S*",
    "containers": r"\d/\d",
}
ALIKE = re.compile(
    r"^(?P<age>(?:\d+[smhd])+)$|(?P<generated>\\-[0-9a-f]{8,10}(?:\\-[a-z0-9]{5})?)$"
    r"|^(?P<url>https:\S+)$|^(?P<containers>\d/\d)$"
)


PATIENCE_SECONDS = 600
"""Claims and steps wait a minute each for policies to stay compliant, and slow machines longer."""
OTHER_PAGES = [
    pytest.param(page, marks=[pytest.mark.long] if page.name == "rollouts.md" else [])
    for page in sorted({block.page for block in ALL if block.on_a_hub})
]
"""Each step of a rollout waits for a claim and a policy: that page takes minutes."""
UNTIL: dict[str, Callable[[str], bool]] = {
    "dsf status": has("Landed"),
    "dsf rollout status": has("RolloutComplete"),
    "kubectl get placementdecisions": has("worker0"),
    "kubectl get addonplacementscores": has("value"),
    "dsf agent": has("3g.48gb"),
}
"""Commands of the other pages that are typed until they show what they must."""
BEFORE = {
    "rollouts.md": """
curl -sS -X POST http://localhost:8338/reset -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' -d '{"namespace": "default"}'
"""
}
"""What a page assumes: a rollout needs something to change."""
CHANGES_SHOWN = 1
"""The exit code of `dsf diff` when something would change."""


@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
@pytest.mark.parametrize("page", OTHER_PAGES, ids=shown)
def test_the_commands_of_another_page_work(
    page: Path, terminal: Terminal, kubelets: dict[str, Kubelet]
) -> None:
    if page.name in BEFORE:
        succeeded(page.name, BEFORE[page.name], terminal.run(BEFORE[page.name]))
    for block in (block for block in blocks(page) if block.on_a_hub):
        output = "".join(
            outcome(page.name, command, terminal, kubelets)
            for command in commands(re.sub(r"\bCLUSTER\b", WORKERS[0], on_trial(block.commands)))
        )
        if block.printed:
            heading = block.printed.splitlines()[0].split()
            assert heading in map(str.split, output.splitlines()), output


def on_trial(typed: str) -> str:
    """The commands of a page for a registry, and the optimizer of the tutorials: on plain HTTP."""
    typed = re.sub(r"^kubectl get secret .*-self-signed .*\n", "", typed, flags=re.MULTILINE)
    typed = typed.replace(" --cacert ca.crt", "").replace("registry.example.com", "registry.test")
    return typed.replace("https://localhost:8338", "http://localhost:8338")


def outcome(page: str, command: str, terminal: Terminal, kubelets: dict[str, Kubelet]) -> str:
    """Type a command of a page, and return what it prints once it works."""
    key = next((key for key in UNTIL if key in command), "")
    if key:
        return read_until(page, command, UNTIL[key], terminal, kubelets)
    ended = terminal.run(command)
    if command.startswith("dsf diff") and ended.returncode == CHANGES_SHOWN:
        return ended.stdout
    # The tutorials have created the planner already.
    if not command.startswith("kubectl create") or "already exists" not in ended.stderr:
        succeeded(page, command, ended)
    for kubelet in kubelets.values():
        kubelet.sync()
    return ended.stdout


def read_until(
    page: str,
    command: str,
    right: Callable[[str], bool],
    terminal: Terminal,
    kubelets: dict[str, Kubelet],
) -> str:
    """Type a command until it shows what is right, while Deployments start that can.

    Return what it shows then.
    """
    shown = ""

    def reads() -> bool:
        nonlocal shown
        for kubelet in kubelets.values():
            kubelet.plane.processes.check()
            kubelet.sync()
        ended = terminal.run(command)
        shown = ended.stdout + ended.stderr
        return ended.returncode == 0 and right(ended.stdout)

    try:
        until(command, reads, seconds=PATIENCE_SECONDS, every=0.5)
    except TimeoutError as error:
        pytest.fail(f"{page}: {error}\n{shown}")
    return shown


def succeeded(page: str, command: str, ended: subprocess.CompletedProcess[str]) -> str:
    assert ended.returncode == 0, f"{page}: {command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def forward(kubelet: Kubelet, _: Terminal) -> None:
    """Do what `kubectl port-forward` does, which needs a kubelet's container runtime."""

    def running() -> str | None:
        kubelet.sync()
        try:
            return kubelet.network.address_of("dynamic-scoring-optimizer.dynamic-scoring.svc")
        except KeyError:
            return None

    kubelet.network.forward(LOOPBACK, 8338, until("the optimizer to run", running), 8338)


def serve_static_scores(kubelet: Kubelet, _: Terminal) -> None:
    """Run the command of the guide, which stays until it is interrupted."""
    processes, name = kubelet.plane.processes, "static-scorer-without-a-cluster"
    processes.start(name, [sys.executable, "-m", "sample_scorers.static", "--port", "8000"])
    wait_healthy(processes, name, f"http://{LOOPBACK}:8000/healthz")


def run_outside(kubelet: Kubelet, _: Terminal) -> None:
    """Run the scorer that an engine would run on the network of the clusters."""
    processes, name = kubelet.plane.processes, "llm-forecast-scorer"
    listen = ("--host", EXTERNAL_SCORER, "--port", "8000")
    # No model answers there, as for a reader who has none.
    model = ("--endpoint", f"http://{LOOPBACK}:9", "--model", "small", "--fallback")
    program = "sample_scorers.llm_forecast.shared_model"
    processes.start(name, [sys.executable, "-m", program, *listen, *model])
    wait_healthy(processes, name, f"http://{EXTERNAL_SCORER}:8000/healthz")


def serve_optimizer(kubelet: Kubelet, terminal: Terminal) -> None:
    """Run the command of the guide, which stays until it is interrupted."""
    processes, name = kubelet.plane.processes, "optimizer-without-the-chart"
    options = ("--auth", "none", "--port", "8339", "--context", "kind-hub01")
    environment = {"KUBECONFIG": terminal.environment["KUBECONFIG"]}
    processes.start(name, [sys.executable, "-m", "dsf", "optimizer", *options], environment)
    wait_healthy(processes, name, f"http://{LOOPBACK}:8339/readyz")


IN_ANOTHER_TERMINAL: dict[str, Callable[[Kubelet, Terminal], None]] = {
    "kubectl port-forward": forward,
    "$ENGINE run": run_outside,
    "dsf optimizer --auth none --port 8339 --context kind-hub01": serve_optimizer,
    "-m sample_scorers.static --port 8000": serve_static_scores,
}
"""Commands that stay until they are interrupted, or need an engine, with what starts them."""
