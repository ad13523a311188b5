"""The MIG layouts of a cluster's GPUs, and the layouts for which no candidate was generated."""

from dataclasses import dataclass
from typing import NamedTuple

GPU_KIND = "gpu"
"""The kind of resource that GPUs and their MIG devices supply."""

WHOLE_GPU = "all"
"""The device that a GPU without MIG supplies, as the guide's policies name it."""

ProfileCounts = tuple[tuple[str, int], ...]
"""How many instances of which profile, in the order of the geometry; no zeros."""


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """The layout of each GPU of a node, by index; None is MIG off.

    `taken`: the devices of each GPU that other than target workloads use; empty if they use none.
    """

    node: str
    gpus: tuple[ProfileCounts | None, ...]
    taken: tuple[tuple[tuple[str, int], ...], ...] = ()


def gpu_name(node: str, index: int) -> str:
    """Return the name of a GPU: `gpu-node-1/0`, or `0` if its node has no name."""
    return f"{node}/{index}" if node else str(index)


class GpuPattern(NamedTuple):
    """What a GPU may become; `instances` is None where MIG is off.

    `supply` counts what the demand can use, device by device; `supplies` names all of it.
    `pieces` is how fragmented it is: its instances, and the compute slices that none of them has.
    """

    supply: tuple[int, ...]
    cost: float
    changed: bool
    pieces: int
    instances: ProfileCounts | None
    supplies: tuple[tuple[str, int], ...]


class OmittedLayouts(NamedTuple):
    """A pool for which only some of the relevant candidates were generated.

    `kept`: how many. `bound`: by how much the others can at most be worth more, for every demand.
    `groups` of equal GPUs: how many, and what patterns supply of the `devices` asked for.
    """

    cluster: str
    pool: str
    kept: int
    bound: float
    devices: tuple[str, ...]
    groups: tuple[tuple[int, tuple[GpuPattern, ...]], ...]
