"""The Makefile can be read, and names each of its targets as phony."""

import re
import subprocess

from tests.repository import ROOT


def test_every_target_is_shown_and_phony() -> None:
    command = ["make", "help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    targets = set(re.findall(r"^  make ([a-z-]+)", shown.stdout, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert targets <= set(phony[1].split())
    assert {"setup", "test", "evals", "mcp-conformance"} <= targets
