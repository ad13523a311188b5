"""What the inventory of a large cluster costs: bytes on the hub, CPU and memory of the agent.

python -m benchmarks.agent.inventory [nodes] [pods] [--devices]

`dsf agent` is a process, without and with `--inventory`; the API servers run in this one. A Pod has
4 KiB and a node 16 KiB of what the agent reads and forgets. Memory is the peak of the resident set.
CPU is that of the first list, of some time in which nothing changes, and of as much in which Pods
start and end, minus the former. With `--devices` a DRA driver has the GPUs of all nodes: of those
that have eight GPUs, with all MIG devices that these can have; of the others, two whole GPUs. A
claim holds the first GPU of each node.
"""

import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from benchmarks.agent.load import CLUSTER, cpu, peak_mib, written
from dsf.api import names
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.kinds import (
    APPLIED_MANIFEST_WORK,
    CONFIG_MAP,
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    NODE_INVENTORY,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from dsf.kube.port import Object
from tests.device_slices import claim, mig_slice, nvidia_classes, plain_gpu, resource_slice
from tests.objects_with_status import create_with_status

NODES, PODS, WORKS = 5_000, 50_000, 1_000
SECONDS, EVENTS = 40, 2_000
GPU_NODES = 16
"""One of so many nodes has eight GPUs."""


def node(number: int, draw: random.Random) -> Object:
    """Return a node; their memory differs a little, as it does in practice."""
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "node.kubernetes.io/instance-type": f"type-{number % 7}",
    }
    has = {"cpu": "63770m", "memory": f"{draw.randrange(526_000_000, 527_000_000)}Ki"}
    has |= {"pods": "110", "ephemeral-storage": "447117428Ki"}
    if number % GPU_NODES == 0:
        labels |= {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
        has["nvidia.com/gpu"] = "8"
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": f"node-{number}", "labels": labels, "annotations": {"a": "x" * 16384}},
        "spec": {},
        "status": {"allocatable": has, "conditions": ready},
    }


def node_devices(number: int) -> Iterator[tuple[Kind, Object]]:
    """Yield the ResourceSlice of a node, and the ResourceClaim that holds its first GPU."""
    name = f"node-{number}"
    whole = resource_slice(name, [plain_gpu(gpu, name) for gpu in range(2)])
    yield RESOURCE_SLICE, mig_slice(name, 8) if number % GPU_NODES == 0 else whole
    yield RESOURCE_CLAIM, claim(f"claim-{number}", name, "gpu-0", pods=[f"pod-{number}"])


def pod(number: int, draw: random.Random, nodes: int) -> Object:
    """Return a Pod of a Deployment of eight, on a random node."""
    on, work = draw.randrange(nodes), number // 8
    asks = {"cpu": f"{draw.choice([100, 250, 500, 1000])}m", "memory": draw.choice(["1Gi", "4Gi"])}
    if on % GPU_NODES == 0:
        asks["nvidia.com/gpu"] = "1"
    owner = {"kind": "ReplicaSet", "name": f"app{work}-5d4f", "uid": f"u{work}", "controller": True}
    return {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "shop",
            "labels": {"pod-template-hash": "5d4f"},
            "annotations": {"a": "x" * 4096},
            "ownerReferences": [{"apiVersion": "apps/v1", **owner}],
        },
        "spec": {
            "nodeName": f"node-{on}",
            "containers": [{"name": "main", "resources": {"requests": asks}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


async def cluster(nodes: int, pods: int, *, devices: bool) -> EmbeddedHub:
    """Return a managed cluster; every eighth Deployment is a ManifestWork's, at most WORKS."""
    managed, draw = EmbeddedHub(), random.Random(1)  # noqa: S311 - no secret
    for name in (names.AGENT_NAMESPACE, "shop"):
        await managed.create(NAMESPACE, {"metadata": {"name": name}})
    metadata = {"name": names.CONFIG_MAP, "namespace": names.AGENT_NAMESPACE}
    scorers = {"metadata": metadata, "data": {names.SUMMARIES_KEY: "[]"}}
    await managed.create(CONFIG_MAP, scorers)
    for number in range(nodes):
        await create_with_status(managed, NODE, node(number, draw))
        for kind, obj in node_devices(number) if devices else ():
            await create_with_status(managed, kind, obj)
    for item in nvidia_classes() if devices else ():
        await managed.create(DEVICE_CLASS, item)
    for number in range(pods):
        await create_with_status(managed, POD, pod(number, draw, nodes))
    for number in range(min(WORKS, pods // 64)):
        resource = {"group": "apps", "version": "v1", "resource": "deployments"}
        applied = {**resource, "namespace": "shop", "name": f"app{number * 8}"}
        work = {
            "metadata": {"name": f"hub-work{number}"},
            "spec": {"hubHash": "hub", "manifestWorkName": f"work{number}"},
            "status": {"appliedResources": [applied]},
        }
        await create_with_status(managed, APPLIED_MANIFEST_WORK, work)
    return managed


async def measure(managed: EmbeddedHub, nodes: int, pods: int, *options: str) -> None:
    """Run the agent and print what it takes."""
    hub, draw = EmbeddedHub(), random.Random(2)  # noqa: S311 - no secret
    await hub.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    async with serving(hub) as hub_url, serving(managed) as managed_url:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            agent = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dsf", "agent", f"--cluster-name={CLUSTER}"),
                f"--hub-kubeconfig={written(home / 'hub', yaml.safe_dump(kubeconfig(hub_url)))}",
                f"--kubeconfig={written(home / 'own', yaml.safe_dump(kubeconfig(managed_url)))}",
                "--metrics-bind-address=127.0.0.1:0",
                "--log-level=warning",
                *options,
                env={"PATH": os.environ["PATH"], "HOME": folder},
            )
            size = await reported(hub) if options else 0
            await asyncio.sleep(SECONDS / 2)
            listed = cpu(agent.pid)
            await asyncio.sleep(SECONDS)
            quiet = cpu(agent.pid)
            for number in range(EVENTS // 2):
                at = number * 31 % pods
                await managed.delete(POD, f"pod-{at}", "shop")
                await create_with_status(managed, POD, pod(at, draw, nodes))
                await asyncio.sleep(SECONDS / EVENTS)
            busy, mib = cpu(agent.pid), peak_mib(agent.pid)
            agent.terminate()
            await agent.wait()
    print(f"{' '.join(options) or 'without an inventory'}")
    print(f"{'bytes on the hub':<34}{size:>10}")
    print(f"{'resident, peak':<34}{mib:>10.1f} MiB")
    print(f"{'CPU until listed and published':<34}{listed:>10.1f} s")
    print(f"{'CPU while nothing changes':<34}{(quiet - listed) / SECONDS:>10.2%} of a core")
    each = (busy - quiet - (quiet - listed)) / (1.5 * EVENTS) * 1e3  # Deleted, created, updated.
    print(f"{'CPU of a changed Pod':<34}{each:>10.2f} ms", flush=True)


async def reported(hub: EmbeddedHub) -> int:
    """Return the bytes of the inventory once it is there."""
    while True:
        for found in (await hub.list(NODE_INVENTORY, CLUSTER)).items:
            if "status" in found:
                print(found["status"]["conditions"][0]["message"])
                print(len(found["status"]["nodes"]), "groups of nodes")
                return len(msgspec.json.encode(found))
        await asyncio.sleep(1)


async def main(nodes: int, pods: int, *, devices: bool) -> None:
    """Measure the agent without and with an inventory."""
    managed = await cluster(nodes, pods, devices=devices)
    await measure(managed, nodes, pods)
    await measure(managed, nodes, pods, "--inventory")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--devices"]
    given = [*map(int, words), *[NODES, PODS][len(words) :]]
    asyncio.run(main(*given, devices="--devices" in sys.argv))
