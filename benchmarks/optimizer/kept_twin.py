"""What it is worth to keep a fleet placed, on the twin: three tables of `docs/how-to/simulate.md`.

python -m benchmarks.optimizer.kept_twin {shown,defaults,forecasts} [--seeds 3] [--only noise]

shown: what a PlacementOptimization with defaults promises, beside a loop that posts each minute, on
the scenarios of docs/examples/simulate. defaults: one setting of hysteresis after the other, on
scenarios and seeds that none was chosen on. forecasts: a load that comes and goes, placed by what
is free now or by forecasts of it.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from dsf.api.untrusted_text import counted
from dsf.cli.output import TextTable
from dsf.scorer_kit.recordings import RECORDINGS
from optimizer.twin.engine import play
from optimizer.twin.evaluation.figures import SimulatedRow, SimulationResult
from optimizer.twin.evaluation.report import Run, row, simulation, table
from optimizer.twin.evaluation.scenario_file import read_scenario
from optimizer.twin.evaluation.sweep import (
    Mapper,
    Sweep,
    Task,
    hindsight_of,
    on_this_machine,
    parse_sweep,
    run_all,
    with_setting,
)
from optimizer.twin.scenario import Scenario

EXAMPLES = Path(__file__).parents[2] / "docs/examples/simulate"

FRESH_SEED = 1001
"""Seeds from here on: the defaults were chosen on the first ones."""

SECONDS_AFTER_GRACE = 60.0
MOST_REGRET = 2.0


class Shown(NamedTuple):
    """A promise, what came of it with the controller and with the loop, and whether it is kept."""

    promise: str
    kept: str
    naive: str
    holds: bool


def shown(mapped: Mapper) -> Iterator[Shown]:
    """Yield each promise, played for a day; a forecast for two."""
    kept, naive = _beside(_example("noise"), mapped)
    moves = _moves(kept), _moves(naive)
    yield Shown("noise of 5 points for 24 h: no move", *moves, not kept.played.moves)
    yield from _shift_is_followed(mapped)
    yield _lost_cluster_is_left(mapped)
    sweep = parse_sweep("preference.addonPlacementScore=free-now,free-ahead")
    (now,), (ahead,), (naive,) = run_all(_example("diurnal"), [sweep], [0], mapped)
    without, value, loop = (row([run]).value.mean for run in (now, ahead, naive))
    figures = f"{value:.2f} with, {without:.2f} without", f"{loop:.2f} without"
    yield Shown("a load of the day: worth more with forecasts", *figures, value > without)


def _shift_is_followed(mapped: Mapper) -> Iterator[Shown]:
    """Two sites are left, the other one as soon as the least time between changes allows."""
    shift = _example("shift")
    kept, naive = _beside(shift, mapped)
    (change,) = (one.at for one in shift.scores[0].signals if one.type == "Shift")
    least = shift.optimization["hysteresis"]["stabilizationWindowSeconds"] + shift.scoring_interval
    times = [change, *(move.at for move in kept.played.moves)]
    waits = [late - early for early, late in pairwise(times)]
    once = sorted(move.source for move in kept.played.moves) == ["site-1", "site-2"]
    minutes = ", ".join(f"{wait / 60:.0f}" for wait in waits)
    yield Shown(
        f"two sites lose 20 points for good: one move each, {least / 60:.0f} min apart at most",
        f"{_moves(kept)}, after {minutes} min",
        _moves(naive),
        once and all(0 < wait <= least for wait in waits),
    )
    budget = {**shift.optimization, "budgets": [{"moves": 2, "per": "Day"}]}
    within = shift.model_copy(update={"optimization": budget})
    best = hindsight_of(within, shift.seed)
    runs = Run({}, play(within), best), Run({}, naive.played, best)
    regrets = [row([run]).regret_within_budgets_percent for run in runs]
    lost, without = (one.mean if one else nan for one in regrets)
    yield Shown(
        f"the same with two moves a day: regret in that budget below {MOST_REGRET:.0f}%",
        f"{lost:.2f}%, {_moves(runs[0])}",
        f"{without:.2f}%, {_moves(naive)}",
        lost < MOST_REGRET,
    )


def _lost_cluster_is_left(mapped: Mapper) -> Shown:
    runs = _beside(_example("cluster-lost"), mapped)
    rows = [row([run]) for run in runs]
    seconds = [one.recovery_seconds.mean if one.recovery_seconds else nan for one in rows]
    return Shown(
        "a lost cluster: all placed within a minute after its grace",
        f"{seconds[0]:.0f} s",
        f"{seconds[1]:.0f} s, {_moves(runs[1])}",
        seconds[0] <= SECONDS_AFTER_GRACE and not rows[0].not_recovered,
    )


def _example(name: str) -> Scenario:
    return read_scenario(EXAMPLES / f"{name}.yaml")


def _beside(scenario: Scenario, mapped: Mapper) -> tuple[Run, Run]:
    (kept,), (naive,) = run_all(scenario, [], [scenario.seed], mapped)
    return kept, naive


def _moves(run: Run) -> str:
    return counted(sum(move.reason == "BetterScore" for move in run.played.moves), "move")


SETTINGS = (
    *("gain=0", "gain=20", "hysteresis=5"),
    *("rounds=3", "rounds=20"),
    *("variation=0", "variation=2", "variation=3", "variation=6"),
    "trigger=0",
)
"""Each differs from the defaults in one field; `rounds` is the window, by default ten of them."""


def defaults(scenario: Scenario, seeds: Sequence[int], mapped: Mapper) -> dict[str, str]:
    """Return regret in percent and moves for a better score on a scenario, by setting."""
    sweeps = {text: _sweep(text, scenario.scoring_interval) for text in SETTINGS}
    named = {"defaults": scenario} | {
        text: with_setting(scenario, {sweep: sweep.values[0]}) for text, sweep in sweeps.items()
    }
    found = _compared({text: [one] * len(seeds) for text, one in named.items()}, seeds, mapped)
    return {one.setting["setting"]: _figures(one) for one in found.rows}


def _figures(one: SimulatedRow) -> str:
    regret = one.regret_percent
    if regret is None:
        return "-"
    within = "" if regret.half_interval is None else f" ±{regret.half_interval:.1f}"
    return f"{regret.mean:.1f}{within}, {one.moves_for_score.mean:.1f}"


def _compared(
    named: Mapping[str, Sequence[Scenario]], seeds: Sequence[int], mapped: Mapper
) -> SimulationResult:
    """Return the figures of scenarios, each of which is one for each seed, with the same truth."""
    first = next(iter(named.values()))
    tasks = [Task(*one) for of in named.values() for one in zip(of, seeds, strict=True)]
    known = [Task(*one, hindsight=True) for one in zip(first, seeds, strict=True)]
    found = list[Any](mapped([*tasks, *known]))
    *played, best = (found[at : at + len(seeds)] for at in range(0, len(found), len(seeds)))
    groups = [
        [Run({"setting": text}, *one) for one in zip(runs, best, strict=True)]
        for text, runs in zip(named, played, strict=True)
    ]
    return simulation(groups, first[0], ())


def _sweep(text: str, interval: int) -> Sweep:
    name, _, value = text.partition("=")
    in_seconds = f"stabilization={int(value) * interval}"
    return parse_sweep(in_seconds if name == "rounds" else text)


_FLEET: dict[str, Any] = {
    "duration": "12h",
    "clusters": [{"name": "site", "count": 4, "allocatable": "gpu/all=1"}],
    "workloads": [{"name": "chat"}, {"name": "video"}],
    # Ten rounds, as the default is of agents with an interval of 30 s.
    "optimization": {
        "preference": {"addonPlacementScore": "fit"},
        "hysteresis": {"stabilizationWindowSeconds": 3000},
    },
}


def _fleet(description: str, *signals: dict[str, Any], **fields: Any) -> Scenario:
    scores = [{"name": "fit", "signals": list(signals)}]
    return Scenario.model_validate(
        {**_FLEET, "description": description, "scores": scores, **fields}
    )


def fresh_scenarios() -> Iterator[Scenario]:
    """Yield scenarios with noise and shapes that the defaults were not chosen on."""
    base = {"type": "Constant", "least": 50, "most": 60}
    noise = {"type": "Noise", "size": 4, "kept": 0.5}
    yield _fleet(
        "noise",
        base,
        {"type": "Noise", "size": 8, "workloads": ["chat"]},
        {"type": "Noise", "size": 4, "kept": 0.9, "workloads": ["video"]},
        {"type": "Noise", "size": 40, "shape": "Spikes", "one_in": 50, "workloads": ["train"]},
        workloads=[{"name": "chat"}, {"name": "video"}, {"name": "train"}],
    )
    yield _fleet(
        "shifts",
        base,
        noise,
        {"type": "Shift", "at": "3h", "by": -20, "clusters": ["site-1"]},
        {"type": "Shift", "at": "5h", "until": "8h", "by": -20, "clusters": ["site-2"]},
    )
    lost = [{"type": "ClusterLost", "at": "3h", "until": "7h", "clusters": ["site-1"]}]
    yield _fleet("lost cluster", base, noise, failures=lost)
    programs = ["kube-apiserver-0", "compiler-0", "python-0", "etcd-0"]
    clusters = [f"cluster{number}" for number in range(1, 5)]
    parts = [f"part {number}" for number in range(1, 5)]
    yield _recorded("build-machine", programs, 30)
    yield _recorded("gpu-inference", clusters, 300)
    yield _recorded("aws-load-balancer", parts, 300)


def _recorded(name: str, series: Sequence[str], interval: int) -> Scenario:
    """Return what a recorded load leaves free: a series is a cluster, and one series is cut."""
    content = json.loads(RECORDINGS[name].read_text())
    step, (query,) = content["step"], content["queries"]
    loads = {next(reversed(one["metric"].values())): one["values"] for one in query["series"]}
    if len(loads) == 1:
        (whole,) = loads.values()
        part = len(whole) // len(series)
        loads = {named: whole[at * part : (at + 1) * part] for at, named in enumerate(series)}
    most = max(value or 0 for named in series for value in loads[named])
    recorded = [
        {
            "cluster": f"site-{at}",
            "times": [step * number for number, value in points],
            "values": [100 - 100 * value / most for _, value in points],
        }
        for at, named in enumerate(series, 1)
        for points in [[item for item in enumerate(loads[named]) if item[1] is not None]]
    ]
    return _fleet(
        name,
        {"type": "Recorded", "series": recorded},
        duration=step * min(len(loads[named]) for named in series),
        scoringInterval=interval,
        optimization={
            "preference": {"addonPlacementScore": "fit"},
            "hysteresis": {"stabilizationWindowSeconds": 10 * interval},
        },
    )


PLACED_BY: Mapping[str, Sequence[str]] = {
    "now": ["now"],
    "ahead 1h": ["ahead-1h"],
    "ahead 2h": ["ahead-2h"],
    "ahead 4h": ["ahead-4h"],
    "1h, 2h, 4h": ["ahead-1h", "ahead-2h", "ahead-4h"],
}
"""Scores whose mean counts, by what they are called in the table."""


def forecasts(seed: int, placed_by: Sequence[str]) -> Scenario:
    """Return a day of sites whose busy hours are drawn, placed by scores of some horizons."""
    draw = random.Random(seed)  # noqa: S311 - a scenario, no key
    busy = [
        {
            "type": "Diurnal",
            "height": -draw.uniform(20, 40),
            "peak": draw.uniform(0, 86_400),
            "clusters": [f"site-{number}"],
        }
        for number in range(1, 5)
    ]
    signals = [{"type": "Constant", "least": 60}, *busy, {"type": "Noise", "size": 3}]
    horizons = {f"ahead-{horizon}": horizon for horizon in ("1h", "2h", "4h")}
    scores = [
        {"name": name, "signals": signals, "forecast": {"horizon": horizon, "deviation": 3}}
        for name, horizon in horizons.items()
    ]
    weight = 1 / len(placed_by)
    preference, *others = ({"addonPlacementScore": one, "weight": weight} for one in placed_by)
    wanted = {**_FLEET["optimization"], "preference": preference, "objectives": others}
    return Scenario.model_validate(
        {
            **_FLEET,
            "description": "a load of the day, with busy hours that differ by site",
            "duration": "24h",
            "scores": [{"name": "now", "signals": signals}, *scores],
            "optimization": wanted,
        }
    )


def main() -> None:
    """Print what is asked for; end with 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["shown", "defaults", "forecasts"])
    parser.add_argument("--only", default="", help="Scenarios whose name has this text.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int)
    asked = parser.parse_args()
    mapped = on_this_machine(asked.processes)
    seeds = range(FRESH_SEED, FRESH_SEED + asked.seeds)
    if asked.what == "shown":
        found = list(shown(mapped))
        lines = [[*one[:3], "yes" if one.holds else "NO"] for one in found]
        print(TextTable(["promise", "kept", "posts each minute", "holds"], lines))
        sys.exit(not all(one.holds for one in found))
    if asked.what == "defaults":
        columns = {
            one.description: defaults(
                one, seeds[:1] if one.description in RECORDINGS else seeds, mapped
            )
            for one in fresh_scenarios()
            if asked.only in one.description
        }
        lines = [[one, *(of[one] for of in columns.values())] for one in ("defaults", *SETTINGS)]
        print(TextTable(["setting", *columns], lines))
        return
    placed = {text: [forecasts(seed, names) for seed in seeds] for text, names in PLACED_BY.items()}
    naive = [one.model_copy(update={"controller": "Naive"}) for one in placed["now"]]
    print(table(_compared({**placed, "now, by a loop": naive}, seeds, mapped)))


if __name__ == "__main__":
    main()
