"""What each number and each heuristic of the search is worth, as ratios within one run.

python -m benchmarks.optimizer.tuning [--only NAME ...] [--case FAMILY ...]

Every number of the `tuning` modules is halved and doubled (or set to the values below), and every
heuristic is switched off, each alone and in a process of its own. `tuning_cases` describes the
families of cases. A cell has, for each value tried, the pricings of all blocks and the simplex
iterations of the family as ratios to those with the number as it is: `1.1/0.9`. Both are the same
on every machine. `layouts`, `moves` and `explained` have the calls of the optimizer's functions
instead: `1.1 calls`. `same`: the search is the same step by step. `-`: no case reaches the number.
CPU seconds follow as `x1.5` where they change by half or more, `v` and `b` where the sum of values
or of bounds changes by 0.05% or more. A line on standard error has the CPU of every value and
family.
"""

import argparse
import ast
import importlib
import multiprocessing
import pickle
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import highspy  # noqa: F401 - loaded once, before the processes are forked
import numpy as np
import numpy.ma  # numpy imports it where unique() is called first
import pulp

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_FOLDERS = ("solve", "candidates", "transition", "explain")
_ROOT = Path(__file__).parents[2]
_REPEATS = 3
"""Runs with all numbers as they are; their median is what others are compared with."""

_NOTABLE = 5e-4
"""Share by which a value or a bound must change to be printed."""

_NOTABLE_CALLS = 2e-3
"""Share by which the calls of functions must change, because reports by the clock call a few."""

_NOTABLE_CPU = 1.5
"""Factor by which CPU seconds must change to be printed: less is noise on a busy machine."""

OF_LARGE = frozenset(
    {
        "ALL_ITEMS_ASSIGNMENTS",
        "MOMENTUM",
        "PARTITION_WIDTH",
        "QUICK_DIVE_ASSIGNMENTS",
        "QUICK_DIVE_STEPS",
        "QUICK_DIVING_STEPS",
    }
)
"""Numbers about size, which `large` measures; it takes too long for all."""

_SIDE = ("layouts", "moves", "explained")
"""Families for the numbers of their own folders, and for those that no other family reaches."""

_MAIN = ("small", "dist", "prof", "rand")

TRIED: Mapping[str, tuple[Any, ...]] = {
    "MOMENTUM": (0.35, 0.85, 0.0),
    "STEP_SHRINK": (0.35, 0.85),
    "DUAL_STEP_SHRINK": (0.25, 0.75),
    "SUBGRADIENT_WEIGHT": (0.3, 1.0),
    "DUAL_TARGET": (0.985, 0.94),
    "LOSS_MARGIN": (1.0, 3.0, 1e9),
    "LEAST_LOSS": (2e-4, 8e-4, 0.0),
    "NEIGHBOURHOOD_RANDOMNESS": (0.1, 0.4, 1e9),
    "NEIGHBOURHOOD_COLUMNS": (300, 1200, 0),
    "NEIGHBOURHOOD_PRICING_STEPS": (30, 120, 1),
    "NEIGHBOURHOOD_WARM_UP_STEPS": (5, 20, 0),
    "WARM_UP_STEPS": (15, 60, 0),
    "QUICK_DIVE_STEPS": ((15, 50), (60, 200), ()),
    "QUICK_DIVE_ASSIGNMENTS": (0, 10**9),
    "ALL_ITEMS_ASSIGNMENTS": (300_000, 1_200_000, 0),
    "FEW_CLASSES": (75, 300, 0),
    "FEW_CLASSES_STEP_PATIENCE": (2, 6, 8),
    "FIRST_COLUMN_LIMITS": ((150, 450, 1_350), (600, 1_800, 5_400), (), (300,), (900,)),
    "FIRST_COLUMN_LIMITS_REPEATED": ((75, 150, 300), (300, 600, 1_200), (), (300, 900, 2_700)),
    "AMOUNT_PRICE": (0.125, 0.5, 0.0),
    "TESTED_CORRECTION_SETS": (10, 20, 80),
    "SIZED_CORRECTION_SETS": (1, 6, 24),
    "TRIED_REPAIRS": (1, 2, 6),
    "TIE_BREAKING_ASSIGNMENTS": (100, 400, 0),
    "SINGLE_MODEL_VARIABLES": (150, 600, 0),
    "FLOOR_PRICE_LEVELS": (((16.0, 64.0), ()), ((4.0,), ()), ((64.0,), ())),
    "PRICED_CANDIDATES": (3, 12, 0),
    "DUAL_STEPS": (100, 200, 800),
    "SHORTEST_PATH_VARIABLES": (6, 24, -1),
    "COMPARED_MOVES": (25, 50, 200),
    "SCHEDULED_CELLS": (10_000_000, 40_000_000, 0),
    "SHORTEST_PATH_STATES": (50, 1_000, 4_000),
    "DETOURS_PER_WORKLOAD": (1, 2, 6),
    "KEPT_DETOURS": (100, 400, 0),
    "COUNTED_COMBINATIONS": (32, 128, 0),
    "COUNTED_SIZES": (6, 24, 0),
}
"""Values tried where half and double make no sense, or where a further value switches it off."""


class Number(NamedTuple):
    """A number of a `tuning` module, its unit and reason, and the functions that read it."""

    name: str
    module: str
    value: Any
    unit: str
    reason: str
    readers: frozenset[tuple[str, int]]


class Replaced(NamedTuple):
    """An attribute of a module that has another value in a process; `wrap`: given the old one."""

    module: str
    attribute: str
    wrap: Callable[[Any], Any]


class Cost(NamedTuple):
    """What a case cost and reached."""

    cpu: float
    pricings: int
    iterations: int
    calls: int
    value: float
    bound: float

    @property
    def steps(self) -> tuple[float, ...]:
        """What is equal where the search is the same."""
        return self.pricings, self.iterations, round(self.value, 6), round(self.bound, 6)


Key = tuple[str, str]
"""Family and name of a case."""

Costs = Mapping[Key, Cost]


@dataclass(frozen=True, slots=True)
class Task:
    """What a process does: replace, then run the cases; `start`: pickled decisions, if known."""

    replaced: tuple[Replaced, ...] = ()
    families: frozenset[str] = frozenset()
    start: bytes = b""
    trace: bool = False


@dataclass(slots=True)
class Report:
    """What a process found; `reached`: the functions called in each case."""

    costs: dict[Key, Cost] = field(default_factory=dict)
    reached: dict[Key, set[tuple[str, int]]] = field(default_factory=dict)
    start: bytes = b""


def _empty(_old: Any) -> Callable[..., Any]:
    from optimizer.domain.solution import Decision  # noqa: PLC0415

    return lambda *_given, **_named: Decision()


def _no_columns(quick: bool) -> Callable[[Any], Callable[..., Any]]:
    """Return dives of one kind without any result."""

    def wrap(old: Any) -> Callable[..., Any]:
        from optimizer.solve.blocks.columns import concatenated_columns  # noqa: PLC0415

        def dived(blocks: Any, prices: Any, **named: Any) -> Any:
            if named.get("quick", False) == quick:
                return concatenated_columns([]), np.zeros(0, np.int64)
            return old(blocks, prices, **named)

        return dived

    return wrap


def _zero_prices(_old: Any) -> Callable[..., Any]:
    from optimizer.solve.blocks.block_problem import Prices  # noqa: PLC0415

    def initial(blocks: Any, bound: Any, _stop: Any) -> Any:
        prices = Prices(np.zeros(len(blocks.sizes)), np.zeros(len(blocks.linking.limits)))
        return bound(prices), prices

    return initial


def _singletons(of: str) -> Callable[[Any], Callable[..., Any]]:
    def merged(blocks: Any) -> Any:
        return blocks, tuple(np.array([at]) for at in range(len(getattr(blocks, of))))

    return lambda _old: merged


def _without(name: str) -> Callable[[Any], Callable[..., Any]]:
    """Return the call of a solver without one of its options."""

    def wrap(old: Any) -> Callable[..., Any]:
        return lambda *given, **named: old(*given, **{**named, name: None})

    return wrap


def _first_patterns(_old: Any) -> Callable[..., Any]:
    """Return a point that is hardly worth anything instead of the one of the ascent."""
    from optimizer.candidates.frontier import FrontierPoint  # noqa: PLC0415

    def first(gpus: Any, _demand: Any, caps: Any) -> Any:
        taken = tuple(patterns[0] for patterns in gpus)
        amounts = np.minimum(np.sum([item.supply for item in taken], axis=0), caps)
        cost, changed, pieces = (
            sum(getattr(item, of) for item in taken) for of in ("cost", "changed", "pieces")
        )
        return FrontierPoint(tuple(amounts.tolist()), cost, changed, pieces, taken)

    return first


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda _old: value


def _option_off(name: str) -> Callable[[Any], Any]:
    return lambda old: {key: value for key, value in old.items() if key != name}


_ADAPTERS = "optimizer.solve.solver_adapters"
_CLASSES = "optimizer.solve.blocks.block_problem"
HEURISTICS: Mapping[str, Replaced] = {
    "greedy start": Replaced("optimizer.solve.greedy", "greedy", _empty),
    "quick dives": Replaced("optimizer.solve.pricing.diving", "dive", _no_columns(True)),
    "dive": Replaced("optimizer.solve.pricing.diving", "dive", _no_columns(False)),
    "first prices": Replaced(
        "optimizer.solve.pricing.lagrangian_relaxation", "initial_prices", _zero_prices
    ),
    "columns made feasible": Replaced(
        "optimizer.solve.blocks.columns",
        "feasible_columns",
        lambda _old: lambda _blocks, columns, _limits: (columns, np.arange(len(columns))),
    ),
    "dominated policies go": Replaced(
        "optimizer.solve.blocks.sites",
        "undominated_policies",
        lambda _old: lambda problem, _tied: frozenset(range(len(problem.policies))),
    ),
    "classes of workloads": Replaced(_CLASSES, "merge_identical_workloads", _singletons("sizes")),
    "classes of sites": Replaced(_CLASSES, "merge_identical_sites", _singletons("copies")),
    "components": Replaced(
        "optimizer.solve.strategy", "independent_components", lambda _old: lambda problem: [problem]
    ),
    "floor prices": Replaced(
        "optimizer.solve.pricing.lagrangian_dual",
        "priority_floor_prices",
        lambda _old: lambda *_given: None,
    ),
    "fixing between tiers": Replaced(
        "optimizer.solve.decomposition", "_intersection", lambda _old: lambda *_given: None
    ),
    "fewer moves": Replaced(
        "optimizer.solve.move_reduction",
        "reduce_moves",
        lambda _old: lambda _problem, decision, _stop: decision,
    ),
    "exchanged clusters": Replaced(
        "optimizer.solve.move_reduction",
        "exchange_equal_clusters",
        lambda _old: lambda _problem, decision, _stop: decision,
    ),
    "start of solvers": Replaced(_ADAPTERS, "maximise", _without("start")),
    "cutoff of masters": Replaced(_ADAPTERS, "maximise", _without("cutoff")),
    "target of masters": Replaced(_ADAPTERS, "maximise", _without("target")),
    "node limits": Replaced(_ADAPTERS, "maximise", _without("nodes")),
    "HiGHS without RENS": Replaced(
        _ADAPTERS, "_HIGHS_OPTIONS", _option_off("mip_heuristic_run_rens")
    ),
    "HiGHS without RINS": Replaced(
        _ADAPTERS, "_HIGHS_OPTIONS", _option_off("mip_heuristic_run_rins")
    ),
    "HiGHS without root reduced costs": Replaced(
        _ADAPTERS, "_HIGHS_OPTIONS", _option_off("mip_heuristic_run_root_reduced_cost")
    ),
    "HiGHS without restarts": Replaced(
        _ADAPTERS, "_HIGHS_OPTIONS", _option_off("mip_allow_restart")
    ),
    "ascent beside the frontier": Replaced(
        "optimizer.candidates.frontier", "_coordinate_ascent", _first_patterns
    ),
    "parallel stages": Replaced(
        "optimizer.transition.stages",
        "in_parallel",
        lambda _old: lambda _moves, stages, _left: list(stages),
    ),
    "counting before solving": Replaced(
        "optimizer.explain.conflicts.feasibility",
        "exceeds_capacity",
        lambda _old: lambda *_given: False,
    ),
}
"""Heuristics that are functions or options; numbers switch off the others (see `TRIED`)."""

_OF_FOLDER = {"ascent beside the frontier": "layouts", "parallel stages": "moves"}


def numbers() -> Iterator[Number]:
    """Yield the numbers of all `tuning` modules, as their source has them."""
    readers = _readers()
    for folder in _FOLDERS:
        module = f"optimizer.{folder}.tuning"
        body = ast.parse((_ROOT / "optimizer" / folder / "tuning.py").read_text()).body
        for statement, after in pairwise(body):
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name, text = statement.targets[0].id, ast.literal_eval(after.value)  # type: ignore[attr-defined]
                value = ast.literal_eval(statement.value)
                unit, _, reason = text.partition(":")
                yield Number(name, module, value, unit, reason, frozenset(readers.get(name, ())))


def _readers() -> Mapping[str, set[tuple[str, int]]]:
    """Return the functions that read each name in capitals: file and first line."""
    found: dict[str, set[tuple[str, int]]] = {}
    for path in sorted((_ROOT / "optimizer").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            for inner in ast.walk(node):
                name = inner.id if isinstance(inner, ast.Name) else getattr(inner, "attr", "")
                if name.isupper():
                    found.setdefault(name, set()).add((str(path), first))
    return found


def tried(number: Number) -> tuple[Any, ...]:
    """Return the values to try for a number: half of it and double, unless stated otherwise."""
    return TRIED.get(number.name) or (_times(number.value, 0.5), _times(number.value, 2))


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_times(item, factor) for item in value)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def run(task: Task) -> Report:
    """Do a task in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(task, theirs))
    process.start()
    theirs.close()
    report: Report = ours.recv()
    process.join()
    return report


def _work(task: Task, answers: "Connection[Report, None]") -> None:
    # Each before the modules that import it: numbers, then what is counted, then heuristics.
    for item in (item for item in task.replaced if item.module.endswith(".tuning")):
        _replace(item)
    counted = _counters()
    for item in (item for item in task.replaced if not item.module.endswith(".tuning")):
        _replace(item)
    from benchmarks.optimizer import tuning_cases  # noqa: PLC0415 - it imports what is replaced

    report = Report()
    start = pickle.loads(task.start) if task.start else tuning_cases.starts()  # noqa: S301 - ours
    report.start = pickle.dumps(start)
    for case in tuning_cases.cases(start):
        if task.families and case.family not in task.families:
            continue
        key, before, begun = (case.family, case.name), list(counted), time.process_time()
        calls = Counter[tuple[str, int]]()
        if task.trace or case.family in _SIDE:
            found, calls = _profiled(case.run)
            report.reached[key] = set(calls)
        else:
            found = case.run()
        cpu = time.process_time() - begun
        work = [now - then for now, then in zip(counted, before, strict=True)]
        report.costs[key] = Cost(cpu, work[0], work[1], calls.total(), found.value, found.bound)
    answers.send(report)


def _replace(item: Replaced) -> None:
    module = importlib.import_module(item.module)
    setattr(module, item.attribute, item.wrap(getattr(module, item.attribute)))


def _counters() -> list[int]:
    """Return a list that counts the pricings of blocks and the simplex iterations of HiGHS."""
    relaxation = importlib.import_module("optimizer.solve.pricing.lagrangian_relaxation")
    counted, price, call = [0, 0], relaxation.price_blocks, pulp.HiGHS.callSolver

    def price_blocks(*given: Any) -> Any:
        counted[0] += 1
        return price(*given)

    def call_solver(self: Any, model: Any) -> Any:
        result = call(self, model)
        counted[1] += max(0, model.solverModel.getInfo().simplex_iteration_count)
        return result

    relaxation.price_blocks, pulp.HiGHS.callSolver = price_blocks, call_solver  # type: ignore[attr-defined]
    return counted


def _profiled(work: Callable[[], Any]) -> tuple[Any, Counter[tuple[str, int]]]:
    """Return the result of a call, and how often it called each function of the optimizer."""
    calls, own = Counter[tuple[str, int]](), str(_ROOT / "optimizer")

    def called(frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(own):
            calls[frame.f_code.co_filename, frame.f_code.co_firstlineno] += 1

    sys.setprofile(called)
    try:
        return work(), calls
    finally:
        sys.setprofile(None)


def _reaching(number: Number, reached: Mapping[Key, set[tuple[str, int]]]) -> frozenset[str]:
    """Return the families whose cases read a number, and that are meant to measure it."""
    families = {key[0] for key, called in reached.items() if called & number.readers}
    if "solve" in number.module and families - set(_SIDE):
        families -= set(_SIDE)
    if number.name not in OF_LARGE:
        families -= {"large"}
    return frozenset(families)


def _compared(base: Costs, others: Costs, family: str) -> str:
    """Return the cell of a family: how its costs compare with those of the base."""
    keys = [key for key in others if key[0] == family]
    if not keys:
        return "-"
    cpu, pricings, iterations, calls = _ratios(base, others, keys)
    if _same(base, others, keys):
        return "same"
    notable = f" x{cpu:.1f}" if max(cpu, 1 / cpu) >= _NOTABLE_CPU else ""
    steps = f"{calls:.2f} calls" if family in _SIDE else f"{pricings:.2f}/{iterations:.2f}"
    return f"{steps}{notable}{_change(base, others, keys)}"


def _same(base: Costs, others: Costs, keys: Sequence[Key]) -> bool:
    """Tell whether searches are the same; a few calls depend on the clock."""
    alike = abs(_ratios(base, others, keys)[3] - 1) < _NOTABLE_CALLS
    return alike and all(others[key].steps == base[key].steps for key in keys)


def _ratios(base: Costs, others: Costs, keys: Sequence[Key]) -> tuple[float, ...]:
    """Return CPU, pricings, iterations and calls as ratios; 1 where there are none before."""
    before = [sum(base[key][at] for key in keys) for at in range(4)]
    after = [sum(others[key][at] for key in keys) for at in range(4)]
    return tuple(new / old if old else 1.0 for old, new in zip(before, after, strict=True))


def _change(base: Costs, others: Costs, keys: Sequence[Key]) -> str:
    found = ""
    for letter, index in (("v", 4), ("b", 5)):
        before = sum(base[key][index] for key in keys)
        after = sum(others[key][index] for key in keys)
        if abs(after - before) >= _NOTABLE * max(1e-9, abs(before)):
            relative = f"{after / before - 1:+.1%}" if before else f"{after - before:+g}"
            found += f" {letter}{relative}"
    return found


def _line(name: str, value: Any, base: Costs, others: Costs, family: str) -> str:
    keys = [key for key in others if key[0] == family]
    ratios = _ratios(base, others, keys)
    same = _same(base, others, keys)
    return (
        f"{name:<32}{value!s:>24} {family:<10}"
        f"{''.join(f'{ratio:>7.2f}' for ratio in ratios)}"
        f"{_change(base, others, keys) or (' same' if same else '')}"
    )


def _rows(name: str, unit: str, now: str, values: Mapping[str, Costs], base: Costs) -> str:
    """Return the row of the table for one number or heuristic."""
    families = dict.fromkeys(key[0] for key in base)
    cells = {
        family: ", ".join(_compared(base, costs, family) for costs in values.values())
        for family in families
    }
    rest = "; ".join(
        f"{family} {cell}"
        for family, cell in cells.items()
        if family not in _MAIN and set(cell.split(", ")) - {"-", "" if family in _SIDE else "same"}
    )
    main = " | ".join(
        cell if set(cell.split(", ")) - {"-"} else "-"
        for cell in (cells.get(family, "-") for family in _MAIN)
    )
    return f"| {name} | {unit} | {now} | {', '.join(values)} | {main} | {rest} |"


def main() -> None:
    """Print a line for each value and family as it is measured, then the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=(), help="numbers and heuristics; all")
    parser.add_argument("--case", nargs="*", default=(), help="families of cases; all")
    given = parser.parse_args()
    asked = frozenset(given.case)
    traced = run(Task(families=asked, trace=True))
    base, spread = _base(Task(families=asked, start=traced.start))
    print(f"| number | unit | value | tried | {' | '.join(_MAIN)} | other families |")
    print("|---" * (len(_MAIN) + 5) + "|")
    for number in numbers():
        families = _reaching(number, traced.reached)
        if given.only and number.name not in given.only:
            continue
        values = {}
        for value in tried(number) if families else ():
            changed = Replaced(number.module, number.name, _always(value))
            values[str(value)] = run(Task((changed,), families, traced.start)).costs
            for family in sorted(families):
                print(_line(number.name, value, base, values[str(value)], family), file=sys.stderr)
        print(_rows(f"`{number.name}`", number.unit, str(number.value), values, base), flush=True)
    for name, changed in HEURISTICS.items():
        if given.only and name not in given.only:
            continue
        side = _OF_FOLDER.get(name, "explained" if "explain" in changed.module else "")
        others = {key[0] for key in base} - {*_SIDE, "large"}
        families = frozenset({side} if side else others) & (asked or others | {side})
        costs = run(Task((changed,), families, traced.start)).costs
        for family in sorted(families):
            print(_line(name, "off", base, costs, family), file=sys.stderr)
        print(_rows(name, "", "on", {"off": costs}, base), flush=True)
    print("\nCPU seconds of a family as it is, and the spread of repeated runs:", spread)


def _base(task: Task) -> tuple[Costs, str]:
    """Return the median cost of each case as it is, and how far repeated runs differ."""
    runs = [run(task).costs for _ in range(_REPEATS)]
    middle = {
        key: cost._replace(cpu=statistics.median(costs[key].cpu for costs in runs))
        for key, cost in runs[0].items()
    }
    told = []
    for family in dict.fromkeys(key[0] for key in middle):
        sums = [sum(cost.cpu for key, cost in costs.items() if key[0] == family) for costs in runs]
        told.append(f"{family} {statistics.median(sums):.2f} (x{max(sums) / min(sums):.2f})")
    return middle, ", ".join(told)


if __name__ == "__main__":
    main()
