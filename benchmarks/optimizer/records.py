"""The size of the record of a large plan, the time to write and to read it, and the worst to read.

python -m benchmarks.optimizer.records [--clusters 1000] [--workloads 5000]

Names end in random digits, as those of generated objects do, because repeated names would compress
better than real ones. Each workload is placed on a random cluster, and each cluster enforces one of
three policies. Nothing is solved, and the score versions are those of one score for each cluster.

The worst contents are as large as the limits admit. Each is read in a process of its own, whose
memory grows by what is printed; no other thread of it runs meanwhile.
"""

import argparse
import base64
import gzip
import json
import multiprocessing
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, Selector, Supply, Workload
from optimizer.domain.solution import Assignment, Decision, PolicyEnforcement, Solution
from optimizer.follow.record.content import (
    MAX_CONTENT_CHARACTERS,
    MAX_CONTENT_VALUES,
    RecordContent,
    unpacked,
)
from optimizer.follow.record.recorded_plan import read_records, record_of
from optimizer.plan.basis import Basis
from optimizer.plan.generated_objects import changes
from optimizer.plan.manifests import manifests
from optimizer.plan.plan import Plan
from optimizer.snapshot.observation import Observation
from optimizer.wire.plan_record import RolloutPlan
from optimizer.wire.request import OptimizeRequest

T = TypeVar("T")

_DEVICES = ("2g.24gb", "3g.48gb", "all")
_SCORE = "example-performance-score"


def _fleet(clusters: int, workloads: int, seeded: random.Random) -> Fleet:
    def name(of: str) -> str:
        return f"{of}-{seeded.getrandbits(32):08x}"

    hosts = [name("cluster") for _ in range(clusters)]
    apps = [name("app") for _ in range(workloads)]
    return Fleet(
        namespace="default",
        clusters=tuple(
            Cluster(
                host,
                Selector(host, "cluster-name"),
                tuple(
                    CandidatePolicy(f"{device}-{host}", (Supply("gpu", device, 2.0),))
                    for device in _DEVICES
                ),
            )
            for host in hosts
        ),
        workloads=tuple(Workload(app, app, "gpu", 1.0, f"{app}-placement") for app in apps),
        scores={},
        objectives=(),
    )


def _request(fleet: Fleet) -> OptimizeRequest:
    return OptimizeRequest.model_validate(
        {
            "namespace": fleet.namespace,
            "clusters": [
                {
                    "name": cluster.name,
                    "availablePolicies": [{"name": item.policy} for item in cluster.candidates],
                }
                for cluster in fleet.clusters
            ],
            "targetWorkloads": [{"name": workload.name} for workload in fleet.workloads],
            "preference": {"addonPlacementScore": _SCORE},
        }
    )


def _plan(fleet: Fleet, seeded: random.Random) -> Plan:
    policies = tuple(
        PolicyEnforcement(cluster.name, seeded.choice(cluster.candidates).policy)
        for cluster in fleet.clusters
    )
    device = {choice.cluster: choice.policy.partition("-")[0] for choice in policies}
    places = ((item.name, seeded.choice(fleet.clusters).name) for item in fleet.workloads)
    decision = Decision(policies, tuple(Assignment(*at, device[at[1]]) for at in places))
    objects = manifests(fleet, decision, claim_name="policy-watcher-claim")
    return Plan(
        digest=f"{seeded.getrandbits(256):064x}",
        basis=Basis(""),
        request=_request(fleet),
        solution=Solution("Feasible", decision, 1234.5, 1240.0, 60.0, "highs"),
        policies={},
        placements=(),
        unplaced=(),
        issues=(),
        manifests=objects,
        changes=changes(objects, Observation(), "default"),
        score_versions={
            (cluster.name, _SCORE): str(seeded.getrandbits(24)) for cluster in fleet.clusters
        },
    )


_CONTENT = '{"request":{%s},"policies":[],"assignments":[],"objects":[],"changes":[]%s}'
_STEPS = '{"namespace":"a","optimization":"a","pace":{},"policies":[],"replicas":[%s],'
_STEPS += '"objects":[],"steps":[%s]}'
_ROOM = MAX_CONTENT_VALUES - 20


def _listed(item: str, values: int) -> str:
    return ",".join([item] * (_ROOM // values))


_WORST: dict[str, tuple[type[RecordContent | RolloutPlan], str]] = {
    "empty steps": (RolloutPlan, _STEPS % ("", _listed('{"actions":{}}', 3))),
    "replicas": (RolloutPlan, _STEPS % (_listed('{"workload":"","cluster":""}', 3), "")),
    "objects in a request": (
        RecordContent,
        _CONTENT % ('"a":[' + _listed('{"a":0}', 2) + "]", ',"assumptions":{}'),
    ),
    "assumptions": (
        RecordContent,
        _CONTENT % ("", ',"assumptions":{' + ",".join(f'"{i}":""' for i in range(_ROOM)) + "}"),
    ),
}
"""Contents of many small parts."""


def _read_worst(name: str) -> None:
    of, text = _WORST[name]
    found = base64.b64encode(gzip.compress(text.encode())).decode()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    before = pages * resource.getpagesize() // 1024
    content, seconds = _timed(lambda: unpacked(found, of))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    print(f"worst, {name}: {len(found):,} characters, {grown} MiB, {seconds:.2f} s CPU")
    if not isinstance(content, of):
        raise TypeError(f"{name}: {content}")


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.process_time()
    return work(), time.process_time() - started


def main() -> None:
    """Print the sizes and CPU seconds of one record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--workloads", type=int, default=5000)
    asked = parser.parse_args()
    seeded = random.Random(1)  # noqa: S311 - a repeatable instance, no secret
    plan = _plan(_fleet(asked.clusters, asked.workloads, seeded), seeded)
    record, writing = _timed(lambda: record_of(plan, 1, Observation(), "alice"))
    size = len(json.dumps(record))
    plain = len(json.dumps([plan.manifests, plan.request.model_dump(by_alias=True)]))
    (read,) = read_records([record])
    _, unpacking = _timed(read.content)
    print(f"{asked.clusters} clusters, {asked.workloads} workloads, {len(plan.manifests)} objects")
    print(f"objects and request as JSON: {plain / 1e6:.2f} MB")
    print(f"record: {size / 1e6:.2f} MB, {size / (1.5 * 2**20):.0%} of etcd's limit of 1.5 MiB")
    content = read.spec.content or ""
    print(f"content: {len(content):,} of at most {MAX_CONTENT_CHARACTERS:,} characters")
    print(f"CPU: {writing:.2f} s to write, {unpacking:.2f} s to unpack")
    for name in _WORST:
        process = multiprocessing.get_context("spawn").Process(target=_read_worst, args=[name])
        process.start()
        process.join()


if __name__ == "__main__":
    main()
