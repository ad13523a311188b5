"""What node boundaries cost: instances of 200 clusters x 500 workloads without and with nodes.

python -m benchmarks.optimizer.nodes [--clusters 200] [--workloads 500] [--gap 0.0025]

The GPUs of each cluster are on nodes of `--gpus-per-node`; each workload is one Pod that needs its
devices on one node, or several Pods of one device (`--spread-share` of the workloads). Prints CPU
seconds, the rounds of rows, the rows stated, the value, and its ratio to that without nodes.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from benchmarks.optimizer.instances import PER_GPU, Instance, instance, problem
from benchmarks.optimizer.reference_model import cpu_seconds
from optimizer.domain.fleet import Cluster, Fleet, Selector, Workload
from optimizer.domain.nodes import GPU_RESOURCE, NodeGroup, Packing, PodGroup
from optimizer.domain.solution import Solution
from optimizer.model.nodes.pod_demands import pod_demands
from optimizer.model.parameters import Nodes
from optimizer.model.problem import Problem
from optimizer.solve.node_rows import broken_node_rows
from optimizer.solve.strategy import solve_problem


def with_nodes(given: Instance, gpus_per_node: int, spread: float, packing: Packing) -> Problem:
    """Return the problem of an instance with GPUs on nodes, whatever policy divides them."""
    found = problem(given)
    devices = dict(zip(("all", "3g", "2g"), PER_GPU, strict=True))
    policies = tuple(
        item._replace(
            nodes=Nodes(
                _groups(int(given.gpus[item.cluster]), gpus_per_node, devices[item.name]),
                packing == "BestFit",
            )
        )
        for item in found.policies
    )
    every = len(given.sizes)
    pods = [
        (PodGroup(size, {GPU_RESOURCE: 1.0}),)
        if at < spread * every
        else (PodGroup(1, {GPU_RESOURCE: float(size)}),)
        for at, size in enumerate(given.sizes.tolist())
    ]
    largest = Cluster(
        "c", Selector("c"), (), nodes=tuple(_groups(gpus_per_node, gpus_per_node, max(PER_GPU)))
    )
    fleet = Fleet(
        "",
        (largest,),
        tuple(
            Workload(item.name, "", "gpu", item.amount, "", pods=own)
            for item, own in zip(found.workloads, pods, strict=True)
        ),
        {},
        (),
    )
    demands, unlimited = pod_demands(fleet), Nodes((NodeGroup(1, {GPU_RESOURCE: inf}),))
    return replace(
        found,
        policies=policies,
        workloads=tuple(replace(item, pods=demands[item.name]) for item in found.workloads),
        nodes=dict.fromkeys(range(len(found.clusters)), unlimited),
    )


def _groups(gpus: int, per_node: int, devices: int) -> tuple[NodeGroup, ...]:
    """Return full nodes, and one with the GPUs that are left."""
    whole, rest = divmod(gpus, per_node)
    found = [(whole, per_node), (1, rest)]
    return tuple(
        NodeGroup(count, {GPU_RESOURCE: float(each * devices)})
        for count, each in found
        if count and each
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each family and way to start Pods."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--workloads", type=int, default=500)
    parser.add_argument("--gap", type=float, default=0.0025)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gpus-per-node", type=int, default=4)
    parser.add_argument("--spread-share", type=float, default=0.5)
    asked = parser.parse_args(arguments)
    for family in ("dist", "prof"):
        given = instance(asked.clusters, asked.workloads, family)
        before, without = _measured(problem(given), asked)
        print(f"{given.name}: {before:.1f} s, {without.status}, value {without.objective_value:g}")
        for packing in ("AnyOrder", "BestFit"):
            nodes = with_nodes(given, asked.gpus_per_node, asked.spread_share, packing)
            broken = len(broken_node_rows(nodes, without.decision))
            cpu, found = _measured(nodes, asked)
            print(
                f"  {packing}: {cpu:.1f} s ({cpu / before:.2f} times), {found.status},"
                f" gap {100 * (found.gap or 0):.2f}%, value {found.objective_value:g}"
                f" ({found.objective_value / without.objective_value:.3f}), rows of"
                f" {len(found.node_rows)} workloads and clusters; {broken} of the decision"
                " without nodes would not start"
            )


def _measured(given: Problem, asked: argparse.Namespace) -> tuple[float, Solution]:
    began = cpu_seconds()
    found = solve_problem(
        given,
        solver="highs",
        time_limit_seconds=asked.seconds,
        gap=asked.gap,
        clock=time.process_time,
    )
    return cpu_seconds() - began, found


if __name__ == "__main__":
    main()
