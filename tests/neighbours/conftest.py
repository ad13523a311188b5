"""A hub with Kueue's manager, and two worker clusters that are managed clusters of the hub."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dsf.api.crd.definitions import crds
from dsf.hub.dispatch.kueue_configuration import DISPATCHER
from dsf.hub.dispatch.queue_preferences import PREFERENCES_ANNOTATION
from tests.charts.rendering import render
from tests.eventually import until
from tests.real_hub.build import NEIGHBOURS, Assets, BuildError, locate
from tests.real_hub.harness.hub import Hub, running_hub
from tests.real_hub.harness.placements import publish_score
from tests.real_hub.harness.scheduled import ScheduledCluster
from tests.repository import ROOT

from .kueue_manager import KUEUE, KueueManager, connect_worker, job, placed, queues

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_hub.harness.api import Object

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
    jobs: list[str] = field(default_factory=list)

    def score(self, **values: int) -> None:
        """Publish the score of worker clusters, as their agents do."""
        publish_score(self.hub, SCORE, "value", **values)

    def submit(self, *names: str, cpu: int = 1) -> None:
        """Create Jobs in the queue of the hub."""
        for name in names:
            self.hub.api.create(job(name, cpu))
            self.jobs.append(name)

    def placed(self) -> dict[str, str]:
        """The worker cluster of each Job, or an empty text; while Kueue's manager runs."""
        self.manager.check()
        return placed(self.hub)

    def clear(self) -> None:
        """Delete the Jobs, and wait until no cluster has a Workload."""
        for name in self.jobs:
            path = self.hub.api.path("batch/v1", "Job", "default", name)
            self.hub.api.request("DELETE", path, {"propagationPolicy": "Background"})
        self.jobs.clear()
        planes = (self.hub, *self.workers.values())
        until(
            "no Workload to be left",
            lambda: not any(plane.api.list(KUEUE, "Workload", "default") for plane in planes),
        )

    @contextmanager
    def dispatcher(self, *flags: str, name: str = "dispatcher") -> Iterator[None]:
        """Run the dispatcher with the rights that the chart gives it."""
        self.start_dispatcher(*flags, name=name)
        try:
            yield
        finally:
            self.hub.processes.stop(name)

    def start_dispatcher(self, *flags: str, name: str = "dispatcher") -> None:
        """Start the dispatcher as a process."""
        kubeconfig = self.hub.kubeconfig(service_account=f"{NAMESPACE}/{ACCOUNT}")
        self.hub.processes.start(
            name,
            [
                *(sys.executable, "-m", "dsf", "dispatcher", f"--kubeconfig={kubeconfig}"),
                *("--metrics-bind-address=127.0.0.1:0", "--resync-seconds=1", *flags),
            ],
            env={"PYTHONPATH": str(ROOT)},
        )


@pytest.fixture(scope="session")
def neighbours() -> Assets:
    """Kueue's and Argo CD's programs; without them the whole run ends with one message."""
    try:
        return locate(which=NEIGHBOURS)
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
def fleet(hub: Hub, neighbours: Assets) -> MultiKueue:
    """Kueue everywhere, with queues of CPUS on each worker cluster, and the dispatcher's rights."""
    workers = hub.join_as(ScheduledCluster, *WORKERS)
    for crd in crds():
        hub.apply(dict(crd))
    managers = [KueueManager(plane, neighbours) for plane in (hub, *workers)]
    for manager in managers:
        manager.install()
    for manager in managers:
        manager.start(DISPATCHER if manager is managers[0] else "")
    for worker in workers:
        queues(worker, CPUS)
        connect_worker(hub, worker)
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
    for obj in dispatcher_rights(hub):
        hub.apply(obj)
    return MultiKueue(hub, managers[0], {worker.name: worker for worker in workers})


def dispatcher_rights(hub: Hub) -> list[Object]:
    """The dispatcher's account and roles, as the chart renders them."""
    hub.namespace(NAMESPACE)
    values = {"hubSetting": {"dispatcher": {"enabled": True}}}
    rendered = render("dynamic-scoring-framework", values, namespace=NAMESPACE)
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    return [
        obj
        for obj in rendered
        if obj["kind"] in kinds and obj["metadata"]["name"].startswith(ACCOUNT)
    ]


@pytest.fixture
def kueue(fleet: MultiKueue) -> Iterator[MultiKueue]:
    """MultiKueue with three worker clusters; its Jobs are deleted afterwards."""
    fleet.score(brown=10, green=90, grey=50)
    yield fleet
    fleet.clear()
