"""The straightforward formulation, the baseline of `benchmarks.optimizer.speed`: one solve by CBC.

python -m benchmarks.optimizer.reference_model 20 50 dist

x[w,c,d]: workload w runs on device d of cluster c. y[c,d]: cluster c enforces the policy of device
d. z[w,c,d] stands for the product x y, by three rows: z <= x, z <= y, z >= x + y - 1.
"""

import resource
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, cast

import pulp

from benchmarks.optimizer.instances import DEVICES, Instance, Kind, instance


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one solve found: `optimal` only where proven; `cpu` in seconds of this and children."""

    objective: float
    optimal: bool
    cpu: float


def cpu_seconds() -> float:
    """Return the user and system seconds of this process and of its finished children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def solve(given: Instance, cpu_limit: float) -> Outcome:
    """Build and solve the straightforward model of an instance."""
    started = cpu_seconds()
    model = _model(given)
    solver = pulp.COIN_CMD(
        path=pulp.PULP_CBC_CMD.pulp_cbc_path,
        msg=False,
        gapRel=0.0,
        timeLimit=cpu_limit,
        timeMode="cpu",
        threads=1,
    )
    model.solve(solver)
    optimal = model.sol_status == pulp.LpSolutionOptimal
    return Outcome(model.objective.value() or 0.0, optimal, cpu_seconds() - started)


def _model(given: Instance) -> Any:
    model = pulp.LpProblem("yardstick", pulp.LpMaximize)
    workloads, clusters = range(len(given.sizes)), range(len(given.gpus))
    devices = range(len(DEVICES))
    y = {(c, d): _binary(f"y_{c}_{d}") for c in clusters for d in devices}
    x, z = {}, {}
    once, policies, used = defaultdict(list), defaultdict(list), defaultdict(list)
    score = {}
    for w in workloads:
        for c in clusters:
            for d in devices:
                if given.sizes[w] > given.supplies[c, d]:
                    continue
                x[w, c, d], z[w, c, d] = _binary(f"x_{w}_{c}_{d}"), _binary(f"z_{w}_{c}_{d}")
                once[w].append(x[w, c, d])
                used[c, d].append((z[w, c, d], int(given.sizes[w])))
                score[z[w, c, d]] = float(given.scores[w, c, d])
    for (c, _), choice in y.items():
        policies[c].append(choice)
    model.setObjective(pulp.LpAffineExpression(score))
    for terms in (*once.values(), *policies.values()):
        model += pulp.LpAffineExpression(dict.fromkeys(terms, 1)) <= 1
    for (c, d), pairs in used.items():
        terms = {**dict(pairs), y[c, d]: -int(given.supplies[c, d])}
        model += pulp.LpAffineExpression(terms) <= 0
    for (w, c, d), product in z.items():
        model += product <= x[w, c, d]
        model += product <= y[c, d]
        model += product >= x[w, c, d] + y[c, d] - 1
    return model


def _binary(name: str) -> Any:
    return pulp.LpVariable(name, cat=pulp.LpBinary)


def main() -> None:
    """Solve one instance named on the command line: clusters, workloads, kind."""
    clusters, workloads, kind = sys.argv[1:4]
    given = instance(int(clusters), int(workloads), cast("Kind", kind))
    outcome = solve(given, cpu_limit=600.0)
    state = "optimal" if outcome.optimal else "stopped"
    print(f"{given.name}: {outcome.objective:g} {state} in {outcome.cpu:.1f} CPU s")


if __name__ == "__main__":
    main()
