"""Three pages of docs/how-to show the exact output of kubectl for five broken scorers.

`DSF_UPDATE_DOCS=1 make test-hub TESTS=tests/real_hub/product/test_troubleshooting.py` rewrites the
blocks of the pages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.eventually import until
from tests.repository import ROOT

from ..harness.api import condition_of
from ..harness.ports import LOOPBACK
from . import broken
from .conftest import SCORE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..harness.api import Object
    from ..harness.hub import Hub
    from .parts import Part

API = "dynamic-scoring.open-cluster-management.io/v1alpha1"
KIND = "DynamicScorer"
PAGES = [
    ROOT / "docs/how-to" / name
    for name in (
        "troubleshooting-scorers.md",
        "troubleshooting-distribution.md",
        "troubleshooting-clusters.md",
    )
]
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
DESCRIBED = "bad-query"
"""The scorer whose whole status the pages show."""
READY_MESSAGE = """jsonpath='{.status.conditions[?(@.type=="Ready")].message}'"""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Shown(NamedTuple):
    """What kubectl prints of one scorer."""

    status: str
    ready_message: str


@pytest.fixture(scope="module")
def statuses(
    hub: Hub, framework: str, scored: dict[tuple[str, str], Object], agents: dict[str, Part]
) -> Iterator[dict[str, Shown]]:
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


def described(hub: Hub, namespace: str, name: str, names: dict[str, str]) -> Shown:
    """Return the status and the message of Ready as kubectl prints them, with fixed addresses."""
    obj = hub.api.get(API, KIND, name, namespace)
    message = stable(condition_of(obj, "Ready")["message"], names)
    if KUBECTL is None:
        return Shown(told(obj, names), message)
    printed = printed_by_kubectl(hub, "describe", "dynamicscorer", name, "-n", namespace)
    _, _, status = printed.partition("\nStatus:\n")
    jsonpath = READY_MESSAGE.replace("'", "")
    printed = printed_by_kubectl(hub, "get", "dynamicscorer", name, "-n", namespace, "-o", jsonpath)
    return Shown(
        stable("Status:\n" + status.partition("\nEvents:")[0], names), stable(printed, names)
    )


def printed_by_kubectl(hub: Hub, *arguments: str) -> str:
    return subprocess.run(
        [str(KUBECTL), *arguments],
        env={**os.environ, "KUBECONFIG": str(hub.admin_kubeconfig)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def told(obj: Object, names: dict[str, str]) -> str:
    """Only the messages, for machines without kubectl."""
    return stable("\n".join(each["message"] for each in obj["status"]["conditions"]), names)


def stable(text: str, names: dict[str, str]) -> str:
    for address, name in names.items():
        text = text.replace(address, name)
    return TIME.sub("2026-11-20T10:00:00Z", text).rstrip()


def described_block(name: str) -> re.Pattern[str]:
    start = re.escape(f"$ kubectl describe dynamicscorer {name} -n open-cluster-management\n…\n")
    return re.compile(f"(?<={start}).*?(?=\n…\n```)", re.DOTALL)


def ready_block(name: str) -> re.Pattern[str]:
    """Return the pattern of a message, which is one line and may be in a list."""
    command = f"$ kubectl get dynamicscorer {name} -n open-cluster-management -o {READY_MESSAGE}\n"
    return re.compile(f"({re.escape(command)} *)(.*)")


def page_with(pattern: re.Pattern[str]) -> tuple[Path, str]:
    """Return the only page that has a block, and its text."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    (found,) = [(page, text) for page, text in texts.items() if pattern.search(text)]
    return found


@pytest.mark.parametrize("name", ENDS)
def test_a_page_shows_the_message_of_ready(statuses: dict[str, Shown], name: str) -> None:
    pattern = ready_block(name)
    page, text = page_with(pattern)
    message = statuses[name].ready_message
    if os.environ.get(UPDATE):
        text = pattern.sub(lambda found: found[1] + message, text)
        page.write_text(text, encoding="utf-8")
    assert [found[1] for found in pattern.findall(text)] == [message]


def test_a_page_shows_the_whole_status(statuses: dict[str, Shown]) -> None:
    pattern = described_block(DESCRIBED)
    page, text = page_with(pattern)
    status = statuses[DESCRIBED].status
    if os.environ.get(UPDATE):
        text = pattern.sub(lambda _: status, text)
        page.write_text(text, encoding="utf-8")
    (found,) = pattern.findall(text)
    if KUBECTL is None:
        assert all(line in squeezed(found) for line in squeezed(status).split("\n"))
    else:
        assert found == status


def squeezed(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
