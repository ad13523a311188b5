"""The code of the earlier release as programs, read from the repository's history."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.repository import ROOT

COMMIT = "c1eb6f00"
"""The last commit with the charts that are kept here."""


def unpack(directory: Path) -> tuple[str, ...]:
    """Write the code below a directory, and return what stands for the entry point of its image.

    It runs with the libraries of today. The test is skipped where the history lacks the commit,
    as it does in a shallow clone and in an archive of the sources.
    """
    command = ["git", "archive", COMMIT, "dsf"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if ended.returncode:
        pytest.skip(f"the history lacks {COMMIT}, the code of 0.1.0: git fetch --unshallow")
    with tarfile.open(fileobj=io.BytesIO(ended.stdout)) as archive:
        archive.extractall(directory, filter="data")
    # Safe path: without the working directory, which has the code of today.
    environment = (f"PYTHONPATH={directory}", "PYTHONSAFEPATH=1")
    return ("/usr/bin/env", *environment, sys.executable, "-m", "dsf")
