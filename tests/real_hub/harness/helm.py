"""Install a chart with helm, as a user does."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import yaml

from tests.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .api import Object
    from .control_plane import ControlPlane

CHARTS = ROOT / "charts"
OPTIMIZER_WITHOUT_RIGHTS = {"namespaces": [], "tls": {"source": "None"}}
"""Values of a release that no process serves.

The guide's, which is the same one, serves plain HTTP, and no upgrade changes that silently.
"""

SECONDS_BETWEEN_LOOKS = 0.2
"""How long Pods of `helm test` wait for the kubelet, at most."""


class HelmFailed(Exception):
    """helm ended with an error; the message is its output."""


def install_chart(
    plane: ControlPlane, chart: Path, namespace: str, *, values: Mapping[str, Any] | None = None
) -> str:
    """Install or upgrade a chart as the release of its name, and return the namespace.

    It does not wait, because no Pod becomes ready here. Raises HelmFailed.
    """
    given = plane.directory / f"{chart.name}-values.yaml"
    given.write_text(yaml.safe_dump(dict(values or {})))
    helm(
        plane,
        "upgrade",
        "--install",
        chart.name,
        str(chart),
        f"--namespace={namespace}",
        "--create-namespace",
        f"--values={given}",
    )
    return namespace


def helm_test(
    plane: ControlPlane, release: str, namespace: str, run_pods: Callable[[], None]
) -> None:
    """Run `helm test`, and its Pods by `run_pods` meanwhile; raises HelmFailed."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        words = ("test", release, f"--namespace={namespace}")
        tested = pool.submit(helm, plane, *words)
        while not tested.done():
            run_pods()
            wait([tested], timeout=SECONDS_BETWEEN_LOOKS)
        tested.result()


def installed(plane: ControlPlane, release: str, namespace: str) -> list[Object]:
    """The objects that a release consists of."""
    manifest = helm(plane, "get", "manifest", release, f"--namespace={namespace}")
    return [obj for obj in yaml.safe_load_all(manifest) if obj]


def helm(plane: ControlPlane, *words: str) -> str:
    """Run helm as administrator of a cluster and return what it prints; raises HelmFailed."""
    home = plane.directory / "helm"
    ended = subprocess.run(
        [plane.assets.program("helm"), *words, f"--kubeconfig={plane.admin_kubeconfig}"],
        env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise HelmFailed(f"helm {words[0]}: {ended.stderr.strip()}")
    return ended.stdout
