"""GPU devices as dcgm-exporter's labels describe them: pure.

Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (names of profiles)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

WHOLE_GPU = "all"
"""The device of a pod that has a whole GPU, without MIG."""

_PROFILE = re.compile(r"(?:\d+c\.)?(\d+)g\.")

Pod = tuple[str, str]
"""Namespace and name."""

Gpu = tuple[str, str]
"""Host and index."""


@dataclass(frozen=True)
class GpuDevice:
    """A GPU or a GPU instance: its kind, the GPU that it is on, and the pod that has it."""

    kind: str
    gpu: Gpu
    pod: Pod | None

    @property
    def compute_slices(self) -> int:
        """The compute slices of the GPU instance; 1 for a whole GPU, which shares with nobody."""
        profile = _PROFILE.match(self.kind)
        return int(profile[1]) if profile else 1


def device_of(labels: Mapping[str, str]) -> GpuDevice:
    """Return the device of a series of dcgm-exporter."""
    pod = labels.get("exported_pod", "")
    return GpuDevice(
        kind=labels.get("GPU_I_PROFILE") or WHOLE_GPU,
        gpu=gpu_of(labels),
        pod=(labels.get("exported_namespace", ""), pod) if pod else None,
    )


def gpu_of(labels: Mapping[str, str]) -> Gpu:
    """Return the physical GPU of a series of dcgm-exporter."""
    return labels.get("Hostname", ""), labels.get("gpu", "")
