"""Ask OSV which locked packages have published vulnerabilities, by `uv audit`.

Fails if a package has one. Where the service can't be asked, says so and succeeds, because a check
without a network must not look like a check without findings, and must not stop everything else
either; with `--require-answer` it fails. `--service-url URL` asks another service of OSV's API.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.repository import ROOT

UV = Path(sys.executable).with_name("uv")
FOUND, NOT_ASKED = 1, 2
"""Exit codes of `uv audit`."""


def main(arguments: list[str] | None = None) -> int:
    """Print what the service says, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service-url", default="https://api.osv.dev/")
    parser.add_argument("--require-answer", action="store_true")
    options = parser.parse_args(arguments)
    command = [UV, "audit", "--frozen", "--preview-features", "audit-command"]
    asked = subprocess.run(
        [*command, "--service-url", options.service_url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(asked.stdout)
    sys.stderr.write(asked.stderr)
    if asked.returncode != NOT_ASKED:
        return asked.returncode
    sys.stdout.write("NOT ASKED: the advisory service did not answer; no package was checked\n")
    return NOT_ASKED if options.require_answer else 0


if __name__ == "__main__":
    sys.exit(main())
