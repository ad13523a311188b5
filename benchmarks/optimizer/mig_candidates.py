"""The loss of generated MIG candidates against all combinations of layouts.

python -m benchmarks.optimizer.mig_candidates

Each case is a group of equal H100-96GB GPUs with 40 random requests for each device (seed 2).
Losses are relative to the exact optimum (HiGHS over pattern counts). `alone` is the loss for the
whole demand, and `parts` for random parts of it, such as other clusters leave. `stated` is the
loss that the bound of a result allows, computed once a decision is known. `any use` is the bound
by which the candidates were chosen; it is valid for all parts of the demand at once.
"""

import random
import time

import numpy as np
import pulp

from optimizer.candidates.frontier import frontier
from optimizer.candidates.layout_bounds import value_bound
from optimizer.domain.fleet import GpuPattern, OmittedLayouts
from optimizer.domain.mig.demand import Demand, DeviceRequest
from optimizer.domain.mig.geometry import Geometry, geometry
from optimizer.domain.mig.gpu_pools import Gpu, patterns
from optimizer.domain.nodes import GPU_KIND
from optimizer.model.parameters import ClusterResource, ProblemWorkload
from optimizer.model.problem import Problem

FEW = ("2g.24gb", "3g.48gb", "all")
MANY = ("1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb")
REPEATS, PARTS = 3, 4


def exact(open_: tuple[GpuPattern, ...], gpus: int, demand: Demand) -> float:
    model = pulp.LpProblem("mig", pulp.LpMaximize)
    counts = [pulp.LpVariable(f"x{index}", 0, gpus, pulp.LpInteger) for index in range(len(open_))]
    taken = [
        [pulp.LpVariable(f"y{device}_{index}", cat=pulp.LpBinary) for index in range(len(items))]
        for device, (_, items) in enumerate(demand.requests)
    ]
    pairs = [
        list(zip(items, chosen, strict=True))
        for (_, items), chosen in zip(demand.requests, taken, strict=True)
    ]
    model += pulp.lpSum(item.value * used for pair in pairs for item, used in pair)
    model += pulp.lpSum(counts) <= gpus
    for device, pair in enumerate(pairs):
        supply = pulp.lpSum(
            item.supply[device] * count for item, count in zip(open_, counts, strict=True)
        )
        model += pulp.lpSum(item.amount * used for item, used in pair) <= supply
    model.solve(pulp.HiGHS(msg=False))
    return float(pulp.value(model.objective))


def stated(
    open_: tuple[GpuPattern, ...], gpus: int, bound: float, some: Demand, found: float
) -> float:
    """Return the stated bound of a result with this value."""
    slots = tuple(ClusterResource(0, GPU_KIND, device) for device in some.devices)
    asked = [(at, item) for at, (_, items) in enumerate(some.requests) for item in items]
    tasks = tuple(
        ProblemWorkload(str(index), "app", GPU_KIND, item.amount)
        for index, (_, item) in enumerate(asked)
    )
    values = np.full((len(tasks), len(slots)), np.nan)
    for index, (slot, item) in enumerate(asked):
        values[index, slot] = item.value
    problem = Problem(("c",), slots, (), tasks, values, np.zeros(len(slots)))
    pool = OmittedLayouts("c", "", 0, bound, some.devices, ((gpus, open_),))
    return max(found, min(found + bound, value_bound(problem, (pool,), 0, found)))


def part(demand: Demand, rng: random.Random) -> Demand:
    share = rng.choice([0.1, 0.3, 0.6])
    return Demand(
        tuple(
            (device, tuple(item for item in items if rng.random() < share) or items[:1])
            for device, items in demand.requests
        )
    )


def row(model: Geometry, devices: tuple[str, ...], gpus: int, most: int) -> str:
    rng = random.Random(2)  # noqa: S311 - a stated seed
    bounds, claims = list[float](), list[float]()
    alone, parts = list[float](), list[float]()
    seconds = stating = 0.0
    for _ in range(REPEATS):
        demand = Demand.of(
            {
                name: [DeviceRequest(rng.randint(1, 3), rng.randint(1, 100)) for _ in range(40)]
                for name in devices
            }
        )
        open_ = patterns(Gpu(model), demand)
        start = time.process_time()
        found = frontier([open_] * gpus, demand, most=most)
        seconds += time.process_time() - start
        for some, losses in ((demand, alone), *((part(demand, rng), parts) for _ in range(PARTS))):
            optimum = exact(open_, gpus, some)
            best = max(some.value(point.supply) for point in found.points)
            losses.append(1 - best / optimum)
            start = time.process_time()
            claims.append((stated(open_, gpus, found.bound, some, best) - best) / optimum)
            stating += time.process_time() - start
        bounds.append(found.bound / exact(open_, gpus, demand))
    return (
        f"{len(devices):>7} {gpus:>5} {most:>10} {seconds / REPEATS * 1000:>7.0f} ms"
        f" {max(alone):>7.2%} {sum(parts) / len(parts):>7.2%} {max(parts):>7.2%}"
        f" {sum(claims) / len(claims):>8.2%} {max(claims):>7.2%} {max(bounds):>8.1%}"
        f" {stating / len(claims) * 1000:>7.0f} ms"
    )


def main() -> None:
    model = geometry("H100-96GB")
    if not isinstance(model, Geometry):
        raise TypeError(model.message)
    print(
        "devices  GPUs candidates        CPU   alone  parts, and worst  stated, and worst  any use"
        "    stating"
    )
    for devices in (FEW, MANY):
        for gpus in (1, 4, 8):
            for most in (16, 64, 400):
                print(row(model, devices, gpus, most), flush=True)


if __name__ == "__main__":
    main()
