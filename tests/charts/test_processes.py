"""The command lines of the Deployments parse, start as processes, and end well at SIGTERM."""

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import httpx
import pytest
import trustme
import yaml

from dsf.api.crd.definitions import crds
from dsf.cli.root import root as dsf
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import NAMESPACE
from dsf.kube.resources.ocm import ocm_crds
from tests.charts.entrypoints import DSF, entrypoint
from tests.charts.rendering import expanded, render
from tests.charts.toggles import CHARTS as TOGGLES
from tests.charts.toggles import EXAMPLES, Values, combinations
from tests.real_hub.harness.ports import LOOPBACK, Ports
from tests.repository import ROOT

PORTS = Ports()
HANGS_SECONDS = 180
"""Catches a process that is never healthy; it measures nothing."""


@dataclass(frozen=True)
class CommandLine:
    """What Kubernetes would start, without its addresses and files, and how it asks for health."""

    entrypoint: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    scheme: str
    path: str

    @property
    def words(self) -> set[object]:
        """Its arguments and variables."""
        return {*self.arguments, *self.environment}


def values_of(chart: str) -> Iterator[Values]:
    """All values with which a chart is tested: combinations of toggles, and files for users."""
    yield from (values for _, values in combinations(chart))
    yield from (
        yaml.safe_load((ROOT / file).read_text()) for file, of in EXAMPLES.items() if of == chart
    )


@cache
def command_lines(chart: str) -> frozenset[CommandLine]:
    """The different command lines of the Deployments of a chart."""
    return frozenset(
        CommandLine(
            entrypoint(container["image"]),
            tuple(container.get("args", ())),
            tuple(
                (entry["name"], entry.get("value", "a-field-of-the-pod"))
                for entry in container.get("env") or ()
            ),
            container["startupProbe"]["httpGet"]["scheme"].lower(),
            container["startupProbe"]["httpGet"]["path"],
        )
        for values in values_of(chart)
        for obj in expanded(render(chart, values))
        if obj["kind"] == "Deployment"
        for container in obj["spec"]["template"]["spec"]["containers"]
    )


def covering(chart: str) -> set[CommandLine]:
    """Few command lines, in which each argument and variable of each program occurs.

    The shortest of each program is among them: it has none that can be left out.
    """
    chosen = set()
    by_program: dict[tuple[str, ...], list[CommandLine]] = {}
    for line in sorted(command_lines(chart), key=lambda line: (len(line.words), repr(line))):
        program = (
            (*line.entrypoint, *line.arguments[:1]) if line.entrypoint == DSF else line.entrypoint
        )
        by_program.setdefault(program, []).append(line)
    for lines in by_program.values():
        missing = set().union(*(line.words for line in lines)) - lines[0].words
        chosen.add(lines[0])
        while missing:
            best = max(lines, key=lambda line: len(line.words & missing))
            missing -= best.words
            chosen.add(best)
    return chosen


@pytest.mark.parametrize("chart", [chart for chart in TOGGLES if chart != "sample-scorers"])
def test_each_command_line_parses(chart: str) -> None:
    lines = command_lines(chart)
    assert lines
    for line in lines:
        name, *words = line.arguments
        command = dsf.get_command(click.Context(dsf), name)
        assert command is not None
        # Files of volumes are not here; any file stands for them.
        command.make_context(name, [re.sub(r"=/.*", f"={__file__}", word) for word in words])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """What stands for the mounted files, by the options that name them."""
    certificate = trustme.CA().issue_cert(LOOPBACK)
    files = {
        option: tmp_path / option.strip("-")
        for option in (
            "--hub-kubeconfig",
            "--scorer-certificate-authority",
            "--tls-cert-file",
            "--tls-private-key-file",
            "--push-tls-cert-file",
            "--push-tls-private-key-file",
        )
    }
    for option in ("--tls-private-key-file", "--push-tls-private-key-file"):
        certificate.private_key_pem.write_to_path(str(files[option]))
    for option in ("--tls-cert-file", "--push-tls-cert-file", "--scorer-certificate-authority"):
        certificate.cert_chain_pems[0].write_to_path(str(files[option]))
    return files


def redirected(line: CommandLine, files: Mapping[str, Path], port: int) -> list[str]:
    """A command line with addresses on loopback and with the files."""
    addresses = {
        "--metrics-bind-address": f"{LOOPBACK}:{port}",
        "--otlp-bind-address": f"{LOOPBACK}:{PORTS.free()}",
        "--push-bind-address": f"{LOOPBACK}:{PORTS.free()}",
        "--bind-address": LOOPBACK,
        "--port": str(port),
    }
    options = {**addresses, **files}
    words = [(word, *word.split("=", 1)) for word in line.arguments]
    argv = [
        f"{option}={options[option]}" if option in options else word for word, option, *_ in words
    ]
    if line.entrypoint != DSF:
        # A sample refuses an option that is given twice.
        argv = [word for word in argv if not word.startswith("--port=")]
        argv += [f"--host={LOOPBACK}", f"--port={port}"]
    return [*line.entrypoint, *argv]


@pytest.mark.parametrize("chart", TOGGLES)
async def test_each_argument_is_in_a_process_that_starts_and_ends(
    chart: str, files: dict[str, Path], tmp_path: Path
) -> None:
    processors = asyncio.Semaphore(os.cpu_count() or 1)

    async def run(line: CommandLine) -> None:
        async with processors:
            await start_and_stop(line, files, tmp_path)

    hub = EmbeddedHub(crds=[*crds(), *ocm_crds()])
    # That of the release, where the optimizer keeps its certificate.
    await hub.create(NAMESPACE, {"metadata": {"name": "dsf"}})
    async with serving(hub) as url:
        files["--hub-kubeconfig"].write_text(yaml.safe_dump(kubeconfig(url)))
        await asyncio.gather(*map(run, covering(chart)))


async def start_and_stop(line: CommandLine, files: Mapping[str, Path], directory: Path) -> None:
    """Start a process, wait until it is healthy, and stop it by SIGTERM: its exit code is 0."""
    port = PORTS.free()
    log = directory / f"{port}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *redirected(line, files, port),
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "KUBECONFIG": str(files["--hub-kubeconfig"]),
                **dict(line.environment),
            },
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        async with asyncio.timeout(HANGS_SECONDS):
            url = f"{line.scheme}://{LOOPBACK}:{port}{line.path}"
            started = await healthy(process, url)
            assert started, (line, await asyncio.to_thread(log.read_text))
            process.terminate()
            assert await process.wait() == 0, (line, await asyncio.to_thread(log.read_text))
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def healthy(process: asyncio.subprocess.Process, url: str) -> bool:
    """Wait until a process answers its probe; False if it has ended before."""
    async with httpx.AsyncClient(verify=False, trust_env=False) as client:  # noqa: S501 - on loopback
        while process.returncode is None:
            with suppress(httpx.TransportError):
                if (await client.get(url)).is_success:
                    return True
            await asyncio.sleep(0.1)
    return False
