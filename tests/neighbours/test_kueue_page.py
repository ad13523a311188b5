"""kueue.md works as it is typed, with Kueue's manager and OCM's placement controller.

The test does what OCM's Kueue add-on does on the hub: the MultiKueueConfig, as the page shows it,
and the condition of the admission check that names the Placement.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from dsf.api.times import rfc3339
from dsf.kube.clock import utc_now
from tests.charts.entrypoints import DSF
from tests.real_hub.harness.bound_namespace import bound
from tests.real_hub.harness.placements import decided, publish_score
from tests.real_hub.harness.pods import run_deployment
from tests.repository import ROOT

from .conftest import ACCOUNT, hub_queues
from .conftest import NAMESPACE as HUB_NAMESPACE
from .kueue_manager import KUEUE, NAMESPACE
from .pages import type_page
from .test_argocd import CARBON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_hub.guides.terminal import Terminal
    from tests.real_hub.harness.hub import Hub

    from .conftest import MultiKueue

PAGE = (ROOT / "docs/how-to/kueue.md").read_text()
FENCE = re.compile(r"^ *```yaml\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
CONFIG, CONFIGURATION = map(yaml.safe_load, FENCE.findall(PAGE))
"""What the add-on writes, and what the reader adds to Kueue's configuration."""
QUEUES = (
    ("ClusterQueue", "cluster-queue"),
    ("LocalQueue", "user-queue"),
    ("AdmissionCheck", "multikueue"),
    ("AdmissionCheck", "greenest"),
    ("MultiKueueConfig", "greenest"),
    ("ResourceFlavor", "default-flavor"),
)
"""The queues of the fleet and of the page, in the order in which Kueue lets go of them."""


@pytest.fixture
def page(kueue: MultiKueue) -> Iterator[MultiKueue]:
    """Kueue with its default dispatcher and without queues, and scores."""
    publish_score(kueue.hub, CARBON, CARBON, brown=10, green=90, grey=50)
    kueue.manager.restart()
    remove_queues(kueue.hub)
    with bound(kueue.hub, NAMESPACE):
        yield kueue
    kueue.clear()
    remove_queues(kueue.hub)
    kueue.manager.restart(CONFIGURATION["multiKueue"]["dispatcherName"])
    hub_queues(kueue.hub)


def remove_queues(hub: Hub) -> None:
    """Delete the queues of the hub, and wait until Kueue has let go of them."""
    for kind, name in QUEUES:
        hub.api.delete(KUEUE, kind, name, "default")
        hub.api.wait_gone(KUEUE, kind, name, "default")


def be_the_add_on(hub: Hub) -> None:
    """Write the MultiKueueConfig for the decision, and that the Placement's check is active."""
    clusters = decided(hub, CONFIG["metadata"]["name"], NAMESPACE)
    hub.apply({**CONFIG, "spec": {"clusters": clusters}})
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "generated"}
    conditions = [{**active, "lastTransitionTime": rfc3339(utc_now())}]
    body = {"status": {"conditions": conditions}}
    hub.api.patch(KUEUE, "AdmissionCheck", "greenest", body, subresource="status")
    hub.api.wait_condition(KUEUE, "ClusterQueue", "cluster-queue", "Active")


def test_the_page_works_as_typed(page: MultiKueue, terminal: Terminal) -> None:
    hub = page.hub

    def enable() -> None:
        page.manager.restart(CONFIGURATION["multiKueue"]["dispatcherName"])
        run_deployment(
            hub,
            HUB_NAMESPACE,
            ACCOUNT,
            entrypoint=DSF,
            extra_args=("--metrics-bind-address=127.0.0.1:0",),
            process="typed-dispatcher",
        )

    shows = {
        "get placementdecisions": "green",
        "get admissionchecks": "greenest",
        "get workloads -n default": "green",
        "describe workload": "Nominated: green. Scores: green (450).",
        "get workloads -A": "job-train-",
    }
    after = {
        "queues.yaml": lambda: be_the_add_on(hub),
        "helm upgrade": enable,
        "annotate localqueue": lambda: page.submit("second"),
    }
    try:
        type_page(terminal, "kueue.md", shows, after)
    finally:
        hub.processes.stop("typed-dispatcher")
