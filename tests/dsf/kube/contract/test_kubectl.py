"""The commands of kubectl that work on an API server and on the demo, typed one after the other."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.dsf.kube.contract.conftest import REAL
from tests.dsf.kube.contract.objects import config_map, scorer
from tests.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "kubectl-on-the-demo.md"
KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")
Typed = Callable[..., Awaitable[tuple[int, str]]]

SCORER = scorer("NAMESPACE", description="first")
CHANGED = scorer("NAMESPACE", description="second")
SETTINGS = config_map("NAMESPACE", labels={"tier": "web"})
SETTINGS_CHANGED = {**SETTINGS, "data": {"colour": "green"}}
REPLACED = scorer("NAMESPACE", description="third")

COMMANDS: list[tuple[str, Any, str]] = [
    ("api-resources --api-group=cluster.open-cluster-management.io", None, "placementdecisions"),
    ("explain dynamicscorer.spec.configURL", None, "FIELD: configURL <string>"),
    ("create namespace NAMESPACE-more", None, "namespace/NAMESPACE-more created"),
    ("create configmap made --from-literal=a=b", None, "configmap/made created"),
    ("create secret generic token --from-literal=token=abc", None, "secret/token created"),
    ("apply -f -", SCORER, "latency created"),
    ("apply -f -", SCORER, "latency unchanged"),
    ("diff -f -", CHANGED, r"\+ +description: second"),
    ("apply -f -", CHANGED, "latency configured"),
    ("get dynamicscorer latency -o jsonpath={.spec.description}", None, "^second$"),
    ("replace -f -", REPLACED, "latency replaced"),
    ("wait dynamicscorer/latency --for=jsonpath={.spec.description}=third", None, "condition met"),
    ("create -f -", SETTINGS, "configmap/settings created"),
    ("apply -f -", SETTINGS_CHANGED, "configmap/settings configured"),
    ("label configmap settings zone=east", None, "configmap/settings labeled"),
    ("annotate configmap settings note=text", None, "configmap/settings annotated"),
    ('patch configmap settings -p {"data":{"size":"3"}}', None, "configmap/settings patched"),
    ('patch dscorer latency --type merge -p {"spec":{"description":"x"}}', None, "latency patched"),
    ("edit configmap settings", None, "configmap/settings edited"),
    ("get configmap settings -o jsonpath={.data}", None, '{"colour":"edited","size":"3"}'),
    (
        "get configmaps -l zone=east,tier!=store -L tier",
        None,
        r"NAME +DATA +AGE +TIER\nsettings +2",
    ),
    ("get configmaps --field-selector metadata.name=made", None, r"NAME +DATA +AGE\nmade +1 +\d+s"),
    ("get dynamicscorers -o wide", None, r"NAME +HEALTH .*\nlatency .*http://scorer\.example"),
    ("get configmaps made -w --request-timeout=1s", None, r"NAME +DATA +AGE\nmade "),
    ("get secrets -A --sort-by=.metadata.name", None, r"NAMESPACE +token +Opaque +1 "),
    ("get all", None, "No resources found"),
    ("describe dynamicscorer latency", None, r"(?s)Config URL: .*Events: +<none>"),
    ("events", None, "No events found"),
    ("auth can-i create placements", None, "^yes"),
    ("auth can-i --list", None, r"\*\.\*"),
    ("auth whoami", None, "Username"),
    ("delete dynamicscorer latency", None, '"latency" deleted'),
    ("delete configmaps --all", None, '"settings" deleted'),
    ("delete namespace NAMESPACE-more --wait=false", None, "deleted"),
    ("get dynamicscorers", None, "No resources found"),
]
REFUSED: list[tuple[str, Any, str]] = [
    ("create -f -", SETTINGS, "created"),
    ("apply --server-side -f -", SETTINGS, "use kubectl apply without --server-side"),
    (
        'patch configmap settings --type json -p [{"op":"remove","path":"/data"}]',
        None,
        "accepted media types include: application/merge-patch\\+json",
    ),
    (
        'patch configmap settings -p {"metadata":{"finalizers":["a.b/c"]}}',
        None,
        "use kubectl patch --type merge",
    ),
    ("delete configmap settings --cascade=foreground", None, "delete without --cascade"),
    ("delete configmap settings --cascade=orphan", None, "delete without --cascade"),
]


@pytest.fixture
def typed(
    request: pytest.FixtureRequest, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Typed:
    """Type a command of kubectl; return its exit code and what it prints."""
    real = request.node.callspec.params["kube"] == "apiserver"
    folder = tmp_path_factory.mktemp("kubectl")
    (folder / "edit.sh").write_text('sed -i s/green/edited/ "$1"')
    fixed = {
        "kubeconfig": Path(str(REAL)) if real else request.getfixturevalue("served"),
        "cache-dir": folder / "cache",
        "namespace": namespace,
    }
    options = [f"--{name}={value}" for name, value in fixed.items()]
    environ = {**os.environ, "KUBE_EDITOR": f"sh {folder / 'edit.sh'}"}

    async def run(command: str, sent: Any) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            str(KUBECTL),
            *options,
            *command.replace("NAMESPACE", namespace).split(" "),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environ,
        )
        text = json.dumps(sent).replace("NAMESPACE", namespace) if sent else ""
        output, _ = await asyncio.wait_for(process.communicate(text.encode()), 60)
        return process.returncode or 0, output.decode()

    return run


@needs_kubectl
@pytest.mark.parametrize("kube", ["http", *(["apiserver"] if REAL else [])], indirect=True)
async def test_these_commands_work(typed: Typed, namespace: str) -> None:
    for command, sent, printed in COMMANDS:
        code, output = await typed(command, sent)
        assert code == command.startswith("diff"), f"{command}: {output}"
        expected = printed.replace("NAMESPACE", namespace)
        assert re.search(expected, output), f"{command}: {output}"


@needs_kubectl
@pytest.mark.parametrize("kube", ["http"], indirect=True)
async def test_what_the_demo_refuses_says_what_to_do(typed: Typed) -> None:
    for command, sent, printed in REFUSED:
        _, output = await typed(command, sent)
        assert re.search(printed, output), f"{command}: {output}"


def test_the_page_names_these_commands() -> None:
    works, refuses = PAGE.read_text().split("These are refused")
    documented = re.findall(r"^\| `kubectl ([\w-]+)", works, re.MULTILINE)
    assert sorted(documented) == sorted({command.split(" ")[0] for command, _, _ in COMMANDS})
    for option in re.findall(r"`[^`]* (--[\w-]+(?:[ =]\w+)?)`", refuses):
        assert any(option in command for command, _, _ in REFUSED), option
