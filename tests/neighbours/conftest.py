"""A hub with Kueue's manager, and two worker clusters that are managed clusters of the hub."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dsf.hub.dispatch.kueue_configuration import DISPATCHER
from dsf.hub.dispatch.queue_preferences import PREFERENCES_ANNOTATION
from tests.eventually import PATIENCE, until
from tests.real_hub.build import KUEUE as KUEUE_PROGRAMS
from tests.real_hub.build import Assets, BuildError, ProgramSet, locate
from tests.real_hub.guides.terminal import Terminal, terminal_of
from tests.real_hub.harness.cluster import CLUSTER_GROUP
from tests.real_hub.harness.helm import CHARTS, OPTIMIZER_WITHOUT_RIGHTS, install_chart
from tests.real_hub.harness.hub import Hub, running_hub
from tests.real_hub.harness.placements import publish_score
from tests.real_hub.harness.scheduled import ScheduledCluster
from tests.repository import ROOT

from . import mortal_dispatcher
from .kueue_manager import (
    KUEUE,
    WORKER,
    KueueManager,
    connect_worker,
    job,
    placed,
    queues,
    workloads,
)
from .queue_state import described

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

SCORE = "carbon"
WORKERS = ("brown", "green", "grey")
CPUS = 2
"""Processors that the queue of each worker cluster has."""
ACCOUNT = "dynamic-scoring-dispatcher"
NAMESPACE = "open-cluster-management"


@dataclass
class MultiKueue:
    """The hub with its manager, and the worker clusters by name."""

    hub: Hub
    manager: KueueManager
    workers: dict[str, ScheduledCluster]

    def score(self, **values: int) -> None:
        """Publish the score of worker clusters, as their agents do."""
        publish_score(self.hub, SCORE, "value", **values)

    def submit(self, *names: str, cpu: int = 1) -> None:
        """Create Jobs in the queue of the hub."""
        for name in names:
            self.hub.api.create(job(name, cpu))

    def placed(self) -> dict[str, str]:
        """The worker cluster of each Job, or an empty text; while Kueue's manager runs."""
        self.manager.check()
        return placed(self.hub)

    def at(self, name: str) -> str:
        """The worker cluster of a Job, or an empty text."""
        return self.placed().get(name, "")

    def nominated(self, name: str) -> list[str]:
        """The worker clusters that are nominated for a Job."""
        found = workloads(self.hub).get(name, {})
        return list(found.get("status", {}).get("nominatedClusterNames") or ())

    def clear(self) -> None:
        """Delete the Jobs, and wait until no cluster has a Workload."""
        jobs = self.hub.api.path("batch/v1", "Job", "default")
        self.hub.api.request("DELETE", jobs, {"propagationPolicy": "Background"})
        planes = (self.hub, *self.workers.values())
        until(
            "no Workload to be left",
            lambda: not any(plane.api.list(KUEUE, "Workload", "default") for plane in planes),
        )

    def dispatch_to(self, *clusters: str) -> None:
        """Name the worker clusters that Kueue may use."""
        spec = {"spec": {"clusters": list(clusters)}}
        self.hub.api.patch(KUEUE, "MultiKueueConfig", "fleet", spec)

    def lose(self, name: str) -> None:
        """Kill the API server of a worker cluster."""
        self.hub.processes.kill(f"{name}-kube-apiserver")

    def find(self, name: str) -> None:
        """Start the API server of a lost cluster, and wait until OCM and Kueue have noticed."""
        worker = self.workers[name]
        worker.start(self.hub.etcd)
        worker.wait_ready()
        managed = (CLUSTER_GROUP, "ManagedCluster", name)
        until("OCM to notice", lambda: not self.hub.api.get(*managed)["spec"].get("taints"))
        # Kueue waits twice as long before each attempt, up to five minutes.
        self.hub.api.wait_condition(*WORKER, name, "Active", seconds=2 * PATIENCE)

    @contextmanager
    def dispatcher(self, *flags: str, name: str = "dispatcher") -> Iterator[None]:
        """Run the dispatcher with the rights that the chart gives it."""
        listen = ("--metrics-bind-address=127.0.0.1:0", "--resync-seconds=1")
        command = ("-m", "dsf", "dispatcher", f"--kubeconfig={self._kubeconfig()}")
        self._python(name, *command, *listen, *flags)
        try:
            yield
        finally:
            self.hub.processes.stop(name)

    def kill_dispatcher(self, moment: str) -> int:
        """Run a dispatcher until it is killed before or after its first write; return its code."""
        name = "mortal-dispatcher"
        self._python(name, "-m", mortal_dispatcher.__name__, self._kubeconfig(), moment)
        until("the dispatcher to write", lambda: name in self.hub.processes.exited())
        return self.hub.processes.stop(name)

    def _kubeconfig(self) -> str:
        return str(self.hub.kubeconfig(service_account=f"{NAMESPACE}/{ACCOUNT}"))

    def _python(self, name: str, *words: str) -> None:
        command = [sys.executable, *words]
        self.hub.processes.start(name, command, env={"PYTHONPATH": str(ROOT)})


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Add to a failure what the objects of Kueue say."""
    try:
        return (yield)
    except Exception as error:
        fleet = pyfuncitem.funcargs.get("kueue")
        if isinstance(fleet, MultiKueue):
            error.add_note(described(fleet.hub, [*fleet.workers.values()]))
        raise


def built(which: ProgramSet) -> Assets:
    """Programs and manifests; without them the whole run ends with one message."""
    try:
        return locate(which=which)
    except BuildError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)


@pytest.fixture(scope="session")
def hub() -> Iterator[Hub]:
    """A hub with OCM's controllers."""
    directory = Path(tempfile.mkdtemp(prefix="dsf-neighbours-"))
    with running_hub(directory, locate(os.environ)) as running:
        yield running
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def fleet(hub: Hub) -> MultiKueue:
    """Kueue everywhere, with queues of CPUS on each worker cluster, and the dispatcher's rights."""
    workers = hub.join_as(ScheduledCluster, *WORKERS)
    managers = [KueueManager(plane, built(KUEUE_PROGRAMS)) for plane in (hub, *workers)]
    for manager in managers:
        manager.install()
    # No agent runs; what the tests need of the charts are CRDs, and accounts with their rights.
    values = {
        "hubSetting": {"dispatcher": {"enabled": True}},
        "addOn": {"installStrategy": "Manual"},
    }
    install_chart(hub, CHARTS / "dynamic-scoring-framework", NAMESPACE, values=values)
    optimizer = CHARTS / "dynamic-scoring-optimizer"
    install_chart(hub, optimizer, NAMESPACE, values=OPTIMIZER_WITHOUT_RIGHTS)
    for manager in managers:
        manager.start(DISPATCHER if manager is managers[0] else "")
    for worker in workers:
        queues(worker, CPUS)
        connect_worker(hub, worker)
    hub_queues(hub)
    return MultiKueue(hub, managers[0], {worker.name: worker for worker in workers})


def hub_queues(hub: Hub) -> None:
    """Create the queues of the hub, which dispatch to all worker clusters."""
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "fleet"}
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    for kind, name, spec in (
        ("MultiKueueConfig", "fleet", {"clusters": list(WORKERS)}),
        ("AdmissionCheck", "multikueue", check),
    ):
        obj = {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}
        hub.apply(obj)
    preferred = {PREFERENCES_ANNOTATION: f'[{{"addonPlacementScore": "{SCORE}"}}]'}
    queues(hub, CPUS * len(WORKERS), "multikueue", annotations=preferred)


@pytest.fixture(scope="session")
def terminal(fleet: MultiKueue) -> Terminal:
    """A shell whose kubectl has the contexts of the how-to pages."""
    return terminal_of(fleet.hub, *fleet.workers.values())


@pytest.fixture
def kueue(fleet: MultiKueue) -> Iterator[MultiKueue]:
    """MultiKueue with three worker clusters; its Jobs are deleted afterwards."""
    fleet.score(brown=10, green=90, grey=50)
    yield fleet
    fleet.clear()
