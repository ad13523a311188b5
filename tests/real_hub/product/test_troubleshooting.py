"""docs/how-to/troubleshooting-scorers.md shows the exact output of kubectl for five broken scorers.

`DSF_UPDATE_DOCS=1 make test-hub ARGS='-k troubleshooting'` rewrites the blocks of the document.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.eventually import until
from tests.repository import ROOT

from ..harness.api import condition_of
from ..harness.ports import LOOPBACK
from . import broken
from .conftest import SCORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.hub import Hub
    from .parts import Part

API = "dynamic-scoring.open-cluster-management.io/v1alpha1"
KIND = "DynamicScorer"
DOCUMENT = ROOT / "docs/how-to/troubleshooting-scorers.md"
UPDATE = "DSF_UPDATE_DOCS"
KUBECTL = shutil.which("kubectl")
# By scorer: the condition and the reason in which it ends, and why both clusters fail, if they do.
ENDS = {
    "misspelt": ("ConfigSynced", "InvalidConfig", ""),
    "unreachable": ("Healthy", "Unreachable", ""),
    "bad-query": ("Scoring", "NoClusterScores", "QueryRejected"),
    "no-secret": ("Scoring", "NoClusterScores", "SecretNotFound"),
    "taken": ("Distributed", "ScoreNameTaken", ""),
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture(scope="module")
def statuses(
    hub: Hub, framework: str, scored: dict[tuple[str, str], Object], agents: dict[str, Part]
) -> Iterator[dict[str, str]]:
    """The output of kubectl for each broken scorer, once it no longer changes."""
    with broken.serving() as url:
        closed = f"http://{LOOPBACK}:{hub.ports.free()}"
        for obj in broken.scorers(url, closed, framework):
            hub.apply(obj)
        names = {url: "http://scorers.example:8000", closed: "http://gone.example:8000"}
        until("every scorer to end as it must", lambda: all(ended(hub, framework, n) for n in ENDS))
        yield {name: described(hub, framework, name, names) for name in ENDS}
        for name in ENDS:
            hub.api.delete(API, KIND, name, framework)
        until("the agents to delete what they published", lambda: not left(hub))


def ended(hub: Hub, namespace: str, name: str) -> bool:
    obj = hub.api.get(API, KIND, name, namespace)
    status = obj.get("status") or {}
    type_, reason, complaint = ENDS[name]
    found = condition_of(obj, type_)
    ready = condition_of(obj, "Ready")
    return (
        found.get("reason") == reason
        and ready.get("reason") == reason
        and [each["reason"] for each in status.get("failingClusters", [])]
        == ([complaint] * 2 if complaint else [])
    )


def left(hub: Hub) -> list[str]:
    names = {"bad-query-score", "no-secret-score", "misspelt-score"}
    found = [obj["metadata"]["name"] for obj in hub.api.list(*SCORE)]
    return [name for name in found if name in names]


def described(hub: Hub, namespace: str, name: str, names: dict[str, str]) -> str:
    """The status as `kubectl describe` prints it, with fixed times and addresses."""
    if KUBECTL is None:
        return told(hub.api.get(API, KIND, name, namespace), names)
    printed = subprocess.run(
        [KUBECTL, "describe", "dynamicscorer", name, "-n", namespace],
        env={**os.environ, "KUBECONFIG": str(hub.admin_kubeconfig)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    _, _, status = printed.partition("\nStatus:\n")
    return stable("Status:\n" + status.partition("\nEvents:")[0], names)


def told(obj: Object, names: dict[str, str]) -> str:
    """Only the messages, for machines without kubectl."""
    return stable("\n".join(each["message"] for each in obj["status"]["conditions"]), names)


def stable(text: str, names: dict[str, str]) -> str:
    for address, name in names.items():
        text = text.replace(address, name)
    return TIME.sub("2026-11-20T10:00:00Z", text).rstrip()


def block(name: str) -> re.Pattern[str]:
    start = re.escape(f"$ kubectl describe dynamicscorer {name} -n open-cluster-management\n…\n")
    return re.compile(f"(?<={start}).*?(?=\n…\n```)", re.DOTALL)


@pytest.mark.parametrize("name", ENDS)
def test_the_document_shows_what_kubectl_says(statuses: dict[str, str], name: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    if os.environ.get(UPDATE):
        text = block(name).sub(lambda _: statuses[name], text, count=1)
        DOCUMENT.write_text(text, encoding="utf-8")
    found = block(name).search(text)
    assert found, f"{DOCUMENT.name} has no block for {name}"
    if KUBECTL is None:
        assert all(line in squeezed(found[0]) for line in squeezed(statuses[name]).split("\n"))
    else:
        assert found[0] == statuses[name]


def squeezed(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
