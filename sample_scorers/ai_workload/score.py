# SPDX-License-Identifier: Apache-2.0
"""The four scores: pure functions of the series of vLLM, dcgm-exporter and OpenCost."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from ..scoring_service.wire import ScoreResult, Series
from .signals import (
    ACTIVITY,
    COST,
    IDLE,
    POWER,
    PRICE,
    RESERVED,
    RUNNING,
    TOKENS,
    Gpu,
    GpuDevice,
    Pod,
    Samples,
    answers,
    device_of,
    gpu_of,
)

IDLE_SHARE = 0.1
"""Power of an idle GPU instance as a share of the power of a busy one of the same size. An H100
draws about 70 of its 700 W when it is idle."""

AppOf = Callable[[str], str]
"""The app of a pod's name."""

AppDevice = tuple[str, str]

Observed = defaultdict[AppDevice, list[float]]
"""Numbers by app and device."""

PodDevice = tuple[Pod, str]
"""A pod and the kind of its device."""

_HOUR, _KILO, _MILLION = 3600, 1e3, 1e6


def performance(series: Sequence[Series], app_of: AppOf) -> list[ScoreResult]:
    """Return the mean tokens per second of a busy replica, by app and kind of device.

    Samples count while the replica works on requests: an idle replica is not slow. Without the
    number of requests, samples count while it generates tokens. A pod that has several kinds of
    devices at a time has no result.
    """
    observed = Observed(list)
    for (pod, kind), rates in _busy_rates(series).items():
        observed[app_of(pod[1]), kind].extend(rates.values())
    return _means(observed)


def power(series: Sequence[Series], app_of: AppOf) -> list[ScoreResult]:
    """Return the mean watts of a replica, by app and kind of device.

    The power of a GPU is known only as a whole. Each of its GPU instances gets the share
    w / (sum of all w), where w = compute slices * (activity + IDLE_SHARE); the shares of all add up
    to the power of the GPU. What a replica has on several GPUs is added.
    """
    observed = Observed(list)
    for (pod, kind), watts in _watts(series).items():
        observed[app_of(pod[1]), kind].extend(watts.values())
    return _means(observed)


def efficiency(series: Sequence[Series], app_of: AppOf) -> list[ScoreResult]:
    """Return the million tokens that a busy replica generates for a unit of money.

    By app and kind of device: tokens / (cost of the GPU's share + energy * its price), summed over
    the samples of `performance` whose power, cost and price are known too. A replica's share of the
    hourly cost of a GPU is its part of the compute slices that the GPU is divided into.
    """
    watts, hourly = _watts(series), _hourly_cost(series)
    prices = next((samples for _, samples in answers(series, PRICE)), {})
    tokens, money = defaultdict[AppDevice, float](float), defaultdict[AppDevice, float](float)
    for (pod, kind), rates in _busy_rates(series).items():
        drawn, cost = watts.get((pod, kind), {}), hourly.get((pod, kind), {})
        for time in rates.keys() & drawn.keys() & cost.keys() & prices.keys():
            tokens[app_of(pod[1]), kind] += rates[time] * _HOUR / _MILLION
            money[app_of(pod[1]), kind] += cost[time] + drawn[time] / _KILO * prices[time]
    found = {key: tokens[key] / spent for key, spent in sorted(money.items()) if spent > 0}
    return _results({key: value for key, value in found.items() if math.isfinite(value)})


def idle(series: Sequence[Series]) -> list[ScoreResult]:
    """Return the percentage of the time in which pods had devices that these were idle, by device.

    100 * (sum of idle devices) / (sum of devices that pods have), over the samples that both have.
    """
    reserved = {device_of(labels).kind: samples for labels, samples in answers(series, RESERVED)}
    found = list[ScoreResult]()
    for labels, samples in answers(series, IDLE):
        device = device_of(labels).kind
        have = reserved.get(device, {})
        both = [(samples[time], have[time]) for time in samples.keys() & have.keys()]
        known = [(min(free, of), of) for free, of in both if of > 0]
        if known:
            share = math.fsum(free for free, _ in known) / math.fsum(of for _, of in known)
            found.append(ScoreResult(metric={"device": device}, score=100 * share))
    return found


def _busy_rates(series: Sequence[Series]) -> Mapping[PodDevice, Samples]:
    """Return tokens per second, while busy, by pod and the one kind of device that it has."""
    running = _by_pod(series, RUNNING)
    devices = _kinds_by_pod(series)
    found = defaultdict[PodDevice, dict[float, float]](dict)
    for pod, rates in _by_pod(series, TOKENS).items():
        for time, rate in rates.items():
            kinds = devices.get(pod, {}).get(time, set())
            if len(kinds) == 1 and running.get(pod, rates).get(time, 0) > 0:
                found[pod, min(kinds)][time] = rate
    return found


def _watts(series: Sequence[Series]) -> Mapping[PodDevice, Samples]:
    """Return the watts that each pod draws, by its kind of device."""
    known = {gpu_of(labels): samples for labels, samples in answers(series, POWER)}
    return _shares(series, known, _weight)


def _hourly_cost(series: Sequence[Series]) -> Mapping[PodDevice, Samples]:
    """Return what an hour of each pod's part of its GPUs costs, energy not included."""
    by_node = {labels.get("Hostname", ""): samples for labels, samples in answers(series, COST)}
    gpus = {device_of(labels).gpu for labels, _ in answers(series, ACTIVITY)}
    known = {gpu: by_node[gpu[0]] for gpu in gpus if gpu[0] in by_node}
    return _shares(series, known, lambda device, _: device.compute_slices)


def _shares(
    series: Sequence[Series],
    of_gpus: Mapping[Gpu, Samples],
    weight: Callable[[GpuDevice, float], float],
) -> Mapping[PodDevice, Samples]:
    """Return the shares of pods in what whole GPUs draw or cost; shares on several are added."""
    devices = [(device_of(labels), samples) for labels, samples in answers(series, ACTIVITY)]
    total = defaultdict[tuple[Gpu, float], float](float)
    for device, samples in devices:
        for time, activity in samples.items():
            total[device.gpu, time] += weight(device, activity)
    found = defaultdict[PodDevice, defaultdict[float, float]](lambda: defaultdict(float))
    for device, samples in devices:
        if device.pod is None:
            continue
        whole = of_gpus.get(device.gpu, {})
        for time in samples.keys() & whole.keys():
            share = weight(device, samples[time]) / total[device.gpu, time]
            found[device.pod, device.kind][time] += whole[time] * share
    return found


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
    return _results({key: fmean(values) for key, values in sorted(observed.items())})


def _results(scores: Mapping[AppDevice, float]) -> list[ScoreResult]:
    return [
        ScoreResult(metric={"app": app, "device": device}, score=value)
        for (app, device), value in scores.items()
    ]
