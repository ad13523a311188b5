"""The fields of POST /optimize from which MIG policies are generated."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import FailFast, Field, model_validator

from dsf.api import name_syntax
from dsf.api.untrusted_text import InvalidInput
from optimizer.domain.mig import gpu_pools
from optimizer.domain.mig.geometry import Geometry, geometry
from optimizer.domain.mig.layouts import (
    GpuInstance,
    Layout,
    conflict,
    in_geometry_order,
    least_fragmented_layout,
)
from optimizer.domain.nodes import WHOLE_GPU
from optimizer.wire.base import Name, ObjectName, RequestPart

PoolName = Annotated[
    str, Field(max_length=name_syntax.LABEL_VALUE_LENGTH, pattern=name_syntax.LABEL_VALUE)
]


class MigInstance(RequestPart):
    """A GPU instance that exists."""

    gpu: int = Field(0, ge=0, lt=16, description="Index of the GPU on its node.")
    profile: Annotated[
        Name,
        Field(
            max_length=32, description=f"Profile such as 1g.12gb+me; {WHOLE_GPU!r} if MIG is off."
        ),
    ]
    start: int | None = Field(
        None,
        ge=0,
        le=7,
        description="First memory slice, as nvidia-smi mig -lgi shows it. If no instance of a"
        " GPU has one, they are assumed to be where they leave the most room.",
    )
    busy: bool = Field(False, description="Used by something that this request does not place.")
    workload: Annotated[
        Name,
        Field(max_length=253, description="The target workload that uses it; then it is busy."),
    ] = ""


class GpuNode(RequestPart):
    """A node's GPUs, for which policies are generated."""

    model: Annotated[
        Name,
        Field(
            max_length=63,
            description="A30-24GB, H100-80GB, …, or nvidia.com/gpu.product.",
            examples=["H100-80GB"],
        ),
    ]
    count: int = Field(1, ge=1, le=16, description="GPUs of the node.")
    node: ObjectName | None = Field(
        None, description="Node name; without one, the node with nvidia.com/gpu.present=true."
    )
    pool: PoolName = Field("", description="At most one policy is enforced for the GPUs of a pool.")
    instances: Annotated[tuple[MigInstance, ...] | None, FailFast()] = Field(
        None, max_length=112, description="The existing GPU instances; null if not known."
    )

    @model_validator(mode="after")
    def _legal(self) -> Self:
        for item in self.instances or ():
            if item.gpu >= self.count:
                raise ValueError(f"instances: GPU {item.gpu} is not one of {self.count}")
        self.gpus(frozenset())
        return self

    def gpus(self, workloads: frozenset[str]) -> tuple[gpu_pools.Gpu, ...]:
        """Return the GPUs; an instance that others than these workloads use supplies nothing.

        Raises ValueError if the instances can't be on a GPU together.
        """
        known = geometry(self.model)
        if isinstance(known, InvalidInput):
            raise ValueError(f"model: {known.message}")  # noqa: TRY004 - a wrong value
        if self.instances is None:
            return (gpu_pools.Gpu(known),) * self.count
        found = [
            _gpu(index, known, [item for item in self.instances if item.gpu == index], workloads)
            for index in range(self.count)
        ]
        busy = {index for index, gpu in enumerate(found) if gpu.busy or gpu.in_use}
        return tuple(
            replace(gpu, node_busy=bool(busy - {index})) for index, gpu in enumerate(found)
        )


class MigOptions(RequestPart):
    """How GPUs may be reconfigured; its presence asks for generated policies."""

    reconfigure: gpu_pools.ReconfigurationMode = Field(
        "gpu",
        description="gpu: only idle GPUs, as mig-parted does; instance: any GPU, but busy"
        " instances stay; drain: any GPU, after it is drained.",
    )
    reconfigure_cost: float = Field(
        0.0, ge=0, le=1e9, description="Cost of each GPU that gets another layout."
    )
    drain_cost: float = Field(
        0.0, ge=0, le=1e9, description="Cost of each busy instance of a drained GPU."
    )
    max_candidates: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Most policies generated for a pool; default: as many as fit.",
    )
    discover: bool = Field(
        False,
        description="Read the GPUs of clusters that list none from the ManagedCluster's labels"
        " nvidia.com/gpu.product and nvidia.com/gpu.count, or from its claims"
        " gpu-product.nvidia.com and gpu-count.nvidia.com. Where a cluster has a NodeInventory, the"
        " labels of its nodes are read instead.",
    )
    keep_advertised: bool = Field(
        False,
        description="Generate no policy for a cluster that has a NodeInventory and lists no GPUs:"
        " it has its policies in force and the devices that its nodes advertise. What POST /plan"
        " and a PlacementOptimization add where nobody states what clusters supply.",
    )

    def rules(self, clusters: int) -> gpu_pools.ReconfigurationRules:
        """Return the rules for a request with this number of clusters."""
        costs = gpu_pools.ReconfigurationCosts(self.reconfigure_cost, self.drain_cost)
        share = min(_MOST, max(_FEWEST, MAX_CANDIDATES_IN_ALL // max(1, clusters)))
        return gpu_pools.ReconfigurationRules(self.reconfigure, costs, self.max_candidates or share)


MAX_CANDIDATES_IN_ALL = 6_000
"""Generated policies of all pools together, which bounds the size of the model."""

_FEWEST, _MOST = 32, 400
"""Generated policies of one pool. A single GPU has at most 28 layouts that matter."""


def gpu_pools_of(
    cluster: str, nodes: Sequence[GpuNode], workloads: frozenset[str]
) -> tuple[gpu_pools.GpuPool, ...]:
    """Return the pools of a cluster's GPUs, in the order of the request."""
    pools: dict[str, list[gpu_pools.NodeGpus]] = {}
    for item in nodes:
        pools.setdefault(item.pool, []).append(
            gpu_pools.NodeGpus(item.node or "", item.gpus(workloads))
        )
    return tuple(gpu_pools.GpuPool(cluster, tuple(found), name) for name, found in pools.items())


def requested_gpus(pool: gpu_pools.GpuPool, user: str) -> Iterator[dict[str, Any]]:
    """Yield a GpuNode for each node of a pool; what target workloads use, `user` uses here."""
    for node in pool.nodes:
        first = node.gpus[0]
        known = first.mig_disabled or first.layout is not None
        every = (item for at, gpu in enumerate(node.gpus) for item in _instances(at, gpu, user))
        yield {
            "model": first.geometry.model,
            "count": len(node.gpus),
            "node": node.name or None,
            "pool": pool.name,
            "instances": [*every] if known else None,
        }


def _instances(index: int, gpu: gpu_pools.Gpu, user: str) -> Iterator[dict[str, Any]]:
    foreign, own = {"busy": True}, {"busy": True, "workload": user}
    if gpu.mig_disabled:
        use = foreign if gpu.foreign_use else own if gpu.in_use else {}
        yield {"gpu": index, "profile": WHOLE_GPU, **use}
    for item in gpu.layout or ():
        use = foreign if item in gpu.foreign else own if item in gpu.busy else {}
        yield {"gpu": index, "profile": item.profile, "start": item.start, **use}


def require_distinct_nodes(nodes: Sequence[GpuNode]) -> None:
    """Raise ValueError if two entries name one node, which has one label for its layout."""
    named = [item.node for item in nodes if item.node]
    if len(nodes) > 1 and len(named) < len(nodes):
        raise ValueError("gpus: if a cluster has several entries, each must name its node")
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise ValueError(f"gpus: node {twice[0]} is named twice; a node has one configuration")


def _gpu(
    index: int, known: Geometry, instances: Sequence[MigInstance], workloads: frozenset[str]
) -> gpu_pools.Gpu:
    off = [item for item in instances if item.profile == WHOLE_GPU]
    if off:
        if len(instances) > 1:
            raise ValueError(f"instances: GPU {index} is both whole and divided")
        used = off[0].busy or bool(off[0].workload)
        by_others = used and off[0].workload not in workloads
        return gpu_pools.Gpu(known, mig_disabled=True, in_use=used, foreign_use=by_others)
    held = _layout(index, known, instances)
    users = dict(zip(held, instances, strict=True))
    busy = [at for at, item in users.items() if item.busy or item.workload]
    foreign = [at for at in busy if users[at].workload not in workloads]
    return gpu_pools.Gpu(known, _sorted(held), _sorted(busy), _sorted(foreign))


def _layout(index: int, known: Geometry, instances: Sequence[MigInstance]) -> list[GpuInstance]:
    """Return each instance with its position, in their order."""
    starts = [item.start for item in instances if item.start is not None]
    if starts and len(starts) < len(instances):
        raise ValueError(f"instances: GPU {index}: state the start of every instance, or of none")
    names = [_profile(known, item.profile) for item in instances]
    if not starts:
        return _placed(index, known, names)
    held = [GpuInstance(name, start) for name, start in zip(names, starts, strict=True)]
    why = conflict(known, held)
    if why:
        raise ValueError(f"instances: GPU {index}: {why}")
    return held


def _placed(index: int, known: Geometry, names: Sequence[str]) -> list[GpuInstance]:
    layout = least_fragmented_layout(
        known, in_geometry_order(known, {name: names.count(name) for name in names})
    )
    if layout is None:
        raise ValueError(f"instances: GPU {index}: a {known.model} has no room for {names}")
    free = {name: iter([item for item in layout if item.profile == name]) for name in names}
    return [next(free[name]) for name in names]


def _profile(known: Geometry, name: str) -> str:
    profile = known.profile(name)
    if profile is None:
        have = ", ".join(item.name for item in known.profiles)
        raise ValueError(f"instances: {known.model} has no profile {name!r}; it has {have}")
    return profile.name


def _sorted(instances: Sequence[GpuInstance]) -> Layout:
    return tuple(sorted(instances, key=lambda item: item.start))
