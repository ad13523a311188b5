"""A worker cluster is lost while Jobs run there and wait for it, and comes back.

Each worker cluster has a queue of two processors, so two Jobs fit. The scores are those of the
fixture: green 90, grey 50, brown 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsf.api.conditions import conditions_of, find
from dsf.hub.dispatch.workloads import NOMINATED
from tests.eventually import until

from .kueue_manager import KUEUE, workloads

if TYPE_CHECKING:
    from .conftest import MultiKueue

COPIES = {"labelSelector": "kueue.x-k8s.io/multikueue-origin"}


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
    copies = [green.path(*kind, "default") for kind in (("batch/v1", "Job"), (KUEUE, "Workload"))]
    for path in copies:
        green.request("DELETE", path, {"propagationPolicy": "Background"}, params=COPIES)
    until(
        "the copies to be gone", lambda: not any(green.request("GET", p)["items"] for p in copies)
    )
    kueue.dispatch_to(*kueue.workers)
    with kueue.dispatcher("--next-after=3s"):
        until("all to run", lambda: all(kueue.placed().values()))
