"""Runs of a scenario with several settings and seeds, on the cores of this machine or of others.

Results come in the order of settings and seeds, whoever ends first.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from copy import deepcopy
from itertools import product
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, NamedTuple

import yaml

from dsf.api.untrusted_text import listed, quoted
from dsf.kube.redaction import redact
from dsf.kube.yaml_documents import parsed_yaml
from optimizer.twin.engine import play
from optimizer.twin.evaluation.hindsight import (
    best_moments,
    best_within_budgets,
    moments_of,
    period_budgets,
)
from optimizer.twin.evaluation.report import Hindsight, Run
from optimizer.twin.fleet_objects import spec_of
from optimizer.twin.played import Played
from optimizer.twin.scenario import Scenario

SHORT_NAMES = {
    "gain": "hysteresis.leastGain",
    "hysteresis": "hysteresis.leastGainPercent",
    "stabilization": "hysteresis.stabilizationWindowSeconds",
    "variation": "hysteresis.variationMultiple",
    "trigger": "triggers.scoreChange",
}
"""Names of a sweep for fields of a PlacementOptimization's spec."""

MOST_RUNS = 10_000
DASK_SECONDS = 15.0
"""Until a Dask scheduler, and the first of its workers, must have answered."""


class SweepFailed(Exception):
    """Runs could not be made; the message says why, and what to do."""


class Sweep(NamedTuple):
    """A field of the spec by its path, and the values to try, as text."""

    name: str
    path: tuple[str, ...]
    values: tuple[str, ...]


class Task(NamedTuple):
    """A scenario to play with a seed, or hindsight of it to compute."""

    scenario: Scenario
    seed: int
    hindsight: bool = False


Mapper = Callable[[Sequence[Task]], Iterator[Played | Hindsight]]
"""Runs tasks somewhere, and yields the results in their order."""


def parse_sweep(text: str) -> Sweep:
    """Return the sweep of a text such as `hysteresis=1,2,5`; raises ValueError."""
    name, _, values = text.partition("=")
    given = tuple(value.strip() for value in values.split(","))
    if not name or not all(given):
        raise ValueError(f"{quoted(text, 60)} does not have the form hysteresis=1,2,5")
    if len(set(given)) < len(given):
        raise ValueError(f"{quoted(text, 60)} has a value twice")
    return Sweep(name, tuple(SHORT_NAMES.get(name, name).split(".")), given)


def with_setting(scenario: Scenario, setting: Mapping[Sweep, str]) -> Scenario:
    """Return a scenario with fields of its optimization changed; raises ValueError for no such."""
    spec = deepcopy(scenario.optimization)
    for sweep, text in setting.items():
        _set(spec, sweep, _value(text))
    changed = scenario.model_copy(update={"optimization": spec})
    try:
        spec_of(changed)
    except ValueError as error:
        known = f"; short names of a sweep: {listed(SHORT_NAMES)}" if setting else ""
        raise ValueError(f"{error}{known}") from error
    return changed


def _value(text: str) -> Any:
    try:
        return parsed_yaml(text)[0]
    except (yaml.YAMLError, IndexError) as error:
        raise ValueError(f"{quoted(text, 60)} is no value in YAML") from error


def _set(spec: dict[str, Any], sweep: Sweep, value: Any) -> None:
    """Set a field; a number in the path is the place of a list's item."""
    inner: Any = spec
    *way, last = sweep.path
    try:
        for step in way:
            inner = inner[int(step)] if isinstance(inner, list) else inner.setdefault(step, {})
        inner[int(last) if isinstance(inner, list) else last] = value
    except (IndexError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{sweep.name}: the optimization has no {'.'.join(sweep.path)}") from error


def run_task(task: Task) -> Played | Hindsight:
    """Do a task; called in other processes."""
    if task.hindsight:
        return hindsight_of(task.scenario, task.seed)
    return play(task.scenario, task.seed)


def hindsight_of(scenario: Scenario, seed: int) -> Hindsight:
    """Return what the best placements of a scenario would have been worth; raises ValueError."""
    step, moments = moments_of(scenario, seed)
    replicas = sum(tenure.group.replicas or 1 for tenure in scenario.tenures())
    budgets = period_budgets(spec_of(scenario), replicas)
    within = best_within_budgets(moments, budgets) if budgets else None
    return Hindsight(step_seconds=step, moments=best_moments(moments), within_budgets=within)


def run_all(
    scenario: Scenario,
    sweeps: Sequence[Sweep],
    seeds: Sequence[int],
    mapped: Mapper,
    *,
    hindsight: bool = True,
    told: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[list[Run]]:
    """Return the runs of each setting by the scenario's controller, and those of the naive loop.

    Raises ValueError if a setting is none. `told`: how many tasks are done, and of how many.
    """
    products = product(*(sweep.values for sweep in sweeps))
    settings = [dict(zip(sweeps, values, strict=True)) for values in products]
    changed = [with_setting(scenario, setting) for setting in settings]
    if scenario.controller != "Naive":
        settings.append({})
        changed.append(scenario.model_copy(update={"controller": "Naive"}))
    if len(seeds) > 1:
        import scipy  # noqa: F401, PLC0415 - intervals need it: better said now than after the runs
    tasks = [Task(one, seed) for one in changed for seed in seeds]
    if len(tasks) > MOST_RUNS:
        raise ValueError(f"{len(tasks):,} runs; at most {MOST_RUNS:,}: fewer values or seeds")
    known = [Task(scenario, seed, hindsight=True) for seed in seeds] if hindsight else []
    found = list[Any]()
    for result in mapped([*tasks, *known]):
        found.append(result)
        told(len(found), len(tasks) + len(known))
    best = found[len(tasks) :] or [None] * len(seeds)
    return [
        [
            Run({one.name: text for one, text in setting.items()}, played, best[at])
            for at, played in enumerate(found[first : first + len(seeds)])
        ]
        for setting, first in zip(settings, range(0, len(tasks), len(seeds)), strict=True)
    ]


def on_this_machine(processes: int | None = None) -> Mapper:
    """Return what runs tasks in processes, by default one for each core that this one may use."""
    most = processes or len(os.sched_getaffinity(0))

    def mapped(tasks: Sequence[Task]) -> Iterator[Played | Hindsight]:
        if min(most, len(tasks)) == 1:
            yield from map(run_task, tasks)
            return
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__])
        with ProcessPoolExecutor(min(most, len(tasks)), context, _exit_with_parent) as pool:
            try:
                yield from pool.map(run_task, tasks)
            except BrokenProcessPool as error:
                raise SweepFailed(
                    "a process that simulates died, perhaps for want of memory: try --processes 1"
                ) from error
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    return mapped


def _exit_with_parent() -> None:
    """Let this process end with the one that started it: a worker of a killed pool waits on."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def on_dask(address: str) -> Iterator[Mapper]:
    """Yield what runs tasks on a Dask cluster; raises SweepFailed, ModuleNotFoundError.

    Its scheduler and workers need this version of the product. They can make this process run code.
    """
    from distributed import Client, KilledWorker  # noqa: PLC0415 - an extra

    where = redact(address)

    def mapped(tasks: Sequence[Task]) -> Iterator[Played | Hindsight]:
        try:
            client.wait_for_workers(1, timeout=DASK_SECONDS)
            for future in client.map(run_task, tasks, pure=False):
                yield future.result()
        except TimeoutError as error:
            raise SweepFailed(f"the Dask cluster at {where} has no worker: start some") from error
        except (ImportError, KilledWorker, OSError) as error:
            raise SweepFailed(
                f"the Dask cluster at {where} could not simulate ({error}): its workers need the"
                " same version of dynamic-scoring-framework[simulate], and memory"
            ) from error

    try:
        client = Client(address, timeout=DASK_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise SweepFailed(
            f"no Dask scheduler answers at {where}: name it as tcp://HOST:PORT"
        ) from error
    with client:
        yield mapped
