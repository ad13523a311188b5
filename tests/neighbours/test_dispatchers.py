"""One queue of Jobs under each dispatcher of MultiKueue: where it runs, how soon, at which cost.

The quotas have room for six Jobs, and four come at once, so the best value is that of two Jobs on
each of the two best clusters.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from dsf.api.names import GROUP
from dsf.hub.dispatch.kueue_configuration import DISPATCHER
from tests.eventually import until

from .conftest import ACCOUNT, CPUS, NAMESPACE
from .kueue_manager import USER

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from tests.real_hub.harness.control_plane import ControlPlane

    from .conftest import MultiKueue

SCORES = {"brown": 10, "green": 90, "grey": 50}
JOBS = 4
DISPATCHERS = {
    "AllAtOnce": "",
    "Incremental": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
    "ours": DISPATCHER,
}
WRITERS = (USER, "multikueue", f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}")
WRITES = ("create", "update", "patch", "delete")


class Outcome(NamedTuple):
    """Sum of scores, seconds until the last admission, writes, and copies that were not needed."""

    value: int
    seconds: float
    writes: int
    duplicates: int


def publish_room(kueue: MultiKueue) -> None:
    """Report free processors of each worker cluster, as its agent does."""
    now = datetime.now(UTC)
    for name in kueue.workers:
        obj = {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "NodeInventory",
            "metadata": {"name": name, "namespace": name},
        }
        kueue.hub.apply(obj)
        nodes = {"count": 1, "ready": True, "requested": {}}
        free = {"cpu": str(CPUS), "pods": "110"}
        status = {
            "observedTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "validUntil": (now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "nodes": [{**nodes, "allocatable": free}],
        }
        kueue.hub.api.apply({**obj, "status": status}, subresource="status")


def written(planes: Iterable[ControlPlane]) -> Counter[tuple[str, str, str]]:
    """How often who has written what, by user, verb and resource, except Leases and Events."""
    return Counter(
        (user, event["verb"], event["objectRef"]["resource"])
        for plane in planes
        for user in WRITERS
        for event in plane.audited(user)
        if event["verb"] in WRITES
        and event.get("responseStatus", {}).get("code", 500) < 300
        and event["objectRef"]["resource"] not in ("leases", "events")
    )


def run(kueue: MultiKueue, names: list[str]) -> Outcome:
    planes = (kueue.hub, *kueue.workers.values())
    before = written(planes)
    started = time.monotonic()
    kueue.submit(*names)
    until("all to be admitted", lambda: len([*filter(None, kueue.placed().values())]) == JOBS)
    seconds = time.monotonic() - started
    after = written(planes) - before
    return Outcome(
        sum(SCORES[cluster] for cluster in kueue.placed().values()),
        seconds,
        after.total(),
        after["multikueue", "create", "workloads"] - len(names),
    )


def test_the_dispatcher_by_scores_beside_those_of_kueue(
    kueue: MultiKueue, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = dict[str, Outcome]()
    for name, dispatcher in DISPATCHERS.items():
        kueue.manager.restart(dispatcher)
        publish_room(kueue)
        jobs = [f"{name.lower()}-{number}" for number in range(JOBS)]
        if dispatcher == DISPATCHER:
            with kueue.dispatcher():
                outcomes[name] = run(kueue, jobs)
        else:
            outcomes[name] = run(kueue, jobs)
        kueue.clear()
    for name in kueue.workers:
        kueue.hub.api.delete(f"{GROUP}/v1alpha1", "NodeInventory", name, name)
    with capsys.disabled():
        sys.stdout.write("\n| dispatcher | value | seconds | API writes | duplicates |\n")
        for name, each in outcomes.items():
            row = f"{each.value} | {each.seconds:.1f} | {each.writes} | {each.duplicates}"
            sys.stdout.write(f"| {name} | {row} |\n")
    ours = outcomes["ours"]
    assert ours.value == 2 * SCORES["green"] + 2 * SCORES["grey"]
    assert ours.duplicates == 0
    assert all(each.duplicates > 0 for name, each in outcomes.items() if name != "ours")
