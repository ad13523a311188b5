"""A shell that types the commands of a page."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import yaml

from tests.pages.blocks import BASH
from tests.repository import ROOT

from . import stand_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ..harness.control_plane import ControlPlane


class Terminal:
    """A shell in a folder that shows the repository; variables stay from command to command.

    What commands write there does not reach the repository.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        programs = directory / "programs"
        programs.mkdir(parents=True)
        for name in stand_in.PROGRAMS:
            words = shlex.join([sys.executable, "-I", stand_in.__file__, name])
            (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (programs / name).chmod(0o755)
        self._folder = directory / "repository"
        self._folder.mkdir()
        for entry in (*ROOT.glob("[!.]*"), *(ROOT / name for name in (".venv", ".build", ".ci"))):
            (self._folder / entry.name).symlink_to(entry)
        # An answer that is an error fails the command.
        (directory / ".curlrc").write_text("fail-with-body\n")
        self._state = directory / "state.sh"
        self._state.touch()
        self.environment = {
            **environment,
            "PATH": f"{programs}:{ROOT}/.venv/bin:{environment['PATH']}",
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; a question is answered with yes."""
        script = f"set -a -e -o pipefail\n. {self._state}\n{command}\nexport -p > {self._state}\n"
        return subprocess.run(
            [BASH, "-c", script],
            cwd=self._folder,
            env=self.environment,
            input="y\n",
            capture_output=True,
            text=True,
            check=False,
        )


def terminal_of(hub: ControlPlane, *clusters: ControlPlane) -> Terminal:
    """A shell whose kubectl has the contexts of the documents: that of the hub is chosen."""
    directory = hub.processes.directory
    kubectl = shutil.which("kubectl")
    assert kubectl
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory / "terminal"),
        "KUBECONFIG": str(contexts((hub, *clusters), directory / "contexts.yaml")),
        "REAL_KUBECTL": kubectl,
        "REAL_HELM": hub.assets.program("helm"),
    }
    return Terminal(directory / "terminal", environment)


def contexts(planes: Iterable[ControlPlane], file: Path) -> Path:
    """Write a kubeconfig with a context for each cluster, named as kind names it."""
    merged: dict[str, Any] = {"clusters": [], "users": [], "contexts": []}
    for plane in planes:
        name = "kind-hub01" if plane.name == "hub" else f"kind-{plane.name}"
        own = yaml.safe_load(plane.admin_kubeconfig.read_text())
        merged["clusters"].append({**own["clusters"][0], "name": name})
        merged["users"].append({**own["users"][0], "name": name})
        merged["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    merged["current-context"] = "kind-hub01"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **merged}))
    return file
