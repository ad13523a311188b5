"""No file of the repository has the marks of a merge conflict: they broke the Makefile once."""

import shutil
import subprocess

import pytest

from tests.repository import ROOT

MARKS = "^(<{7}|>{7}) "


@pytest.mark.skipif(
    not shutil.which("git") or not (ROOT / ".git").exists(), reason="needs the repository"
)
def test_no_file_has_the_marks_of_a_conflict() -> None:
    search = ["git", "grep", "--line-number", "--extended-regexp", MARKS]
    found = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout == ""
    assert found.returncode == 1, found.stderr
