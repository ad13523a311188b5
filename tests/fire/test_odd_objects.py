"""Objects as no example has them, through files and through a hub, without an internal error."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dsf.api.untrusted_text import UntrustedName
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import AlreadyExists, BadRequest, Invalid
from dsf.kube.kinds import find
from dsf.kube.port import Object
from optimizer.cli.object_files import ListedObjects
from optimizer.cli.planning import plan
from tests.command_line import invoked
from tests.fire.odd_objects import PLANNED, odd_objects, odd_request, wrong_objects
from tests.optimizer.api.test_app import client

OBJECTS = 60_000
FILES = 12
CPU_SECONDS, PEAK_MIB = 90, 1_500
"""Some ten times what a quiet machine needs: what is looked for is quadratic, or a bomb."""

MEASURED = """
import json, re, sys, time
from pathlib import Path
from click.testing import CliRunner
from optimizer.cli.planning import plan
found = CliRunner().invoke(plan, sys.argv[1:])
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([found.exit_code, found.stdout, found.stderr, time.process_time(), peak]))
"""

WRONG = wrong_objects()
ASSIGNED = ("uid", "resourceVersion", "generation", "creationTimestamp")


def _seed() -> Random:
    return Random(27)  # noqa: S311 - the same objects each time


@pytest.mark.exhaustive
@pytest.mark.fire(
    "odd but valid objects are planned with, in bounded time and memory",
    "60,000 objects in files, through dsf plan -f",
    count=OBJECTS,
)
def test_odd_objects_of_files_are_planned_with(tmp_path: Path) -> None:
    made = list(odd_objects(OBJECTS, _seed()))
    for number in range(FILES):
        items = {"apiVersion": "v1", "kind": "List", "items": made[number::FILES]}
        (tmp_path / f"{number}.json").write_text(json.dumps(items))
    (tmp_path / "request.json").write_text(json.dumps(odd_request()))
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, f"-f{tmp_path}", "-ojson"],
        capture_output=True,
        text=True,
        check=True,
    )
    code, out, err, cpu_seconds, peak_mib = json.loads(done.stdout)
    assert (code, "Traceback" in err) == (0, False), err[-2000:]
    assert json.loads(out)["placements"]
    assert (cpu_seconds < CPU_SECONDS, peak_mib < PEAK_MIB) == (True, True), (cpu_seconds, peak_mib)


@pytest.mark.exhaustive
@pytest.mark.fire(
    "odd but valid objects are planned with, in bounded time and memory",
    "60,000 objects on the embedded hub, through POST /optimize, each as files have it",
    count=OBJECTS,
)
async def test_odd_objects_of_a_hub_are_planned_with() -> None:
    hub, files = EmbeddedHub(), ListedObjects("2026-11-20T12:00:00Z")
    for found in odd_objects(OBJECTS, _seed()):
        kind = find(found)
        assert kind is not None
        files.add(kind, found)
        # The owners do not exist, so that a hub would delete what they own.
        found["metadata"].pop("ownerReferences", None)
        await stored(hub, found)
    async with client(hub) as http:
        answer = await http.post("/optimize", json=odd_request())
    assert answer.status_code == 200, answer.text[:2000]
    assert answer.json()["placements"]
    for kind in (kinds.MANAGED_CLUSTER, kinds.POLICY, kinds.ADD_ON_PLACEMENT_SCORE):
        of_files, of_hub = await files.list(kind), await hub.list(kind)
        for ours, theirs in zip(of_files.items, of_hub.items, strict=True):
            assert _unassigned(ours) == _unassigned(theirs)


@pytest.mark.fire("each refused object is named, with its field", "dsf plan -f")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_object_is_named(name: str, tmp_path: Path) -> None:
    found, field = WRONG[name]
    path = tmp_path / "wrong.json"
    whole = {"apiVersion": "v1", "kind": "List", "items": [*few(), found]}
    path.write_text(json.dumps(whole))
    code, out, err = invoked(plan, f"-f{path}", "--objective=performance")
    assert (code, out, err.count("\n")) == (1, "", 1), err[:2000]
    assert f"wrong.json: {found['kind']} {UntrustedName(found['metadata']['name'])}: " in err
    assert field in err


@pytest.mark.parametrize("name", sorted(WRONG.keys() - {"a misspelt field"}))
async def test_a_wrong_object_is_wrong_on_a_hub_too(name: str) -> None:
    found, _ = WRONG[name]
    with pytest.raises((BadRequest, Invalid)):
        await stored(EmbeddedHub(), found)


@pytest.mark.parametrize(
    ("suffix", "text", "said"),
    [
        ("json", '{"kind": "List", "apiVersion": "v1", "items": 5}', "must be a list"),
        ("json", '{"kind": "List", "apiVersion": "v1", "items": [5]}', "items[0]: an object with"),
        (
            "json",
            '{"kind": "List", "apiVersion": "v1", "items": [{"metadata": {"name": "x"}}]}',
            "items[0]: an object without apiVersion and kind",
        ),
        ("yaml", "status: {allocatable: {cpu: .nan}}", "nan is not a JSON number"),
        ("yaml", "status: {allocatable: {cpu: !!binary aGVq}}", "bytes is not a JSON value"),
        ("yaml", "status: {allocatable: !!set {a, b}}", "set is not a JSON value"),
        ("json", '"status": {"allocatable": {"cpu": 1e999}}', "inf is not a JSON number"),
    ],
)
def test_what_is_no_object_is_named(suffix: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / f"wrong.{suffix}"
    kind = kinds.MANAGED_CLUSTER
    meta = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "wrong"}}
    if "items" not in text:
        whole = json.dumps(meta)
        text = f"{whole[:-1]}, {text}}}"
    path.write_text(text)
    code, out, err = invoked(plan, f"-f{path}", "--objective=performance")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "wrong." in err
    assert said in err


def few() -> Iterator[Object]:
    yield from list(odd_objects(4 * PLANNED, _seed()))[:4]


async def stored(hub: EmbeddedHub, found: Object) -> None:
    """Create an object and its namespace, and write its status."""
    kind, metadata = find(found), dict(found["metadata"])
    assert kind is not None
    for key in ASSIGNED:
        metadata.pop(key, None)
    namespace: Any = metadata.get("namespace") if kind.namespaced else None
    if kind.namespaced:
        with suppress(AlreadyExists):
            await hub.create(kinds.NAMESPACE, {"metadata": {"name": namespace}})
    await hub.create(kind, {**found, "metadata": metadata})
    if found.get("status"):
        await hub.patch(
            kind, metadata["name"], {"status": found["status"]}, namespace, subresource="status"
        )


def _unassigned(found: Object) -> Object:
    dropped = {*ASSIGNED, "ownerReferences", "managedFields"}
    meta = {key: value for key, value in found["metadata"].items() if key not in dropped}
    return {**found, "metadata": meta}
