"""A stand-in for NVIDIA's GPU operator: its MIG manager and its device plugin, on every node.

When a node's label ``nvidia.com/mig.config`` names another configuration, the MIG manager says
``pending``, changes the GPUs, and says ``success``; the device plugin then advertises what there
is. GPUs that Pods use can't be changed, and a configuration must be in the ConfigMap: otherwise
the state is ``failed``, and the node stays as it was. On a node that is lost nothing happens.

Source: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml

from .gpu_nodes import GPU, TRIED, advertised, mig_counts
from .scheduled import KWOK_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .api import Api, Object

WANTED, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
MIG = "nvidia.com/mig-"
"""What the resources and the counting labels of MIG devices begin with."""
LAYOUTS = ("v1", "ConfigMap", "dsf-mig-parted-config", "gpu-operator")
ALL_DISABLED = "all-disabled"


@contextmanager
def gpu_operator(api: Api) -> Iterator[None]:
    """Run the stand-in on a cluster until the end of the ``with`` block."""
    ended = threading.Event()
    failures: list[Exception] = []

    def run() -> None:
        try:
            while not ended.wait(0.1):
                step(api)
        except Exception as failure:  # noqa: BLE001 - raised again below, in the test's thread
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]


def step(api: Api) -> None:
    """Configure each node whose label names a configuration that was not tried yet."""
    ((key, value),) = KWOK_NODE.items()
    for node in api.list("v1", "Node", labels=f"{key}={value},{WANTED}"):
        name, wanted = node["metadata"]["name"], node["metadata"]["labels"][WANTED]
        if wanted == node["metadata"].get("annotations", {}).get(TRIED):
            continue
        label(api, name, {STATE: "pending"})
        layout = None if in_use(api, name) else devices(api, wanted, gpus_of(node))
        if layout is not None:
            configure(api, node, layout)
        state = "failed" if layout is None else "success"
        label(api, name, {STATE: state}, {TRIED: wanted})


def gpus_of(node: Object) -> int:
    """How many GPUs a node has."""
    return int(node["metadata"]["labels"].get("nvidia.com/gpu.count", "0"))


def in_use(api: Api, node: str) -> bool:
    """Whether a Pod on the node has GPUs or MIG devices."""
    return any(
        resource.startswith("nvidia.com/")
        for pod in api.list("v1", "Pod")
        if pod["spec"].get("nodeName") == node
        and pod["status"].get("phase") not in {"Succeeded", "Failed"}
        for container in pod["spec"]["containers"]
        for resource in container.get("resources", {}).get("requests", {})
    )


def devices(api: Api, config: str, gpus: int) -> Mapping[str, int] | None:
    """The MIG devices of a configuration on so many GPUs; None if there is no such configuration.

    A configuration without MIG devices leaves whole GPUs; so does one that is not for every GPU,
    as far as it goes: those are counted under ``""``.
    """
    found = api.find(*LAYOUTS)
    configs = yaml.safe_load(found["data"]["config.yaml"])["mig-configs"] if found else {}
    configs = {ALL_DISABLED: [{"devices": "all", "mig-enabled": False}], **configs}
    if config not in configs:
        return None
    counts: dict[str, int] = {}
    for entry in configs[config]:
        number = gpus if entry["devices"] == "all" else len(entry["devices"])
        layout = entry["mig-devices"] if entry["mig-enabled"] else {"": 1}
        for profile, count in layout.items():
            counts[profile] = counts.get(profile, 0) + number * count
    return counts


def configure(api: Api, node: Object, layout: Mapping[str, int]) -> None:
    """Advertise other devices on a node, and count them in its labels."""
    name, labels, old = node["metadata"]["name"], node["metadata"]["labels"], node["status"]
    mig = {profile: count for profile, count in layout.items() if profile}
    gone = {key: None for key in old["capacity"] if key.startswith("nvidia.com/")}
    resources = {**gone, **advertised(0, mig), GPU: str(layout.get("", 0))}
    status = {"capacity": resources, "allocatable": resources}
    api.patch("v1", "Node", name, {"status": status}, subresource="status")
    label(api, name, {**{key: None for key in labels if key.startswith(MIG)}, **mig_counts(mig)})


def label(
    api: Api,
    node: str,
    labels: Mapping[str, str | None],
    annotations: Mapping[str, str] | None = None,
) -> None:
    """Set labels and annotations of a node."""
    metadata = {"labels": labels, "annotations": annotations or {}}
    api.patch("v1", "Node", node, {"metadata": metadata})
