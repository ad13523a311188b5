"""The two scores: pure functions of the series of vLLM and dcgm-exporter."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from ..wire import ScoreResult, Series
from .gpu_device import GpuDevice, Pod, device_of, gpu_of
from .signals import ACTIVITY, POWER, RUNNING, TOKENS, Samples, answers

IDLE_SHARE = 0.1
"""Power of an idle GPU instance as a share of the power of a busy one of the same size. An H100
draws about 70 of its 700 W when it is idle."""

AppOf = Callable[[str], str]
"""The app of a pod's name."""

Observed = defaultdict[tuple[str, str], list[float]]
"""Numbers by app and device."""


def performance(series: Sequence[Series], app_of: AppOf) -> list[ScoreResult]:
    """Return the mean tokens per second of a busy replica, by app and kind of device.

    Samples count while the replica works on requests: an idle replica is not slow. Without the
    number of requests, samples count while it generates tokens. A pod that has several kinds of
    devices at a time has no result.
    """
    running = _by_pod(series, RUNNING)
    devices = _kinds_by_pod(series)
    observed = Observed(list)
    for pod, rates in _by_pod(series, TOKENS).items():
        for time, rate in rates.items():
            kinds = devices.get(pod, {}).get(time, set())
            if len(kinds) == 1 and running.get(pod, rates).get(time, 0) > 0:
                observed[app_of(pod[1]), min(kinds)].append(rate)
    return _means(observed)


def power(series: Sequence[Series], app_of: AppOf) -> list[ScoreResult]:
    """Return the mean watts of a replica, by app and kind of device.

    The power of a GPU is known only as a whole. Each of its GPU instances gets the share
    w / (sum of all w), where w = compute slices * (activity + IDLE_SHARE); the shares of all add up
    to the power of the GPU. What a replica has on several GPUs is added.
    """
    watts = {gpu_of(labels): samples for labels, samples in answers(series, POWER)}
    devices = [(device_of(labels), samples) for labels, samples in answers(series, ACTIVITY)]
    total = defaultdict[tuple[object, float], float](float)
    for device, samples in devices:
        for time, activity in samples.items():
            total[device.gpu, time] += _weight(device, activity)
    drawn = defaultdict[tuple[Pod, str], defaultdict[float, float]](lambda: defaultdict(float))
    for device, samples in devices:
        if device.pod is None:
            continue
        known = watts.get(device.gpu, {})
        for time in samples.keys() & known.keys():
            share = _weight(device, samples[time]) / total[device.gpu, time]
            drawn[device.pod, device.kind][time] += known[time] * share
    observed = Observed(list)
    for (pod, kind), by_time in drawn.items():
        observed[app_of(pod[1]), kind].extend(by_time.values())
    return _means(observed)


def _weight(device: GpuDevice, activity: float) -> float:
    return device.compute_slices * (min(activity, 1) + IDLE_SHARE)


def _by_pod(series: Sequence[Series], signal: str) -> Mapping[Pod, Samples]:
    return {
        (labels.get("namespace", ""), labels.get("pod", "")): samples
        for labels, samples in answers(series, signal)
    }


def _kinds_by_pod(series: Sequence[Series]) -> Mapping[Pod, Mapping[float, set[str]]]:
    """Return the kinds of devices that each pod has, by time: a pod can return to another."""
    found = defaultdict[Pod, defaultdict[float, set[str]]](lambda: defaultdict(set))
    for labels, samples in answers(series, ACTIVITY):
        device = device_of(labels)
        if device.pod is not None:
            for time in samples:
                found[device.pod][time].add(device.kind)
    return found


def _means(observed: Mapping[tuple[str, str], Sequence[float]]) -> list[ScoreResult]:
    return [
        ScoreResult(metric={"app": app, "device": device}, score=fmean(values))
        for (app, device), values in sorted(observed.items())
    ]
