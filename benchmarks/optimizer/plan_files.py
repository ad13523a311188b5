"""What `dsf plan -f` costs besides parsing JSON and solving, in CPU seconds.

python -m benchmarks.optimizer.plan_files

The first file has 258,000 scores of 100 managed clusters, the second 60,000 managed clusters in one
list. Each step runs in a process of its own; ratios are to the sum of `json.load` and the solve of
the same run.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLUSTERS, WORKLOADS, MANY = 100, 860, 60_000
STEPS = ("json.load", "solve", "read", "dsf plan")


def main() -> None:
    """Write the files, measure the steps, print them."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"258,000 scores": Path(folder) / "scores", "60,000 objects": Path(folder) / "many"}
        for path, write in zip(files.values(), (_write_scores, _write_clusters), strict=True):
            path.mkdir()
            write(path)
        print(f"{'file':<18}{'step':<12}{'CPU s':>8}{'ratio':>8}")
        for name, path in files.items():
            taken = {step: _seconds(step, path) for step in STEPS}
            whole = taken["json.load"] + taken["solve"]
            for step, seconds in taken.items():
                print(f"{name:<18}{step:<12}{seconds:>8.2f}{seconds / whole:>8.2f}")


def _seconds(step: str, path: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, step, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.splitlines()[-1])


def _write_scores(folder: Path, clusters: int = CLUSTERS, workloads: int = WORKLOADS) -> None:
    from benchmarks.optimizer import score_hub  # noqa: PLC0415 - numpy is no part of what is measured
    from benchmarks.optimizer.instances import instance  # noqa: PLC0415

    for kind, (count, make) in score_hub.lists(instance(clusters, workloads, "prof"), 0.0).items():
        whole = {"apiVersion": kind.api_version, "kind": kind.kind}
        items = [{**whole, **make(number)} for number in range(count)]
        _write(folder / f"{kind.plural}.json", items)
    request = score_hub.request(clusters, workloads, None)
    (folder / "request.json").write_text(json.dumps(request))


def _write_clusters(folder: Path) -> None:
    from dsf.kube.kinds import MANAGED_CLUSTER as KIND  # noqa: PLC0415

    _write_scores(folder, 1, 1)
    whole = {"apiVersion": KIND.api_version, "kind": KIND.kind, "spec": {"hubAcceptsClient": True}}
    names = [f"many-{number:05}" for number in range(MANY)]
    items = [{**whole, "metadata": {"name": i, "labels": {"cluster-name": i}}} for i in names]
    _write(folder / "many.json", items)


def _write(path: Path, items: list[Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, separators=(",", ":"))
    path.write_text(text)


def _measured(step: str, folder: Path) -> float:
    if step == "json.load":
        return _spent(lambda: [json.loads(path.read_bytes()) for path in folder.iterdir()])
    from optimizer.cli.object_files import read_object_files  # noqa: PLC0415

    if step == "read":
        return _spent(lambda: read_object_files([folder], None))
    if step == "solve":
        return _solve(folder)
    words = [sys.executable, "-m", "dsf", "plan", "-f", str(folder)]
    return _spent(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=False))


def _solve(folder: Path) -> float:
    from datetime import UTC, datetime  # noqa: PLC0415

    from optimizer.cli.object_files import read_object_files  # noqa: PLC0415
    from optimizer.domain.settings import DEFAULTS  # noqa: PLC0415
    from optimizer.service.planner import Planner  # noqa: PLC0415

    read = read_object_files([folder], None)
    request = read.request
    assert request is not None  # noqa: S101 - the files of this module have one
    planner = Planner(read.hub, DEFAULTS, now=lambda: datetime.now(UTC))
    return _spent(lambda: asyncio.run(planner.plan(request, name_others=True)))


def _spent(work: Callable[[], object]) -> float:
    before = _used()
    work()
    return _used() - before


def _used() -> float:
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime for who in both)


if __name__ == "__main__":
    if len(sys.argv) > 2:  # noqa: PLR2004 - a step and its folder
        print(_measured(sys.argv[1], Path(sys.argv[2])))
        sys.stdout.flush()
        os._exit(0)
    main()
