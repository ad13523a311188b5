"""The product's parts as processes: exactly what their Deployments say, but on loopback."""

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

# What stands for the image's entry point.
DSF = (sys.executable, "-m", "dsf")


@dataclass(frozen=True)
class Part:
    """A running process of the product, and where it serves health and metrics, or its API."""

    plane: ControlPlane
    process: str
    url: str

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have the given labels."""
        answer = httpx.get(f"{self.url}/metrics", trust_env=False)
        return sum(
            sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def stop(self) -> int:
        """Stop it as a kubelet does, and return its exit code."""
        return self.plane.processes.stop(self.process)


def run_part(plane: ControlPlane, namespace: str, deployment: str) -> Part:
    """Run a Deployment of ours, and say to its cluster what a kubelet would say of it."""
    address = f"{LOOPBACK}:{plane.ports.free()}"
    process = run_deployment(
        plane,
        namespace,
        deployment,
        entrypoint=DSF,
        extra_args=[f"--metrics-bind-address={address}"],
    )
    return _ready(plane, namespace, deployment, process, address)


def run_optimizer(plane: ControlPlane, namespace: str) -> Part:
    """Run the optimizer, which has its health where it has its API."""
    port = plane.ports.free()
    deployment = "dynamic-scoring-optimizer"
    process = run_deployment(
        plane,
        namespace,
        deployment,
        entrypoint=DSF,
        extra_args=[f"--bind-address={LOOPBACK}", f"--port={port}"],
    )
    return _ready(plane, namespace, deployment, process, f"{LOOPBACK}:{port}")


def run_program(plane: ControlPlane, name: str, words: Sequence[str], health: str) -> str:
    """Run a program of ours that no chart deploys, on a free port; returns its URL.

    ``words`` are Python's arguments; the port comes last.
    """
    port = plane.ports.free()
    url = f"http://{LOOPBACK}:{port}"
    plane.processes.start(name, [sys.executable, *words, str(port)])
    wait_healthy(plane.processes, name, url + health)
    return url


def _ready(
    plane: ControlPlane, namespace: str, deployment: str, process: str, address: str
) -> Part:
    url = f"http://{address}"
    wait_healthy(plane.processes, process, f"{url}/readyz")
    mark_ready(plane, namespace, deployment)
    return Part(plane, process, url)
