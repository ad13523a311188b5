"""The quickstart and the development guide work as they are typed, and then other pages do.

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
from tests.pages.blocks import ALL, blocks, commands
from tests.repository import ROOT

from ..harness.bound_namespace import bound
from ..harness.consumers import install_consumers
from ..harness.health import wait_healthy
from ..harness.ports import LOOPBACK
from .conftest import WORKERS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..harness.hub import Hub
    from .kubelet import Kubelet
    from .terminal import Terminal

TUTORIALS = ROOT / "docs/tutorials"
PROGRAMS = ("kubectl", "jq", "envsubst", "curl", "bash", "make")
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
SCORES = (
    "sample-my-score",
    "example-performance-score",
    "example-powerconsumption-score",
    "example-cost-score",
    "example-carbon-score",
)


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


READ: dict[str, Callable[[str], bool]] = {
    "kubectl get managedclusters --context": has("worker01", "worker02"),
    "kubectl get managedclusteraddons": has("worker01", "worker02"),
    "kubectl get pods -n dynamic-scoring": has("dynamic-scoring-agent"),
    "curl -sS http://$NODE_IP:30007/config": has('"name": "sample_my_score"'),
    "kubectl get dynamicscorers,dynamicscoringconfigs": has("sample-scorer", "Active"),
    "kubectl get configmap dynamic-scoring-config": has('"scoreName": "sample_my_score"'),
    "kubectl get addonplacementscores sample-my-score": has("name: n1;shop;cart", "value: 12"),
    "dsf scores": has("n1;shop;cart"),
    "kubectl get dynamicscorers -n": lambda output: output.count("Active") == len(SCORES),
    "kubectl get addonplacementscores -A": every_score,
    "kubectl get clusterclaims policy-watcher-claim": has("empty"),
    "kubectl get placements -n default": has("app01-placement", "app02-placement"),
    "kubectl get policies -n worker01": has("NonCompliant"),
    "dsf status": has("Landed"),
}
"""Commands that only read, each with what it must show. They are typed until they do."""
ONCE: dict[str, Callable[[str], bool]] = {
    "-d @dsf/sim/scenario/params.json": plans(115, "3g"),
    '"example-powerconsumption-score"': plans(170, "2g"),
    "localhost:8338/reset": has('"failed":[]'),
    "dsf plan -f dsf/sim/scenario": has("objective 115"),
    "dsf agent --once": has("- name: app01;3g.48gb\n    value: 60\n"),
}
"""Commands that act, each with what it must answer."""


def typed() -> Iterator[tuple[str, str]]:
    """Yield the page and the text of each command: step 2 of the guide is the quickstart."""
    quickstart = blocks(TUTORIALS / "quickstart.md")
    first, joined, *rest = blocks(TUTORIALS / "development-guide.md")
    for block in (first, joined, *quickstart, *rest):
        for command in commands(block.commands):
            yield block.page.name, command


@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
def test_the_tutorials_work_as_typed(terminal: Terminal, kubelets: dict[str, Kubelet]) -> None:
    expected = {**READ, **ONCE, **IN_ANOTHER_TERMINAL}
    seen = set()
    for page, command in typed():
        keys = [key for key in expected if key in command]
        seen |= set(keys)
        if keys and keys[0] in IN_ANOTHER_TERMINAL:
            IN_ANOTHER_TERMINAL[keys[0]](kubelets["hub"])
        elif keys and keys[0] in READ:
            read_until(page, command, READ[keys[0]], terminal, kubelets)
        else:
            output = succeeded(page, command, terminal.run(command))
            assert all(ONCE[key](output) for key in keys), (command, output)
    assert expected.keys() == seen, "the pages no longer have these commands"


PATIENCE_SECONDS = 600
"""Claims and steps wait a minute each for policies to stay compliant, and slow machines longer."""
OTHER_PAGES = sorted({block.page for block in ALL if block.on_a_hub})
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


@pytest.fixture(scope="module")
def consumers(tutorial_hub: Hub) -> Iterator[None]:
    """The CRDs of Kueue and Argo CD, and the binding that the chart of Kueue's add-on makes."""
    install_consumers(tutorial_hub)
    with bound(tutorial_hub, "kueue-system"):
        yield


@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
@pytest.mark.usefixtures("consumers")
@pytest.mark.parametrize("page", OTHER_PAGES, ids=shown)
def test_the_commands_of_another_page_work(
    page: Path, terminal: Terminal, kubelets: dict[str, Kubelet]
) -> None:
    if page.name in BEFORE:
        succeeded(page.name, BEFORE[page.name], terminal.run(BEFORE[page.name]))
    for block in (block for block in blocks(page) if block.on_a_hub):
        output = "".join(
            outcome(page.name, command, terminal, kubelets)
            for command in commands(re.sub(r"\bCLUSTER\b", WORKERS[0], block.commands))
        )
        if block.printed:
            heading = block.printed.splitlines()[0].split()
            assert heading in map(str.split, output.splitlines()), output


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


def forward(kubelet: Kubelet) -> None:
    """Do what `kubectl port-forward` does, which needs a kubelet's container runtime."""

    def running() -> str | None:
        kubelet.sync()
        try:
            return kubelet.network.address_of("dynamic-scoring-optimizer.dynamic-scoring.svc")
        except KeyError:
            return None

    kubelet.network.forward(LOOPBACK, 8338, until("the optimizer to run", running), 8338)


def serve_static_scores(kubelet: Kubelet) -> None:
    """Run the command of the guide, which stays until it is interrupted."""
    processes, name = kubelet.plane.processes, "static-scorer-without-a-cluster"
    processes.start(name, [sys.executable, "-m", "sample_scorers.static", "--port", "8000"])
    wait_healthy(processes, name, f"http://{LOOPBACK}:8000/healthz")


IN_ANOTHER_TERMINAL: dict[str, Callable[[Kubelet], None]] = {
    "kubectl port-forward": forward,
    "-m sample_scorers.static --port 8000": serve_static_scores,
}
"""Commands that stay until they are interrupted, each with what starts it."""
