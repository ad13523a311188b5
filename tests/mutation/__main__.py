"""Print, for each package of decisions, how many mutants of a sample the tests notice.

`make mutants ARGS="--package agent --count 20 --seed 1"`. Without a seed each run draws a new
sample, and prints its seed. `--mutant NAME` runs one mutant again, `--tests PATH` asks only these
tests.
"""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutation.mutant_runs import LIMITS, MutantRuns
from tests.mutation.mutants import Mutant, equivalents_of, mutants_of, sample
from tests.mutation.packages import PACKAGES
from tests.repository import ROOT

EQUIVALENTS = Path(__file__).with_name("equivalents.json")
"""Mutants that no test can notice, each with its reason; named by their text, not by a line."""
GOAL = 0.92
"""Share of all mutants together that the tests should notice."""
LEAST = 0.85
"""Share of the mutants of any one package."""


@dataclass(frozen=True)
class PackageFigure:
    """What became of one package's sample; `endless`: only a limit of time noticed them."""

    package: str
    sampled: int
    equivalent: int
    survivors: tuple[Mutant, ...]
    endless: tuple[Mutant, ...]

    @property
    def noticed(self) -> int:
        """Returns how many mutants a test noticed."""
        return self.sampled - self.equivalent - len(self.survivors)

    @property
    def share(self) -> float:
        """Returns the noticed share of the mutants that can be noticed."""
        return self.noticed / max(1, self.sampled - self.equivalent)


def figure_table(figures: Iterable[PackageFigure]) -> str:
    """Return a Markdown table with one row for each package."""
    rows = [
        "| package | sampled | noticed | of these by a limit | equivalent | survivors | figure |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in figures:
        counts = (each.noticed, len(each.endless), each.equivalent, len(each.survivors))
        cells = [each.package, each.sampled, *counts]
        rows.append(f"| {' | '.join(map(str, cells))} | {100 * each.share:.1f}% |")
    return "\n".join(rows)


def copy_of_tree(target: Path) -> Path:
    """Copy what git knows or would add; links stay links."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - the user's git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    return target


def run_package(tree: Path, options: argparse.Namespace, name: str) -> PackageFigure:
    """Run the sample of one package in `tree`, and print a survivor as soon as it is known."""
    package = PACKAGES[name]
    if options.tests:
        package = replace(package, tests=tuple(options.tests))
    runs = MutantRuns(tree, package)
    everything = [m for path in runs.modules for m in mutants_of(path, (tree / path).read_text())]
    known = equivalents_of(json.loads(EQUIVALENTS.read_text()))
    chosen = [m for m in everything if m.name in options.mutant] or sample(
        everything, options.count, options.seed
    )
    sys.stdout.write(f"{name}: {len(everything)} mutants of {len(runs.modules)} modules\n")
    sys.stdout.flush()
    possible = [mutant for mutant in chosen if (*mutant.key, mutant.occurrence) not in known]
    noticed_by = runs.noticed_by(possible)
    survivors = tuple(mutant for mutant in possible if not noticed_by[mutant.name])
    endless = tuple(mutant for mutant in possible if noticed_by[mutant.name] in LIMITS)
    return PackageFigure(name, len(chosen), len(chosen) - len(possible), survivors, endless)


def main() -> int:
    """Run the chosen packages one after another, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", action="append", choices=PACKAGES, default=[])
    parser.add_argument("--count", type=int, default=20, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--mutant", action="append", default=[], help="run only this one")
    parser.add_argument("--tests", action="append", default=[], help="run only these tests")
    parser.add_argument("--verbose", action="store_true", help="say what noticed each mutant")
    options = parser.parse_args()
    if "MUTATED_TREE" not in os.environ:
        return in_copy(options.seed)
    sys.stdout.write(f"seed {options.seed}\n")
    figures = [run_package(ROOT, options, name) for name in options.package or PACKAGES]
    named = {
        "survivors": [mutant.described for figure in figures for mutant in figure.survivors],
        "noticed by a limit": [mutant.described for figure in figures for mutant in figure.endless],
    }
    lists = (line for title, each in named.items() if each for line in (f"{title}:", *each))
    sys.stdout.write("\n".join(["", *lists, figure_table(figures), ""]))
    possible = sum(figure.sampled - figure.equivalent for figure in figures)
    share = sum(figure.noticed for figure in figures) / max(1, possible)
    sys.stdout.write(f"overall: {100 * share:.1f}% of {possible}\n")
    return int(share < GOAL or any(figure.share < LEAST for figure in figures))


def in_copy(seed: int) -> int:
    """Run this command again in a copy of the tree, which only that process imports."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = copy_of_tree(Path(folder).resolve())
        environment = {**os.environ, "MUTATED_TREE": "1", "PYTHONPATH": str(tree)}
        command = [sys.executable, "-m", "tests.mutation", *sys.argv[1:], f"--seed={seed}"]
        return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
