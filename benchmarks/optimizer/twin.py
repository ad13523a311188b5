"""CPU seconds of the twin: a fleet for a virtual day, placed in each way.

`python -m benchmarks.optimizer.twin [--clusters 100] [--hours 24] [--controller Kept]` prints a
line for each controller: CPU seconds of this process, rounds of agents, plans, moves.
"""

import argparse
import resource
import time

from optimizer.twin.engine import play
from optimizer.twin.scenario import Scenario


def fleet(clusters: int, hours: float, controller: str) -> Scenario:
    """Return a fleet in which scores are noisy, one shift lasts and one cluster is lost."""
    names = [f"site-{number:0{len(str(clusters))}d}" for number in (1, 2)]
    return Scenario.model_validate(
        {
            "duration": f"{hours}h",
            "controller": controller,
            "clusters": [{"name": "site", "count": clusters, "allocatable": "gpu/all=2"}],
            "workloads": [
                {"name": "chat", "count": clusters // 2},
                {"name": "batch", "count": clusters // 5, "every": "30m", "stays": "8h"},
            ],
            "scores": [
                {
                    "name": "fit",
                    "signals": [
                        {"type": "Constant", "least": 30, "most": 60},
                        {"type": "Noise", "size": 5},
                        {"type": "Shift", "at": f"{hours / 3}h", "by": 30, "clusters": names[:1]},
                    ],
                }
            ],
            "failures": [{"type": "ClusterLost", "at": f"{hours / 2}h", "clusters": names[1:]}],
            "optimization": {
                "preference": {"addonPlacementScore": "fit"},
                # Ten rounds, as the default is of agents with an interval of 30 s.
                "hysteresis": {"stabilizationWindowSeconds": 3000},
            },
            "naiveEvery": "5m",
        }
    )


def main() -> None:
    """Play the fleet with each controller that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--controller", action="append", choices=["Kept", "Naive", "Static"])
    asked = parser.parse_args()
    play(fleet(5, 0.5, "Static"))  # imports, and schemas that are compiled once
    for controller in asked.controller or ["Kept", "Static"]:
        scenario = fleet(asked.clusters, asked.hours, controller)
        began, wall = time.process_time(), time.perf_counter()
        played = play(scenario)
        used = time.process_time() - began
        rounds = asked.clusters * scenario.duration / scenario.scoring_interval
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{controller:6} {asked.clusters} clusters x {asked.hours:g} h: {used:.1f} CPU s"
            f" ({time.perf_counter() - wall:.1f} s), {rounds:.0f} rounds, {played.plans} plans,"
            f" {played.applied} applied, {len(played.moves)} moves,"
            f" {played.unplaced_minutes:.0f} minutes unplaced, {peak:.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
