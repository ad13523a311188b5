"""The image's build stage, run without a container engine: the same files, the same commands."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import uv

from tests.repository import ROOT

CONTAINERFILE = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
STAGES = CONTAINERFILE.split("\nFROM ")
[BUILD] = [stage for stage in STAGES if "AS build" in stage]
[PAGE] = [stage for stage in STAGES if "AS page" in stage]


def words(stage: str, instruction: str) -> list[list[str]]:
    """The words of each such instruction of a stage."""
    return [found.split() for found in re.findall(rf"(?m)^{instruction} (.*)$", stage)]


def test_nothing_is_sent_to_a_builder_but_what_is_copied() -> None:
    copied = {
        source
        for *sources, _ in words(BUILD, "COPY")
        for source in sources
        if not sources[0].startswith("--from")
    }
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == copied


def test_it_runs_as_nobody_and_takes_its_bases_as_arguments() -> None:
    assert words(STAGES[-1], "USER") == [["65532:65532"]]
    assert [stage.split()[0] for stage in STAGES[1:]] == [
        "${UV_IMAGE}",
        "${NODE_IMAGE}",
        "${PYTHON_IMAGE}",
        "${PYTHON_IMAGE}",
    ]
    workflow = (ROOT / ".github/workflows/release.yaml").read_text()
    for [argument] in words(CONTAINERFILE, "ARG"):
        name = argument.partition("=")[0]
        assert f'--build-arg "{name}=$(by_digest {name})"' in workflow


@pytest.mark.exhaustive
def test_its_commands_install_every_component(tmp_path: Path) -> None:
    source, environment = tmp_path / "src", tmp_path / "opt"
    source.mkdir()
    for *sources, target in words(BUILD, "COPY"):
        for name in sources if not sources[0].startswith("--from") else ():
            path = source / (target if target != "./" else name)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, path)
    _build_page(source / "optimizer" / "page")
    path = f"{Path(uv.find_uv_bin()).parent}:{os.environ['PATH']}"
    for command in words(BUILD, "RUN"):
        subprocess.run(
            command,
            cwd=source,
            env={**os.environ, "PATH": path, "UV_PROJECT_ENVIRONMENT": str(environment)},
            check=True,
            capture_output=True,
        )
    shutil.rmtree(source)
    assert [*environment.glob("lib/*/site-packages/optimizer/page/dist/index.html")]
    for command in ("controller", "agent", "optimizer", "mcp", "policy-watcher"):
        ran = [environment / "bin" / "dsf", command, "--help"]
        assert b"Usage" in subprocess.run(ran, check=True, capture_output=True).stdout


def _build_page(page: Path) -> None:
    """Run the commands of the stage `page`; `npm.sh` finds the npm that its base image has."""
    for unsent in ("node_modules", "dist"):
        shutil.rmtree(page / unsent, ignore_errors=True)
    [command] = words(PAGE, "RUN")
    ran = " ".join(command).replace("npm ", "./npm.sh ")
    subprocess.run(["/bin/bash", "-c", ran], cwd=page, check=True, capture_output=True)
