"""How fast `dsf dispatcher` nominates worker clusters for a long queue, and what kills leave of it.

python -m benchmarks.hub.dispatcher [--workloads 500] [--workers 20] [--kills 10]

A process of its own against a real kube-apiserver with the CRDs of OCM and Kueue, which
`make neighbours NEIGHBOURS=kueue` builds. Workloads request 1 to 8 processors in two priorities; a
third of them has room.

First nobody admits them, so each one is nominated once. Printed: seconds until the first and until
the last is nominated, nominations per second between them, API writes, and what the plans say of
themselves. Then the same queue again: the process is killed at random moments while it writes, and
a loop does what Kueue's manager does, which admits what is nominated where there is quota. It fails
if a Workload is forgotten in the end, or was moved from a cluster that was nominated for it.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

from dsf.api.conditions import conditions_of, find
from dsf.api.crd.definitions import crds
from dsf.api.times import read_time
from dsf.hub.dispatch.workloads import NOMINATED
from tests.eventually import until
from tests.real_hub.build import HUB, locate
from tests.real_hub.build import KUEUE as KUEUE_PROGRAMS
from tests.real_hub.harness.api import Api, Object, parse
from tests.real_hub.harness.control_plane import ADMINISTRATORS, ControlPlane, start_etcd
from tests.real_hub.harness.ports import Ports
from tests.real_hub.harness.processes import Processes
from tests.repository import ROOT

from .kueue_objects import KUEUE, NAMESPACE, admitted, fleet, reserved, workload

USER = "dispatcher"
REFUSED = 300
PLAN = re.compile(r"One plan for .*?%\.")
CRDS = (
    (HUB, "ocm/manifests/cluster-manager/hub/crds/*clusters.crd.yaml"),
    (HUB, "ocm/manifests/cluster-manager/hub/crds/*addonplacementscores.crd.yaml"),
    (KUEUE_PROGRAMS, "kueue/config/components/crd/bases/*.yaml"),
)


@contextmanager
def api_server(directory: Path) -> Iterator[ControlPlane]:
    """A kube-apiserver without controllers, with the CRDs of OCM, of Kueue and our own."""
    assets, processes, ports = locate(), Processes(directory), Ports()
    try:
        etcd = start_etcd(processes, assets, ports, directory)
        plane = ControlPlane("hub", processes, assets, ports, directory)
        with closing(plane.api):
            plane.start(etcd)
            plane.wait_ready()
            files = [
                file for which, each in CRDS for file in locate(which=which).manifests.glob(each)
            ]
            for crd in (*crds(), *(crd for file in files for crd in parse(file.read_text()))):
                plane.api.apply(crd)
                at = (crd["apiVersion"], crd["kind"], crd["metadata"]["name"])
                plane.api.wait_condition(*at, "Established")
            yield plane
    finally:
        processes.close()


class Measured:
    """The dispatcher as a process, the queue, and what was seen of both.

    `first`: the clusters that were nominated for each Workload when any were seen for the first
    time.
    """

    def __init__(self, plane: ControlPlane, quotas: Mapping[str, int], draw: random.Random) -> None:
        self.plane, self.draw = plane, draw
        self.first = dict[str, list[str]]()
        self.admitted = dict[str, str]()
        self._left = dict(quotas)
        self._log, self._unread = plane.audit_log.open(), ""

    def queue(self, number: int) -> None:
        """Create Workloads that wait for MultiKueue."""
        for index in range(number):
            name = f"job-{index:04}"
            cpu, priority = self.draw.randint(1, 8), self.draw.randrange(2)
            self.plane.api.create(workload(name, cpu, priority))
            self.plane.api.apply(reserved(name), subresource="status", manager="kueue-admission")

    def clear(self) -> None:
        """Delete all Workloads."""
        self.plane.api.request("DELETE", self.plane.api.path(KUEUE, "Workload", NAMESPACE))

    def start(self) -> None:
        """Start the dispatcher."""
        kubeconfig = self.plane.kubeconfig(user=USER, group=ADMINISTRATORS)
        flags = (f"--kubeconfig={kubeconfig}", "--metrics-bind-address=127.0.0.1:0")
        command = [sys.executable, "-m", "dsf", "dispatcher", *flags]
        self.plane.processes.start(USER, command, env={"PYTHONPATH": str(ROOT)})

    def writes(self) -> list[tuple[str, datetime]]:
        """What the dispatcher has written since the last call, and when it was answered."""
        found = list[tuple[str, datetime]]()
        *lines, self._unread = (self._unread + self._log.read()).split("\n")
        for line in lines:
            if f'"username":"{USER}"' not in line:
                continue
            event = json.loads(line)
            verb, what = event["verb"], event["objectRef"]
            if verb in ("create", "patch") and event["responseStatus"]["code"] < REFUSED:
                at = read_time(event["stageTimestamp"]) or datetime.now(UTC)
                found.append((f"{verb} {what['resource']}", at))
        return found

    def workloads(self, api: Api) -> dict[str, Object]:
        """All Workloads by name; fails if one was moved."""
        found = {obj["metadata"]["name"]: obj for obj in api.list(KUEUE, "Workload", NAMESPACE)}
        for name, obj in found.items():
            status = obj.get("status") or {}
            clusters = status.get("nominatedClusterNames") or []
            if clusters and self.first.setdefault(name, clusters) != clusters:
                raise AssertionError(f"{name} was moved: {self.first[name]}, {clusters}")
            if status.get("clusterName", self.admitted.get(name)) != self.admitted.get(name):
                raise AssertionError(f"{name} was moved: {self.admitted[name]}, {status}")
        return found

    def admit(self, ended: Event) -> None:
        """Admit Workloads where they are nominated and quota is left, as Kueue does."""
        with closing(Api.from_kubeconfig(self.plane.admin_kubeconfig)) as api:
            while not ended.wait(0.5):
                for name, obj in self.workloads(api).items():
                    status = obj.get("status") or {}
                    cpu = int(obj["metadata"]["labels"]["cpu"])
                    for cluster in status.get("nominatedClusterNames") or []:
                        if self._left[cluster] >= cpu:
                            self._left[cluster] -= cpu
                            self.admitted[name] = cluster
                            body = admitted(name, cluster)
                            api.apply(body, subresource="status", manager="kueue-admission")
                            break


def is_told(obj: Object) -> bool:
    """Whether a Workload is admitted, or has clusters and a condition that says why."""
    status = obj.get("status") or {}
    nominated = status.get("nominatedClusterNames") and find(conditions_of(obj), NOMINATED)
    return bool(status.get("clusterName") or nominated)


def measure_speed(run: Measured, number: int) -> list[str]:
    """Run the dispatcher until all Workloads are nominated, and return what it took."""
    run.queue(number)
    run.writes()
    started, written = datetime.now(UTC), list[tuple[str, datetime]]()

    def all_written() -> bool:
        written.extend(run.writes())
        return sum(name == "patch workloads" for name, _ in written) >= 2 * number

    run.start()
    until("all to be nominated", all_written)
    time.sleep(3)  # the last Events
    run.plane.processes.stop(USER)
    written.extend(run.writes())
    times = [at for name, at in written if name == "patch workloads"]
    seconds = (times[-1] - times[0]).total_seconds()
    found = run.workloads(run.plane.api).values()
    messages = [(find(conditions_of(obj), NOMINATED) or {}).get("message", "") for obj in found]
    first = (times[0] - started).total_seconds()
    return [
        f"first write after {first:.1f} s, the last one {seconds:.1f} s later",
        f"{number / seconds:.0f} nominations/s",
        *(f"{count} {name}" for name, count in sorted(Counter(n for n, _ in written).items())),
        *sorted({plan for message in messages for plan in PLAN.findall(message)}),
    ]


def measure_kills(run: Measured, number: int, kills: int) -> str:
    """Kill the dispatcher while it writes, and return what has become of the Workloads."""
    run.queue(number)
    ended = Event()
    kueue = Thread(target=run.admit, args=(ended,))
    kueue.start()
    try:
        for _ in range(kills):
            left = run.draw.randint(1, 2 * number // kills)
            run.writes()
            run.start()
            while left > 0:
                left -= len(run.writes())
                time.sleep(0.01)
            run.plane.processes.kill(USER)
        run.start()
        api = run.plane.api
        until("all to be told", lambda: all(map(is_told, run.workloads(api).values())), every=1)
        run.plane.processes.stop(USER)
    finally:
        ended.set()
        kueue.join()
    found = run.workloads(run.plane.api)
    waiting = sum(name not in run.admitted for name in found)
    if set(run.first) != set(found):
        raise AssertionError(f"never nominated: {sorted(set(found) - set(run.first))}")
    return f"{kills} kills: {len(run.admitted)} admitted, {waiting} wait, none forgotten or moved"


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=500)
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--kills", type=int, default=10)
    asked = parser.parse_args()
    draw = random.Random(7)  # noqa: S311 - the same queue each time
    names = [f"worker-{number:02}" for number in range(asked.workers)]
    scores = {name: draw.randint(-100, 100) for name in names}
    most = 9 * asked.workloads // (4 * asked.workers)
    quotas = {name: draw.randint(0, most) for name in names}
    with tempfile.TemporaryDirectory() as directory, api_server(Path(directory)) as plane:
        for obj, status in fleet(scores, quotas, datetime.now(UTC) + timedelta(hours=2)):
            plane.api.apply(obj)
            if status:
                plane.api.apply({**obj, "status": status}, subresource="status")
        speed = measure_speed(Measured(plane, quotas, draw), asked.workloads)
        killed = Measured(plane, quotas, draw)
        killed.clear()
        kills = measure_kills(killed, asked.workloads, asked.kills)
    lines = [f"{asked.workloads} Workloads, {asked.workers} workers", *speed, kills]
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
