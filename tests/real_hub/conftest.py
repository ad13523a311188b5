"""A real hub for all tests of this folder: built once, started once, stopped at the end."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

from .build import Assets, BuildError, locate
from .harness import policy
from .harness.bound_namespace import bound
from .harness.gpu_nodes import device_classes
from .harness.helm import CHARTS, OPTIMIZER_WITHOUT_RIGHTS, install_chart
from .harness.hub import Hub, running_hub
from .harness.scheduled import ScheduledCluster

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from xdist.remote import Producer

    from .harness.api import Object
    from .harness.cluster import ManagedCluster

LOGS = pytest.StashKey[Path]()
NUMBERS = itertools.count(1)
# The chart's own 30 s would make tests wait for nothing.
RESYNC_SECONDS = 1
READABLE = [{"apiGroup": "metrics.k8s.io", "resource": "nodes"}]
"""What agents may list on their clusters."""


@pytest.fixture(scope="session")
def hub_assets() -> Assets:
    """The programs of the hub; without them the whole run ends with one message."""
    try:
        return locate()
    except BuildError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture(scope="session")
def hub(hub_assets: Assets, request: pytest.FixtureRequest) -> Iterator[Hub]:
    """A hub with OCM's controllers and, at first, no managed cluster."""
    directory = Path(tempfile.mkdtemp(prefix="dsf-hub-test-"))
    request.config.stash[LOGS] = directory / "logs"
    with running_hub(directory, hub_assets) as running:
        yield running
    if not request.session.testsfailed:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def clusters(hub: Hub) -> list[ManagedCluster]:
    """Two managed clusters, ``east`` and ``west``, joined and available."""
    return hub.join("east", "west")


@pytest.fixture(scope="session")
def east(clusters: list[ManagedCluster]) -> ManagedCluster:
    """The first managed cluster."""
    return clusters[0]


@pytest.fixture(scope="session")
def west(clusters: list[ManagedCluster]) -> ManagedCluster:
    """The second managed cluster."""
    return clusters[1]


@pytest.fixture(scope="session")
def scheduled(hub: Hub) -> ScheduledCluster:
    """A managed cluster, ``gpus``, with a scheduler and without nodes; use `gpus` in tests."""
    (cluster,) = hub.join_as(ScheduledCluster, "gpus")
    for device_class in device_classes():
        cluster.apply(device_class)
    return cluster


@pytest.fixture
def gpus(scheduled: ScheduledCluster) -> Iterator[ScheduledCluster]:
    """The cluster with a scheduler; its nodes, devices and Pods are deleted after the test."""
    yield scheduled
    scheduled.clear("default")


@pytest.fixture(scope="session")
def policies(hub: Hub, clusters: list[ManagedCluster]) -> None:
    """OCM's governance policies on the hub and on both clusters."""
    policy.start_on_hub(hub)
    for cluster in clusters:
        policy.start_on_cluster(cluster)


@pytest.fixture(scope="session")
def manifests_namespace(hub: Hub) -> str:
    """The namespace whose workloads and policies the hub controller may read."""
    return hub.namespace("manifests")


@pytest.fixture(scope="session")
def framework(hub: Hub, policies: None, manifests_namespace: str) -> str:
    """The framework's chart on the hub; returns the namespace of its controller.

    The policies' CRD is there before, because the controller's start waits for manifests.
    """
    # Sources and scoring APIs are processes of this machine, which for Pods they never are.
    scorers: Object = {"deniedCIDRs": []}
    election = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
    controller: Object = {
        "resyncSeconds": RESYNC_SECONDS,
        "probePeriodSeconds": RESYNC_SECONDS,
        "distributeSecrets": True,
        "manifestNamespaces": [manifests_namespace],
        "scorers": scorers,
        "leaderElection": election,
    }
    values = {
        "hubSetting": {"resourceController": controller},
        "spokeSetting": {
            "agent": {
                "scorers": scorers,
                "readableResources": READABLE,
                "inventory": {"enabled": True},
            }
        },
    }
    return install_chart(
        hub, CHARTS / "dynamic-scoring-framework", "open-cluster-management", values=values
    )


@pytest.fixture(scope="session")
def placement_plans(hub: Hub, framework: str) -> None:
    """The optimizer's chart without rights in any namespace, because it ships PlacementPlan."""
    chart = CHARTS / "dynamic-scoring-optimizer"
    install_chart(hub, chart, framework, values=OPTIMIZER_WITHOUT_RIGHTS)


@pytest.fixture
def namespace(hub: Hub) -> str:
    """A namespace on the hub that no other test uses."""
    return hub.namespace(f"test-{next(NUMBERS)}")


@pytest.fixture
def bound_namespace(hub: Hub, namespace: str) -> Iterator[str]:
    """A namespace of its own whose Placements can choose from every cluster."""
    with bound(hub, namespace):
        yield namespace


class FolderScheduling(LoadScopeScheduling):
    """Gives the tests of a folder, or of a file here, to one process, and so to one hub."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.partition("::")[0]).resolve()
        return file.relative_to(Path(__file__).parent).parts[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    """Say how several processes share the tests."""
    return FolderScheduling(config, log)


HALF_MADE = (
    "ignore:Exception ignored in. <(function _Selector|socket)"
    ":pytest.PytestUnraisableExceptionWarning"
)
"""asyncio closes a connection milliseconds after its TLS handshake was cancelled; a loop that ends
sooner leaves it to garbage collection, which meets it in whichever test runs then. All
other suites fail for a connection that is left open."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let no test fail for a connection that an earlier one was cancelled at."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(HALF_MADE))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say where the hub's logs are if a test failed; a process of several has no summary."""
    report = yield
    logs = item.config.stash.get(LOGS, None)
    if report.failed and logs:
        report.sections.append(("logs of the real hub", str(logs)))
    return report
