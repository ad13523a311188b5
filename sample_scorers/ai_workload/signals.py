# SPDX-License-Identifier: Apache-2.0
"""The queries, which of their series is which, and what labels say of devices and apps: pure.

An agent concatenates the series of several queries, so each query names its series in the label
`signal`. With a source for each query, the agent names the source in the label `__source__`. All
queries have the same time steps, so samples are joined by their times.

Sources: https://docs.vllm.ai/en/stable/usage/metrics/ (vLLM's metrics) and
https://github.com/NVIDIA/dcgm-exporter, etc/dcp-metrics-included.csv (those of dcgm-exporter; the
labels `exported_pod` and `exported_namespace` come from a ServiceMonitor without honorLabels);
https://opencost.io/docs/integrations/metrics (`node_gpu_hourly_cost`). `energy_price_per_kwh` is a
recording rule of the operator's own;
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (names of profiles).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..scoring_service.wire import Series

SIGNAL = "signal"
"""The label that says which query a series answers, where one source has them all."""

SOURCE = "__source__"
"""The label in which agents name the source of a series; here it is the name of a signal."""

Samples = Mapping[float, float]
"""Numbers by unix seconds."""

_DEVICE_LABELS = "Hostname, gpu, GPU_I_ID, GPU_I_PROFILE, exported_namespace, exported_pod"


def _named(signal: str, query: str) -> str:
    return f'label_replace({query}, "{SIGNAL}", "{signal}", "", "")'


TOKENS, RUNNING, ACTIVITY, POWER = "tokens", "running", "activity", "power"
COST, PRICE = "cost", "price"
TOKENS_QUERY = _named(TOKENS, "sum by (namespace, pod) (irate(vllm:generation_tokens_total[2m]))")
"""Tokens per second that each pod generates, between the last two scrapes: `rate` would mix busy
and idle time, and be too low for two minutes after a pod has started."""
RUNNING_QUERY = _named(RUNNING, "sum by (namespace, pod) (vllm:num_requests_running)")
"""Requests that each pod works on."""
ACTIVITY_QUERY = _named(ACTIVITY, f"max by ({_DEVICE_LABELS}) (DCGM_FI_PROF_GR_ENGINE_ACTIVE)")
"""Share of the time that each GPU, or GPU instance of MIG, computes, and the pod that has it."""
_RESERVED = f'max by ({_DEVICE_LABELS}) (DCGM_FI_PROF_GR_ENGINE_ACTIVE{{exported_pod!=""}})'
IDLE, RESERVED = "idle", "reserved"
IDLE_QUERY = _named(IDLE, f"sum by (GPU_I_PROFILE) (1 - clamp({_RESERVED}, 0, 1))")
"""Devices that pods have and that compute nothing, by profile: their idle shares, added up."""
RESERVED_QUERY = _named(RESERVED, f"count by (GPU_I_PROFILE) ({_RESERVED})")
"""Devices that pods have, by profile. Prometheus adds up: a day of each device is too much."""
POWER_QUERY = _named(POWER, "max by (Hostname, gpu) (DCGM_FI_DEV_POWER_USAGE)")
"""Watts of each GPU. dcgm-exporter repeats those of the whole GPU for each of its GPU instances
(https://github.com/NVIDIA/dcgm-exporter/issues/257), so that a sum would count them repeatedly."""
COST_QUERY = _named(
    COST, 'label_replace(max by (node) (node_gpu_hourly_cost), "Hostname", "$1", "node", "(.*)")'
)
"""Money for an hour of one GPU of each node, energy not included."""
PRICE_QUERY = _named(PRICE, "max(energy_price_per_kwh)")
"""Money for a kilowatt-hour."""

PERFORMANCE_QUERIES = ";".join((TOKENS_QUERY, RUNNING_QUERY, ACTIVITY_QUERY))
POWER_QUERIES = ";".join((ACTIVITY_QUERY, POWER_QUERY))
RESERVED_IDLE_QUERIES = ";".join((IDLE_QUERY, RESERVED_QUERY))
EFFICIENCY_QUERIES = ";".join((PERFORMANCE_QUERIES, POWER_QUERY, COST_QUERY, PRICE_QUERY))


def answers(series: Sequence[Series], signal: str) -> Iterator[tuple[Mapping[str, str], Samples]]:
    """Yield the labels and samples of one query's series; negative samples are left out."""
    for each in series:
        if each.metric.get(SIGNAL, each.metric.get(SOURCE)) == signal:
            yield each.metric, {time: value for time, value in each.finite() if value >= 0}


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


_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
"""The characters of Kubernetes' generated names (k8s.io/apimachinery/pkg/util/rand)."""

_SUFFIX = re.compile(rf"-{_RANDOM}{{1,10}}-{_RANDOM}{{5}}$|-{_RANDOM}{{5}}$|-\d+$")
"""What a Deployment, a DaemonSet or Job, or a StatefulSet adds to its name."""


@dataclass(frozen=True)
class AppPattern:
    """An app, and the pods that belong to it as a pattern with `*` and `?`."""

    app: str
    pods: str


def app_of(pod: str, patterns: Sequence[AppPattern] = ()) -> str:
    """Return the app of the first pattern that fits, or else the pod's name without its suffix."""
    for pattern in patterns:
        if fnmatchcase(pod, pattern.pods):
            return pattern.app
    return _SUFFIX.sub("", pod, count=1) or pod
