"""A real API server and OCM's controllers pass the contract tests of the embedded hub."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.repository import ROOT

from .harness import ocm
from .harness.cluster import klusterlet_manifests

if TYPE_CHECKING:
    from .harness.hub import Hub

PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist")
CLAIMS = "clusterclaims.cluster.open-cluster-management.io"


@pytest.mark.usefixtures("framework", "policies")
def test_a_real_api_server_holds_the_contract(hub: Hub) -> None:
    """The embedded hub passes the same tests."""
    claims = [obj for obj in klusterlet_manifests(hub) if obj["metadata"]["name"] == CLAIMS]
    ocm.install(hub.api, claims)
    hold(hub, "tests/dsf/kube/contract", "apiserver")


@pytest.mark.usefixtures("framework")
def test_ocm_selects_what_the_simulated_controller_selects(hub: Hub) -> None:
    """One table of Placements, decided by OCM's own placement controller."""
    hold(hub, "tests/dsf/placement/test_scheduling_contract.py", "ocm")


@pytest.mark.usefixtures("framework")
def test_ocm_selects_what_plans_name(hub: Hub) -> None:
    """Plans for taints, tolerations, cluster sets, and for clusters that are lost or deleted."""
    hold(hub, "tests/optimizer/test_eligibility_contract.py", "ocm")


def hold(hub: Hub, suite: str, adapter: str) -> None:
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            suite,
            "-k",
            adapter,
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        ],
        cwd=ROOT,
        env={**os.environ, "DSF_CONTRACT_KUBECONFIG": str(hub.admin_kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
