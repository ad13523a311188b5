"""The product's parts as processes, started as in their Deployments, but on loopback."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
from prometheus_client.parser import text_string_to_metric_families

from ..harness.health import wait_healthy
from ..harness.pods import mark_ready, run_deployment
from ..harness.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..harness.control_plane import ControlPlane

DSF = (sys.executable, "-m", "dsf")
"""What stands for the entry point of our image."""


@dataclass(frozen=True)
class Part:
    """A Deployment of ours as a process; ``port`` is where it serves health, and more.

    ``entrypoint`` stands for that of its image.
    """

    plane: ControlPlane
    namespace: str
    deployment: str
    port: int
    arguments: tuple[str, ...]
    entrypoint: tuple[str, ...] = DSF

    @property
    def process(self) -> str:
        """Name of its process."""
        return f"{self.plane.name}-{self.deployment}"

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Start it and wait until it is ready."""
        run_deployment(
            self.plane,
            self.namespace,
            self.deployment,
            entrypoint=self.entrypoint,
            extra_args=self.arguments,
            process=self.process,
        )
        wait_healthy(self.plane.processes, self.process, f"{self.url}/readyz")

    def stop(self) -> int:
        """Stop it as a kubelet does, and return its exit code."""
        return self.plane.processes.stop(self.process)

    def kill(self) -> None:
        """End it at once."""
        self.plane.processes.kill(self.process)

    def metric(self, name: str, /, **labels: str) -> float:
        """The sum of a metric's samples that have the given labels."""
        answer = httpx.get(f"{self.url}/metrics", trust_env=False)
        return sum(
            sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


def run_part(plane: ControlPlane, namespace: str, deployment: str, *more: str) -> Part:
    """Run a Deployment of ours with more arguments, and report its status as a kubelet does."""
    port = plane.ports.free()
    arguments = (f"--metrics-bind-address={LOOPBACK}:{port}", *more)
    return _run(Part(plane, namespace, deployment, port, arguments))


def run_optimizer(plane: ControlPlane, namespace: str) -> Part:
    """Run the optimizer; its health and its API have the same port."""
    port = plane.ports.free()
    arguments = (f"--bind-address={LOOPBACK}", f"--port={port}")
    return _run(Part(plane, namespace, "dynamic-scoring-optimizer", port, arguments))


def run_program(plane: ControlPlane, name: str, words: Sequence[str], health: str) -> str:
    """Run a program of ours that no chart deploys, on a free port; returns its URL.

    ``words`` are Python's arguments; the port is added as the last one.
    """
    port = plane.ports.free()
    url = f"http://{LOOPBACK}:{port}"
    plane.processes.start(name, [sys.executable, *words, str(port)])
    wait_healthy(plane.processes, name, url + health)
    return url


def _run(part: Part) -> Part:
    part.start()
    mark_ready(part.plane, part.namespace, part.deployment)
    return part
