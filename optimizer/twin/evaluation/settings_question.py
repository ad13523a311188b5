"""What other settings would have been worth over what was recorded: for callers who wait."""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from dsf.api.times import shown_duration
from dsf.cli.prometheus import PrometheusRefused
from dsf.kube.clock import utc_now
from optimizer.solve.supervised_process import SupervisedResult, limit_memory, run_supervised
from optimizer.twin.engine import play
from optimizer.twin.evaluation.figures import SimulationResult
from optimizer.twin.evaluation.recorded_hub import STEP_SECONDS, HubRecord, past_scores
from optimizer.twin.evaluation.recording import recording_of
from optimizer.twin.evaluation.report import Run, simulation
from optimizer.twin.evaluation.sweep import hindsight_of, parse_sweep, with_setting
from optimizer.twin.scenario import Scenario

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

SECONDS = 90.0
MEMORY_MIB = 4_096
MOST_ROUNDS = 6_000
"""Rounds of agents that are played within the seconds, twice: 20 clusters for a day."""

STEPS, MOST_STEPS = (STEP_SECONDS, 600.0, 900.0, 1800.0), 400
"""Seconds between two samples: as few as leave so many samples of each score at most."""


class SettingsQuestion(NamedTuple):
    """What is on record, the Prometheus and the hours that are asked, and settings as of a sweep.

    Settings are tried together; without any, only what ran and hindsight's best are told.
    """

    record: HubRecord
    prometheus_url: str
    hours: float
    settings: Mapping[str, str]


async def simulated(question: SettingsQuestion) -> SimulationResult | str:
    """Return the spec's settings beside the others, what was recorded, and the best in hindsight.

    All of it, the reading of scores too, is done in a process of its own, which yields to others
    and is killed if the caller is cancelled. A sentence says why there is no answer.
    """
    ended: SupervisedResult[SimulationResult | str] = await run_supervised(
        _answer, question, seconds=SECONDS
    )
    if ended.finished and ended.last:
        return ended.last
    why = f"its process {ended.failure.message}" if ended.failure else f"it took {SECONDS:.0f} s"
    return f"not simulated, because {why}: ask for fewer hours"


def _answer(
    question: SettingsQuestion, answers: "Connection[SimulationResult | str | None, None]"
) -> None:
    if hasattr(os, "nice"):  # Windows has none
        os.nice(10)
    limit_memory(MEMORY_MIB)
    try:
        answers.send(_simulated(question))
    except (PrometheusRefused, ValueError) as error:
        answers.send(str(error))


def _simulated(question: SettingsQuestion) -> SimulationResult:
    seconds, now = question.hours * 3600, utc_now().timestamp()
    step = next((one for one in STEPS if seconds / one <= MOST_STEPS), STEPS[-1])
    url = question.prometheus_url
    series = asyncio.run(past_scores(url, until=now, seconds=seconds, step=step))
    scenario, recorded, notes = recording_of(*question.record, series)
    if scenario.duration < seconds - 2 * step:
        known = shown_duration(scenario.duration)
        notes = (*notes, f"{known} are recorded of the {question.hours:g}h that were asked")
    if step > STEP_SECONDS:
        notes = (*notes, f"agents publish every {shown_duration(step)} in what is played")
    changed = _changed(scenario, question.settings)
    clusters = len(scenario.cluster_names)
    rounds = clusters * scenario.duration / scenario.scoring_interval
    if rounds > MOST_ROUNDS:
        most = question.hours * MOST_ROUNDS / rounds
        raise ValueError(
            f"{clusters} clusters are simulated for at most {most:.1f} hours here: ask for fewer"
            " hours, or have a person run dsf simulate --record"
        )
    best = hindsight_of(scenario, scenario.seed)
    groups, exists = list[list[Run]](), question.record.spec is not None
    if question.settings or exists or not recorded:
        groups.append([Run({}, play(scenario), best)])
        if not exists:
            none = "no PlacementOptimization exists: its rows are played with the defaults of one"
            notes = (*notes, none)
    if question.settings:
        groups.append([Run(question.settings, play(changed), best)])
    if recorded:
        groups.append([Run({}, recorded, best)])
    return simulation(groups, scenario, notes)


def _changed(scenario: Scenario, settings: Mapping[str, str]) -> Scenario:
    tried = {parse_sweep(f"{name}={text}"): text for name, text in settings.items()}
    if any(len(sweep.values) > 1 for sweep in tried):
        raise ValueError("settings: one value of each field")
    return with_setting(scenario, tried)
