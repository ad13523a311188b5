"""What workloads, policies and clusters may say beyond the labels of the wire contract.

Every wish has two doors: a field of the request, and an annotation of the object that is named
after it (`moveCost`: `dynamic-scoring.open-cluster-management.io/move-cost`). The request wins.
Lists have a short form for annotations, which the request takes too.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from dsf.api.invalid_input import InvalidInput
from dsf.api.names import GROUP
from dsf.kube.port import Object
from dsf.kube.selectors import label_selector
from optimizer.domain.quantity import kind_and_device, pairs, quantity
from optimizer.mig.parted import LAYOUT
from optimizer.wire.base import ObjectName, WireRequest
from optimizer.wire.field_problems import field_problems

PREFIX = f"{GROUP}/"

_MOST = 1e18
_MOST_NAMED = 20
_FEW_WRONG = Field(fail_fast=True)
"""The first wrong item of a list says enough; FailFast can't be hashed, as unions ask."""


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = quantity(value)
    if found is None:
        raise ValueError(f"{value[:40]!r} is no quantity such as 4, 500m or 16Gi")
    return found


def _named(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) > _MOST_NAMED:
        raise ValueError(f"must list at most {_MOST_NAMED}")
    return dict(_pairs(value, "cpu=4,memory=16Gi")) if isinstance(value, str) else value


def _names(value: Any) -> Any:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def _supplies(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = _pairs(value, "gpu/3g.48gb=1,cpu=8")
    return [
        {"kind": kind, "device": device, "amount": amount}
        for name, amount in found
        for kind, device in [kind_and_device(name)]
    ]


def _spreads(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [{"key": key, "most": most} for key, most in _pairs(value, "topology/zone=1")]


def _pairs(text: str, example: str) -> list[tuple[str, str]]:
    found = pairs(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} has not the form {example}")
    if len(dict(found)) < len(found):
        raise ValueError(f"{text[:40]!r} names one thing twice")
    return found


def _selector(text: str) -> str:
    match label_selector(text):
        case InvalidInput(_, message):
            raise ValueError(message)
    return text


Quantity = Annotated[
    float, BeforeValidator(_number, json_schema_input_type=float | str), Field(ge=0, le=_MOST)
]
Kind = Annotated[str, Field(min_length=1, max_length=253)]
Amounts = Annotated[
    dict[Kind, Quantity],
    BeforeValidator(_named, json_schema_input_type=dict[str, float | str] | str),
    Field(max_length=_MOST_NAMED),
]
Names = Annotated[
    tuple[ObjectName, ...],
    _FEW_WRONG,
    BeforeValidator(_names, json_schema_input_type=list[str] | str),
    Field(min_length=1, max_length=1000),
]
Selector = Annotated[str, Field(max_length=1024), AfterValidator(_selector)]


class SupplyWish(WireRequest):
    """An amount of a device of a kind; kinds that have no devices, such as cpu, name none."""

    kind: Kind
    device: Annotated[str, Field(max_length=253)] = ""
    amount: Quantity


Supplies = Annotated[
    tuple[SupplyWish, ...],
    _FEW_WRONG,
    BeforeValidator(_supplies, json_schema_input_type=list[SupplyWish] | str),
    Field(min_length=1, max_length=50),
]


class LayoutWish(WireRequest):
    """What a GPU of a node is divided into: `2x3g.48gb`, `3x1g.12gb-1x4g.48gb`, or `off`."""

    node: Annotated[str, Field(max_length=253, description="Empty: the one that has GPUs.")] = ""
    gpu: Annotated[int, Field(ge=0, lt=64, description="Index of the GPU on its node.")]
    layout: Annotated[str, Field(pattern=f"^({LAYOUT})$")]


def _layouts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = _pairs(value, "gpu-node-1/0=2x3g.48gb,gpu-node-1/1=off")
    parts = [(*name.rpartition("/"), layout) for name, layout in found]
    return [{"node": node, "gpu": gpu, "layout": layout} for node, _, gpu, layout in parts]


def _every_gpu(found: tuple[LayoutWish, ...]) -> tuple[LayoutWish, ...]:
    for node in dict.fromkeys(item.node for item in found):
        gpus = sorted(item.gpu for item in found if item.node == node)
        if gpus != list(range(len(gpus))):
            raise ValueError(f"{node or 'the node'}: name each of its GPUs once, from 0 on")
    return found


Layouts = Annotated[
    tuple[LayoutWish, ...],
    _FEW_WRONG,
    BeforeValidator(_layouts, json_schema_input_type=list[LayoutWish] | str),
    Field(min_length=1, max_length=1000),
    AfterValidator(_every_gpu),
]


class SpreadWish(WireRequest):
    """At most so many clusters per value of a label of the managed clusters."""

    key: Annotated[str, Field(min_length=1, max_length=317)]
    most: Annotated[int, Field(ge=1, le=100_000)]


class WorkloadWishes(WireRequest):
    """What a workload asks for beyond its labels."""

    replicas: Annotated[
        int | None, Field(ge=1, le=20_000, description="Clusters to run on at most.")
    ] = None
    priority: Annotated[
        int | None,
        Field(
            ge=-(2**31),
            le=2**31,
            description="A higher one never loses anything to a lower one.",
        ),
    ] = None
    requests: Annotated[
        Amounts | None, Field(description="Further kinds that each replica takes: cpu, memory, ...")
    ] = None
    spread: Annotated[
        Annotated[
            tuple[SpreadWish, ...],
            _FEW_WRONG,
            BeforeValidator(_spreads, json_schema_input_type=list[SpreadWish] | str),
            Field(max_length=10),
        ]
        | None,
        Field(description="At most so many of its clusters per value of a cluster label."),
    ] = None
    spread_group: Annotated[
        str | None,
        Field(max_length=253, description="Workloads of one group count together for spread."),
    ] = None
    clusters: Annotated[Names | None, Field(description="It runs on these alone.")] = None
    excluded_clusters: Annotated[Names | None, Field(description="It never runs on these.")] = None
    affinity: Annotated[
        Selector | None, Field(description="Label selector that its clusters meet.")
    ] = None
    anti_affinity: Annotated[
        Selector | None, Field(description="Label selector that its clusters don't meet.")
    ] = None
    workload_affinity: Annotated[
        Selector | None,
        Field(description="Label selector of workloads of which one runs on the same cluster."),
    ] = None
    workload_anti_affinity: Annotated[
        Selector | None,
        Field(description="Label selector of workloads that never run on the same cluster."),
    ] = None
    minimum_score: Annotated[
        float | None, Field(description="A place worth less is not acceptable.")
    ] = None
    move_cost: Annotated[
        float | None,
        Field(ge=0, le=1e9, description="What leaving a cluster where it runs costs."),
    ] = None
    uses: Annotated[
        Amounts | None, Field(description="What each replica uses of the request's limits.")
    ] = None


class PolicyWishes(WireRequest):
    """What a policy says beyond its labels."""

    pool: Annotated[
        str | None,
        Field(max_length=63, description="At most one policy of a cluster's pool is enforced."),
    ] = None
    cluster: Annotated[
        ObjectName | None, Field(description="The only cluster that the policy is made for.")
    ] = None
    supplies: Annotated[
        Supplies | None, Field(description="What it supplies, instead of what its labels say.")
    ] = None
    layouts: Annotated[
        Layouts | None,
        Field(description="What its GPUs become: those that stay as they are keep running."),
    ] = None
    change_cost: Annotated[
        float | None,
        Field(ge=0, le=1e9, description="What changing to it costs where it is not enforced."),
    ] = None
    uses: Annotated[Amounts | None, Field(description="What it uses of the request's limits.")] = (
        None
    )


class ClusterWishes(WireRequest):
    """What a managed cluster says beyond its status."""

    allocatable: Annotated[
        Supplies | None,
        Field(description="What workloads can have without a policy; wins over the status."),
    ] = None


Wishes = TypeVar("Wishes", bound=WireRequest)


def annotated(obj: Object, model: type[Wishes]) -> Wishes | InvalidInput:
    """Read the wishes among an object's annotations; a pool is read from the label too."""
    texts = _texts(obj)
    found = {name: texts[key] for name, key in _keys(model) if key in texts}
    try:
        return model.model_validate(found)
    except ValidationError as error:
        problems = field_problems(error.errors(include_input=False, include_url=False))
        wrong = (f"annotation {PREFIX}{_kebab(item.field)}: {item.message}" for item in problems)
        return InvalidInput("InvalidAnnotation", "; ".join(islice(wrong, 3)))


def unknown_annotations(obj: Object, model: type[WireRequest]) -> Iterator[str]:
    """Yield the annotations with our prefix that say nothing known."""
    known = {key for _, key in _keys(model)}
    yield from sorted(key for key in _texts(obj) if key.startswith(PREFIX) and key not in known)


def merged(said: WireRequest, annotated_: WireRequest, model: type[WireRequest]) -> dict[str, Any]:
    """Return each wish of a model: what the request said, else the annotation; else None."""
    return {
        name: getattr(annotated_, name) if getattr(said, name) is None else getattr(said, name)
        for name in model.model_fields
    }


def _texts(obj: Object) -> Mapping[str, str]:
    metadata = obj["metadata"]
    label = (metadata.get("labels") or {}).get(f"{PREFIX}pool")
    return {**({f"{PREFIX}pool": label} if label else {}), **(metadata.get("annotations") or {})}


@cache
def _keys(model: type[WireRequest]) -> tuple[tuple[str, str], ...]:
    return tuple((name, f"{PREFIX}{_kebab(name)}") for name in model.model_fields)


def _kebab(name: str) -> str:
    """Return the annotation of a field, named as in Python or as in JSON."""
    return re.sub("_|(?=[A-Z])", "-", name).lower()
