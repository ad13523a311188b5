"""A worker cluster is lost while Jobs run there and wait for it, and comes back.

Each worker cluster has a queue of two processors, so two Jobs fit. The scores are those of the
fixture: green 90, grey 50, brown 10.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dsf.api.conditions import conditions_of, find, is_true
from dsf.hub.dispatch.workloads import NOMINATED
from tests.eventually import until

from .kueue_manager import KUEUE, workloads

if TYPE_CHECKING:
    from tests.real_hub.harness.api import Api

    from .conftest import MultiKueue

COPIES = {"labelSelector": "kueue.x-k8s.io/multikueue-origin"}
KINDS = (("batch/v1", "Job"), (KUEUE, "Workload"))
STOPPED = "DeactivatedDueToEvictedOnManagerCluster"
"""Why a copy is evicted at which Kueue 0.17.0 stops.

Source: step 4 of reconcileGroup in pkg/controller/admissionchecks/multikueue/workload.go.
"""


def test_what_a_lost_worker_had_runs_elsewhere(kueue: MultiKueue) -> None:
    with kueue.dispatcher("--next-after=1h"):
        kueue.submit("full-1", "full-2")
        until("green to be full", lambda: set(kueue.placed().values()) == {"green"})
        kueue.submit("waits")
        until("it to wait for green", lambda: kueue.nominated("waits") == ["green"])
        kueue.lose("green")
        try:
            until("it to run elsewhere", lambda: kueue.at("waits") == "grey")
            condition = find(conditions_of(workloads(kueue.hub)["waits"]), NOMINATED) or {}
            assert "Not eligible: Kueue is not connected to green" in condition["message"]
            # Kueue takes back what ran there after workerLostTimeout.
            until("what ran there to wait again", lambda: "green" not in kueue.placed().values())
            until(
                "it to be nominated elsewhere",
                lambda: all(
                    kueue.at(name) or kueue.nominated(name) == ["grey"]
                    for name in ("full-1", "full-2")
                ),
            )
        finally:
            # As the page says: Kueue would go on with the old copies, and delete those elsewhere.
            kueue.dispatch_to("brown", "grey")
            kueue.find("green")
    green = kueue.workers["green"].api
    delete(green)
    until("the copies to be gone", lambda: not any(green.list(*kind, "default") for kind in KINDS))
    kueue.dispatch_to(*kueue.workers)
    with kueue.dispatcher("--next-after=3s"):
        until(
            "all to run",
            lambda: all(kueue.placed().values()),
            every=1.0,
            check=lambda: delete_stopped(kueue),
        )


def delete(api: Api, names: tuple[str, str] | None = None) -> None:
    """Delete the copies on a worker cluster: all, or the Job and the Workload of some names."""
    for index, kind in enumerate(KINDS):
        params = {"fieldSelector": f"metadata.name={names[index]}"} if names else {}
        path, body = api.path(*kind, "default"), {"propagationPolicy": "Background"}
        api.request("DELETE", path, body, params={**COPIES, **params})


def delete_stopped(kueue: MultiKueue) -> None:
    """Delete the copies at which Kueue stops, as the page says."""
    waiting = {
        obj["metadata"]["name"]: job
        for job, obj in workloads(kueue.hub).items()
        if not kueue.at(job) and not is_true(obj, "Evicted")
    }
    for worker in kueue.workers.values():
        for copy in worker.api.list(KUEUE, "Workload", "default"):
            name, evicted = copy["metadata"]["name"], find(conditions_of(copy), "Evicted") or {}
            if name in waiting and evicted.get("reason") == STOPPED and is_true(copy, "Evicted"):
                sys.stdout.write(f"{waiting[name]}: its copy on {worker.name} is deleted\n")
                delete(worker.api, (waiting[name], name))
