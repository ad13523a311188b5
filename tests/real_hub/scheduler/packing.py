"""Which Pods of a layout fit, by definition: every order and every choice of nodes is tried."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from ..harness.gpu_nodes import MEMORY_SLICES, MIG_PROFILES, MULTIPROCESSORS
from .layouts import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .layouts import Layout, LayoutNode, PodSet

ALL_SLICES = (1 << MEMORY_SLICES) - 1


class Fit(StrEnum):
    """What can be said before the scheduler has chosen."""

    ALWAYS = "in any order"
    PACKED = "only if packed well"
    NEVER = "not"


class Gpu(NamedTuple):
    """What is free of a GPU of a DRA driver: memory slices as bits, and multiprocessors."""

    shared: bool
    slices: int = ALL_SLICES
    processors: int = MULTIPROCESSORS

    def less(self, claim: str, start: int) -> Gpu | None:
        """What is left when a claim gets the device that starts at a slice; None if it can't."""
        whole = MEMORY_SLICES, MULTIPROCESSORS, range(1)
        size, processors, _ = MIG_PROFILES.get(claim, whole)
        mask = ((1 << size) - 1) << start
        excluded = self.slices & mask != mask or self.processors < processors
        if excluded or (claim != WHOLE and not self.shared):
            return None
        return Gpu(self.shared, self.slices & ~mask, self.processors - processors)


class Free(NamedTuple):
    """What is free on a node: amounts by resource in the order of `Packing.resources`."""

    amounts: tuple[int, ...]
    gpus: tuple[Gpu, ...] = ()


class Packing:
    """The Pods of some workloads on the nodes of a layout."""

    def __init__(
        self, layout: Layout, workloads: tuple[PodSet, ...], allocated: Iterable[tuple[str, str]]
    ) -> None:
        """`allocated`: node and name of the devices that Pods of others have by their claims."""
        self.allocated = sorted(allocated)
        self.workloads = workloads
        self.resources = sorted({key for node in layout.nodes for key in node.amounts})
        self.resources += sorted(
            {key for item in workloads for key in item.effective} - set(self.resources)
        )
        self.requests = [self._vector(item.effective) for item in workloads]
        self.nodes = [[runs_on(item, node) for node in layout.nodes] for item in workloads]
        self.free = tuple(self._free(node, layout) for node in layout.nodes)
        self.counts = tuple(item.count for item in workloads)

    def fit(self) -> Fit:
        """Whether all Pods get a node."""
        if self._always({}, self.free, self.counts):
            return Fit.ALWAYS
        return Fit.PACKED if self._ever({}, self.free, self.counts) else Fit.NEVER

    def _always(
        self, seen: dict[object, bool], free: tuple[Free, ...], left: tuple[int, ...]
    ) -> bool:
        """Whether no order and no choice of nodes leaves a Pod without one."""
        if (found := seen.get((free, left))) is not None:
            return found
        result = True
        for number, count in enumerate(left):
            if count and result:
                moves = set(self._moves(free, number))
                rest = less(left, number)
                result = bool(moves) and all(self._always(seen, move, rest) for move in moves)
        seen[free, left] = result
        return result

    def _ever(
        self, seen: dict[object, bool], free: tuple[Free, ...], left: tuple[int, ...]
    ) -> bool:
        """Whether some choice of nodes gives each Pod one."""
        number = next((number for number, count in enumerate(left) if count), None)
        if number is None:
            return True
        if (found := seen.get((free, left))) is not None:
            return found
        rest = less(left, number)
        result = any(self._ever(seen, move, rest) for move in set(self._moves(free, number)))
        seen[free, left] = result
        return result

    def _moves(self, free: tuple[Free, ...], number: int) -> Iterator[tuple[Free, ...]]:
        """What is free after one Pod of a workload has got a node, for each choice."""
        for index, node in enumerate(free):
            if not self.nodes[number][index]:
                continue
            amounts = tuple(
                have - ask for have, ask in zip(node.amounts, self.requests[number], strict=True)
            )
            if any(
                have < 0 < ask for have, ask in zip(amounts, self.requests[number], strict=True)
            ):
                continue
            for gpus in taken(node.gpus, self.workloads[number].claim):
                yield (*free[:index], Free(amounts, gpus), *free[index + 1 :])

    def _vector(self, amounts: dict[str, int]) -> tuple[int, ...]:
        return tuple(amounts.get(key, 0) for key in self.resources)

    def _free(self, node: LayoutNode, layout: Layout) -> Free:
        used = [self._vector(item.effective) for item in layout.others if item.node == node.name]
        amounts = self._vector(dict(node.amounts))
        gpus = (Gpu(shared=True),) * node.shared + (Gpu(shared=False),) * node.whole
        for device in (device for name, device in self.allocated if name == node.name):
            gpus = without(gpus, device)
        return Free(
            tuple(have - sum(column) for have, *column in zip(amounts, *used, strict=True)), gpus
        )


def runs_on(item: PodSet, node: LayoutNode) -> bool:
    """Whether the scheduler may put Pods on a node, however much is free there."""
    has_product = node.gpus or node.shared or node.whole
    product = not item.product or bool(has_product and node.model.product == item.product)
    tolerated = item.tolerates or not node.reserved
    return node.usable and tolerated and product and meets(item.zones, node.zone)


def meets(zones: tuple[str, tuple[str, ...]] | None, zone: str) -> bool:
    """Whether a node's zone, which may be none, meets a Pod's condition."""
    operator, values = zones or ("", ())
    holds = {"": True, "Exists": bool(zone), "In": zone in values, "NotIn": zone not in values}
    return holds[operator]


def without(gpus: tuple[Gpu, ...], device: str) -> tuple[Gpu, ...]:
    """What is left of a node's GPUs when a MIG device of this name is allocated."""
    _, number, _, size, memory, start = device.split("-")
    left = gpus[int(number)].less(f"{size}.{memory}", int(start))
    if left is None:
        raise ValueError(f"{device} is allocated, and another device that excludes it")
    return (*gpus[: int(number)], left, *gpus[int(number) + 1 :])


def taken(gpus: tuple[Gpu, ...], claim: str) -> Iterator[tuple[Gpu, ...]]:
    """What is left of a node's GPUs after a claim, for each device that it can get."""
    if not claim:
        yield gpus
        return
    _, _, starts = MIG_PROFILES.get(claim, (0, 0, range(1)))
    for index, gpu in enumerate(gpus):
        for start in starts:
            left = gpu.less(claim, start)
            if left is not None:
                yield (*gpus[:index], left, *gpus[index + 1 :])


def less(left: tuple[int, ...], number: int) -> tuple[int, ...]:
    """The Pods that are left when one of a workload has a node."""
    return (*left[:number], left[number] - 1, *left[number + 1 :])
