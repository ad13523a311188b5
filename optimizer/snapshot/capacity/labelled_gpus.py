"""The GPUs of a node by the labels of GPU feature discovery, checked against the device plugin.

Source: https://github.com/NVIDIA/k8s-device-plugin docs/gpu-feature-discovery.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from dsf.api.untrusted_text import InvalidInput, UntrustedName, quoted
from optimizer.domain.mig.geometry import Geometry, geometry
from optimizer.domain.nodes import GPU_RESOURCE, MIG_PREFIX, MIG_PRODUCT_MARK, PRODUCT
from optimizer.snapshot.capacity.node_inventories import SeenNodes

COUNT, CONFIG, STATE = (
    "nvidia.com/gpu.count",
    "nvidia.com/mig.config",
    "nvidia.com/mig.config.state",
)
REPLICAS = "nvidia.com/gpu.replicas"
MAX_GPUS_PER_NODE = 16
CHANGING = ("pending", "rebooting")
"""Values of STATE while MIG manager changes the layout."""


class LabelledGpus(NamedTuple):
    """The equal GPUs of each node of a group.

    `geometry` is None if the model has no MIG that is known. `migs`: the MIG devices advertised, by
    profile. `contradiction`: what the device plugin says instead; `number` is the smaller one then.
    """

    product: str
    geometry: Geometry | None
    number: int
    whole: int
    migs: tuple[tuple[str, int], ...] = ()
    contradiction: str = ""


def labelled_gpus(node: SeenNodes) -> LabelledGpus | InvalidInput | None:
    """Return the GPUs of each node; None if it has none, or why they are not known."""
    advertised = {
        name: int(amount)
        for name, amount in node.allocatable.items()
        if amount >= 1 and (name == GPU_RESOURCE or name.startswith(MIG_PREFIX))
    }
    product, text = node.labels.get(PRODUCT, ""), node.labels.get(COUNT, "")
    if not product:
        what = " and ".join(
            f"{amount} {UntrustedName(name)}" for name, amount in advertised.items()
        )
        why = f"the device plugin advertises {what}, and label {PRODUCT} is missing"
        return InvalidInput("NoLabels", why) if advertised else None
    if MIG_PRODUCT_MARK in product:
        why = f"{UntrustedName(product)} counts MIG devices, not GPUs (MIG strategy single)"
        return InvalidInput("StrategySingle", why)
    if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= MAX_GPUS_PER_NODE:
        why = f"label {COUNT} is {quoted(text, 40)}, not a number from 1 to {MAX_GPUS_PER_NODE}"
        return InvalidInput("NoCount", why)
    count, whole = int(text), advertised.pop(GPU_RESOURCE, 0)
    migs = tuple((name.removeprefix(MIG_PREFIX), amount) for name, amount in advertised.items())
    known = _geometry(product)
    shared = node.labels.get(REPLICAS, "1") not in ("", "0", "1")
    changing = node.labels.get(STATE) in CHANGING
    wrong = ""
    if not shared and not changing and (whole > count or (0 < whole < count and not migs)):
        wrong = (
            f"label {COUNT} is {count}, and the device plugin advertises {whole} {GPU_RESOURCE};"
            f" {min(whole, count)} count"
        )
        count = min(whole, count)
    return LabelledGpus(UntrustedName(product), known, count, whole, migs, wrong)


@lru_cache(256)
def _geometry(product: str) -> Geometry | None:
    found = geometry(product)
    return found if isinstance(found, Geometry) else None
