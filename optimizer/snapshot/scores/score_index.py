"""Which scores a fleet needs, by number, and the entries of AddOnPlacementScores."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from dsf.api.scoring.placement_scores import status_written, validity_of
from dsf.api.scoring.score_conditions import read_trust
from dsf.kube.port import Object
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import Cluster, Workload
from optimizer.domain.mig.gpu_pools import GpuPools, possible_devices
from optimizer.domain.nodes import GPU_KIND
from optimizer.domain.score_matrix import ClusterDevice
from optimizer.wire.result import ScoreEntry, ScoreObject

AppNumbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ClusterShape:
    """The devices of clusters with equal supplies, and the numbers of the apps that need each."""

    devices: tuple[str, ...]
    asked: tuple[AppNumbers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreIndex:
    """Apps and places (devices of clusters) by number; each cluster has a first place and a shape.

    The places of a cluster are consecutive, in the order of its shape's devices.
    """

    apps: Mapping[str, int]
    places: Mapping[ClusterDevice, int]
    clusters: Mapping[str, tuple[int, ClusterShape]]


def score_index(
    clusters: Iterable[Cluster], pools: GpuPools, workloads: Iterable[Workload]
) -> ScoreIndex:
    """Return the scores to read: of every app, on every device that could supply it.

    An app whose Pods all name their device needs no score of another one.
    """
    kinds = members_by_key((item.app, (item.kind, frozenset(item.devices))) for item in workloads)
    asking = [set(kinds[app]) for app in sorted(kinds)]
    asked_kinds = {kind for own in asking for kind, _ in own}
    asked = cache(partial(_asked, asking))
    places, found = dict[ClusterDevice, int](), dict[str, tuple[int, ClusterShape]]()
    shapes: dict[frozenset[tuple[str, str]], ClusterShape] = {}
    for cluster in clusters:
        supplied = frozenset(
            (device, kind) for device, kind in _supplied(cluster, pools) if kind in asked_kinds
        )
        if supplied not in shapes:
            shapes[supplied] = _shape(supplied, asked)
        found[cluster.name] = len(places), shapes[supplied]
        devices = enumerate(shapes[supplied].devices, len(places))
        places.update({(cluster.name, device): number for number, device in devices})
    return ScoreIndex({app: number for number, app in enumerate(sorted(kinds))}, places, found)


def _supplied(cluster: Cluster, pools: GpuPools) -> Iterator[tuple[str, str]]:
    """Yield the devices and kinds that a cluster supplies, or could with its GPUs divided.

    Those that others use up are among them: an explanation tells what one more would be worth.
    """
    supplies = (*cluster.supplies, *cluster.used_by_others)
    yield from ((supply.device, supply.kind) for supply in supplies)
    for pool in pools.get(cluster.name, ()):
        yield from ((device, GPU_KIND) for device in possible_devices(pool))


def _shape(
    supplied: frozenset[tuple[str, str]], asked: Callable[[str, frozenset[str]], AppNumbers]
) -> ClusterShape:
    kinds = members_by_key(sorted(supplied))
    numbers = (asked(device, frozenset(own)) for device, own in kinds.items())
    return ClusterShape(tuple(kinds), tuple(numbers))


def _asked(
    asking: Sequence[set[tuple[str, frozenset[str]]]], device: str, kinds: frozenset[str]
) -> AppNumbers:
    """Return the numbers of the apps that request one of these kinds and may use the device."""
    numbers = [
        number
        for number, own in enumerate(asking)
        if any(kind in kinds and (not devices or device in devices) for kind, devices in own)
    ]
    return np.array(numbers, dtype=np.int64)


def entries_of(obj: Object) -> Iterator[tuple[str, int]]:
    """Yield an AddOnPlacementScore's names and values, but entries that lack either."""
    for item in (obj.get("status") or {}).get("scores") or []:
        name, value = item.get("name"), item.get("value")
        if isinstance(name, str) and type(value) is int:
            yield name, value


def score_object(obj: Object, *, now: datetime) -> ScoreObject:
    """Read an AddOnPlacementScore to be shown; `now` is aware."""
    valid_until, expired = validity_of(obj, now)
    return ScoreObject(
        cluster=str(obj["metadata"].get("namespace") or ""),
        name=str(obj["metadata"]["name"]),
        written=status_written(obj),
        valid_until=valid_until,
        expired=expired,
        trust=read_trust(obj),
        scores=tuple(ScoreEntry(name=name, value=value) for name, value in entries_of(obj)),
    )
