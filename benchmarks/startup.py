"""The start-up time of the command line, as ratios to a bare interpreter in the same run.

python -m benchmarks.startup
"""

import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence

RUNS = 15
CASES: dict[str, Sequence[str]] = {
    "python -c pass": ("-c", "pass"),
    "import dsf": ("-c", "import dsf"),
    "dsf --help": ("-m", "dsf", "--help"),
    "dsf agent --help": ("-m", "dsf", "agent", "--help"),
    "dsf crds": ("-m", "dsf", "crds"),
}


def cpu_seconds(arguments: Sequence[str]) -> float:
    """Return the user and system seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main() -> None:
    """Run the cases in turn, so that drift of the machine hits all of them, and print medians."""
    taken: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(RUNS):
        for name, arguments in CASES.items():
            taken[name].append(cpu_seconds(arguments))
    bare = statistics.median(taken["python -c pass"])
    print(f"{'case':<20}{'CPU s, median':>15}{'ratio':>8}")
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"{name:<20}{median:>15.3f}{median / bare:>8.1f}")


if __name__ == "__main__":
    main()
