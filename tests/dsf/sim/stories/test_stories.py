"""The stories: a run has the recorded results, and their page prints what they narrate.

After a change of a story, record what `dsf demo --story NAME --json` prints, paste what the story
prints into its page, and run `make story-pictures`.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from dsf.sim.cli import demo
from dsf.sim.demo.output import TextOutput
from dsf.sim.stories import airan, inference
from dsf.sim.stories.airan import LEAST_LOAD, MOST_LOAD, STEPS_PER_DAY, BusyHour, ran_load
from dsf.sim.stories.inference import changes
from dsf.sim.stories.story import MomentResult, RolloutStep, moves, rollout_sentences
from dsf.sim.stories.tell import CONCLUSION, STORIES, print_narration
from sample_scorers.ai_workload.signals import EFFICIENCY_QUERIES
from tests.repository import ROOT

PAGE = ROOT / "docs/tutorials/stories.md"
RESULTS = TypeAdapter(list[MomentResult])

for_each_story = pytest.mark.parametrize("name", STORIES)


def recorded(name: str) -> Path:
    """Return the file with what `dsf demo --story NAME --json` printed."""
    return Path(__file__).parent / "results" / f"{name}.json"


def results(name: str) -> list[MomentResult]:
    return RESULTS.validate_json(recorded(name).read_bytes())


@pytest.mark.long
@for_each_story
def test_a_run_has_the_recorded_results(name: str) -> None:
    command = [sys.executable, "-m", "dsf", "demo", "--story", name, "--json", "--port", "0"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == json.loads(recorded(name).read_text())


@for_each_story
def test_the_page_shows_what_a_run_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    story, output = STORIES[name], TextOutput()
    for title in ("clusters", "components"):
        output.step(title)
    capsys.readouterr()
    output.step(story.title)
    print_narration(output, story.opening)
    so_far = list[MomentResult]()
    for result in results(name):
        so_far.append(result)
        print_narration(output, story.narrate(so_far))
    output.step(CONCLUSION)
    print_narration(output, story.conclude(so_far))
    printed = capsys.readouterr().out.strip()
    shown = re.findall(
        rf"dsf demo --story {name}\n```\n.*?```text\n(.*?)```", PAGE.read_text(), re.DOTALL
    )
    assert [one.strip() for one in shown] == [printed]


def test_the_command_knows_every_story() -> None:
    (option,) = (one for one in demo.params if one.name == "story")
    assert getattr(option.type, "choices", ()) == tuple(STORIES)


@for_each_story
def test_every_moment_is_recorded(name: str) -> None:
    story = STORIES[name]
    assert story.recordings.keys() == story.cluster_labels.keys()
    for recording in story.recordings.values():
        for series in recording.queries.values():
            assert all(moment.step < len(one.values) for moment in story.moments for one in series)


def test_the_inference_story_asks_what_its_scorer_asks() -> None:
    named = (
        f'label_replace({query}, "signal", "{name}", "", "")'
        for name, query in inference.QUERIES.items()
    )
    assert ";".join(named) == EFFICIENCY_QUERIES


def test_scores_are_the_tokens_that_money_buys() -> None:
    for result in results("inference"):
        for cluster, one in inference.DAY[result.time].items():
            for app in inference.APPS:
                expected = 10 * one.million_tokens_for_money(app)
                assert result.scores[f"{app};all"][cluster] == int(expected)


def test_each_change_of_a_figure_is_told() -> None:
    north = inference.NORTH
    dearer = replace(north, gpu_cost=2.0, energy_price=0.3)
    assert list(changes({"north": north}, {"north": dearer})) == [
        "in north a kWh costs 0.30 instead of 0.15",
        "in north a GPU hour costs 2.00 instead of 1.20",
    ]


def test_bounds_hold_about_as_often_as_they_say() -> None:
    kept = [
        airan.truth(site, result.time) <= bound
        for result in results("airan")
        for site, bound in airan.bounds(result).items()
    ]
    assert 0.85 <= sum(kept) / len(kept) <= 1


def test_moving_by_the_forecast_spares_most_of_the_busy_minutes() -> None:
    found = results("airan")
    assert (
        0 < 10 * airan.shared_minutes(found, moved=True) < airan.shared_minutes(found, moved=False)
    )


def test_a_workload_that_stops_before_it_starts_is_told() -> None:
    (result, *_) = results("airan")
    step = RolloutStep(start=(("chat", "homes"),), stop=(("chat", "office"),))
    told = rollout_sentences(replace(result, steps=(step,), fewest={"chat": 0, "video": 1}))
    assert told == [
        "step 1: start chat on homes, stop chat on office",
        "meanwhile chat did not run",
    ]


def test_the_first_plan_moves_nothing() -> None:
    assert moves(results("airan")[:1]) == []


def test_the_load_is_the_same_each_time_and_a_percentage() -> None:
    busy = (BusyHour(23.5, 200, 1.0),)
    loads = ran_load(busy, 2, "a")
    assert loads == ran_load(busy, 2, "a") != ran_load(busy, 2, "b")
    assert len(loads) == 2 * STEPS_PER_DAY + 1
    assert min(loads) >= LEAST_LOAD
    assert max(loads) == MOST_LOAD
    assert busy[0].at(0.5) == busy[0].at(22.5)
