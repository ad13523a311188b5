"""The contract of the port to Kubernetes, held by a real API server and OCM's own definitions."""

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

CLAIMS = "clusterclaims.cluster.open-cluster-management.io"


@pytest.mark.usefixtures("framework", "policies")
def test_a_real_api_server_holds_the_contract(hub: Hub) -> None:
    """It is the model of the embedded hub, which the same tests hold to the same contract."""
    claims = [obj for obj in klusterlet_manifests(hub) if obj["metadata"]["name"] == CLAIMS]
    ocm.install(hub.api, claims)
    suite = [sys.executable, "-m", "pytest", "tests/dsf/kube/contract", "-k", "apiserver"]
    ran = subprocess.run(
        [*suite, "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=ROOT,
        env={**os.environ, "DSF_CONTRACT_KUBECONFIG": str(hub.admin_kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
