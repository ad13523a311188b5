"""The GPUs that a pretended managed cluster has instead of those of the cluster it is like.

Names of models are those of GPU feature discovery: label `nvidia.com/gpu.product` of nodes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from dsf.api.scoring.quantity import format_quantity, parse_quantity
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.domain.mig.geometry import GEOMETRIES, geometry
from optimizer.domain.nodes import (
    GPU_KIND,
    GPU_RESOURCE,
    MIG_PRODUCT_MARK,
    PRODUCT,
    WHOLE_GPU,
    kind_and_device,
)
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.capacity.labelled_gpus import COUNT
from optimizer.snapshot.object_readers import stated_allocatable
from optimizer.snapshot.requested_gpus import stated_gpus
from optimizer.wire.base import Name, RequestPart

GPUS_OF_NODE, MAX_GPUS = 8, 512
"""GPUs of an added node at most, as many as an HGX board has, and of an added cluster."""

ALLOCATABLE = f"{PREFIX}allocatable"

SeenNode = Mapping[str, Any]
"""Equal nodes, as a NodeInventory lists them."""

VENDOR = "NVIDIA-"
"""What names of models begin with."""

TABLED = frozenset(VENDOR + name for item in GEOMETRIES for name in item.products)
"""The models of which it is known how MIG divides them."""

_LABELS = "nvidia.com/"


class GpusOfModel(RequestPart):
    """GPUs of one model, on as few nodes as hold them with 8 on each at most."""

    product: Annotated[
        Name,
        Field(
            min_length=1,
            max_length=63,
            description="NVIDIA-H100-80GB-HBM3, as label nvidia.com/gpu.product says it, or a part"
            " that one model has: of the fleet, or else of those that are known.",
        ),
    ]
    count: int = Field(ge=1, le=MAX_GPUS, description="How many; 8 on a node at most.")


class AddedNode(NamedTuple):
    """A node that does not exist, with GPUs of one model."""

    name: str
    product: str
    gpus: int


def added_nodes(gpus: Iterable[GpusOfModel]) -> Sequence[AddedNode]:
    """Return the nodes that have these GPUs, about equally many each."""
    parts = list[tuple[str, int]]()
    for item in gpus:
        nodes = -(-item.count // GPUS_OF_NODE)
        parts += [(item.product, (item.count + at) // nodes) for at in range(nodes)]
    return [AddedNode(f"gpu-{at}", *part) for at, part in enumerate(parts, 1)]


def products_on(cluster: Object, inventory: Object | None) -> set[str]:
    """Return the models of the GPUs that a managed cluster has, as far as labels tell them."""
    seen = (str(_labels(item).get(PRODUCT, "")) for item in _nodes(inventory or {}))
    of_nodes = {product.partition(MIG_PRODUCT_MARK)[0] for product in seen}
    return {stated_gpus(cluster).product, *of_nodes} - {""}


def why_no_room(inventory: Object | None) -> str:
    """Return why nodes with other GPUs can't be like those of an inventory; empty if they can."""
    if inventory is None:
        return ""
    sets = (inventory.get("status") or {}).get("deviceSets") or ()
    if any(str(item["driver"]).startswith("gpu.") for item in sets):
        return "allocates its GPUs by claims, which can't be pretended"
    return "" if any(map(_has_gpus, _nodes(inventory))) else "has no node with GPUs"


def requested_fields(like: Object, nodes: Sequence[AddedNode]) -> dict[str, Any]:
    """Return the fields of a requested cluster that has these GPUs and is else like another one.

    MIG policies are generated for GPUs that can be divided. It has the others without a policy.
    """
    divided = [node for node in nodes if not isinstance(geometry(node.product), InvalidInput)]
    whole = sum(node.gpus for node in nodes) - sum(node.gpus for node in divided)
    stated = [
        item.model_dump()
        for item in stated_allocatable(like, None)
        if item.kind != GPU_KIND and not item.kind.startswith(_LABELS)
    ]
    if whole:
        stated.append({"kind": GPU_KIND, "device": WHOLE_GPU, "amount": whole})
    gpus = [{"model": item.product, "count": item.gpus, "node": item.name} for item in divided]
    return {"gpus": gpus, **({"allocatable": stated} if stated else {})}


def cluster_with(cluster: Object, nodes: Sequence[AddedNode]) -> Object:
    """Return a ManagedCluster that states these GPUs instead of its own."""
    metadata, status = cluster["metadata"], cluster.get("status") or {}
    products, number = {node.product for node in nodes}, str(sum(node.gpus for node in nodes))
    labels = _other_labels(metadata)
    if len(products) == 1:
        labels |= {PRODUCT: products.pop(), COUNT: number}
    annotations = {**(metadata.get("annotations") or {})}
    annotations.pop(ALLOCATABLE, None)  # the request says what is left of it
    claims = [
        item
        for item in status.get("clusterClaims") or ()
        if not str(item.get("name")).endswith(".nvidia.com")
    ]
    allocatable = {**_without_gpus(status.get("allocatable") or {}), GPU_RESOURCE: number}
    return {
        **cluster,
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
        "status": {**status, "clusterClaims": claims, "allocatable": allocatable},
    }


def nodes_with(there: Iterable[SeenNode], nodes: Iterable[AddedNode]) -> list[SeenNode]:
    """Return the nodes of a NodeInventory where those with GPUs are replaced by these.

    They have as much of everything else for each GPU as the node with most GPUs has.
    """
    others = [item for item in there if not _has_gpus(item)]
    template = max(filter(_has_gpus, there), key=_gpus_of)
    alike = members_by_key(((node.product, node.gpus), node.name) for node in nodes)
    made = [
        {
            **{key: value for key, value in template.items() if key != "devices"},
            "count": len(names),
            "names": names,
            "ready": True,
            "unschedulable": False,
            "labels": {**_other_labels(template), PRODUCT: product, COUNT: str(number)},
            "allocatable": {
                **{
                    name: _scaled(name, text, number / _gpus_of(template))
                    for name, text in _without_gpus(template["allocatable"]).items()
                },
                GPU_RESOURCE: str(number),
            },
        }
        for (product, number), names in alike.items()
    ]
    return [*others, *made]


def _nodes(inventory: Object) -> Sequence[SeenNode]:
    return (inventory.get("status") or {}).get("nodes") or ()


def _has_gpus(node: SeenNode) -> bool:
    return PRODUCT in _labels(node) or _without_gpus(node["allocatable"]) != node["allocatable"]


def _gpus_of(node: SeenNode) -> int:
    text = _labels(node).get(COUNT) or node["allocatable"].get(GPU_RESOURCE) or ""
    return int(text) if re.fullmatch("[1-9][0-9]?", text) else 1


def _labels(node: Mapping[str, Any]) -> Mapping[str, str]:
    return node.get("labels") or {}


def _other_labels(node: Mapping[str, Any]) -> dict[str, str]:
    """Return labels without those that tell other GPUs."""
    own = {key: text for key, text in _labels(node).items() if not key.startswith(_LABELS)}
    return {**own, f"{_LABELS}gpu.present": "true"}


def _without_gpus(amounts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in amounts.items() if kind_and_device(name)[0] != GPU_KIND}


def _scaled(resource: str, text: str, factor: float) -> str:
    amount = parse_quantity(text)
    if amount is None or resource == "pods":
        return text
    return format_quantity(amount * factor if resource == "cpu" else float(ceil(amount * factor)))
