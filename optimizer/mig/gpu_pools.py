"""The GPUs of a cluster by pool and node."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optimizer.domain.gpu_layout import WHOLE_GPU
from optimizer.mig.gpu_patterns import Gpu


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """A node by name and its GPUs by index; no name stands for the one node that has GPUs."""

    name: str
    gpus: tuple[Gpu, ...]


@dataclass(frozen=True, slots=True)
class GpuPool:
    """The GPUs of a cluster whose layout one policy at a time sets."""

    cluster: str
    nodes: tuple[NodeGpus, ...]
    name: str = ""


GpuPools = Mapping[str, Sequence[GpuPool]]
"""GPU pools by cluster."""


def possible_devices(pool: GpuPool) -> dict[str, int]:
    """Return the devices that a pool's GPUs can supply, and at most how many of each."""
    most: Counter[str] = Counter()
    for node in pool.nodes:
        for gpu in node.gpus:
            most.update(
                {
                    WHOLE_GPU: 1,
                    **{item.device: item.max_instances for item in gpu.geometry.profiles},
                }
            )
    return dict(sorted(most.items()))
