"""Story 2 of the proposal: AI workloads share the GPUs of radio sites, and leave before peaks.

The load of the sites is generated with a seed: hours of the day when a site is busy, and noise.
"""

import math
from dataclasses import dataclass
from random import Random

from dsf.cli.output import TextTable
from dsf.scorer_kit.prometheus_replay import RecordedSeries, Recording
from dsf.sim.demo.scorers import prometheus_source
from dsf.sim.stories import story

STEP_SECONDS = 900
STEPS_PER_HOUR = 3600 // STEP_SECONDS
STEPS_PER_DAY = 24 * STEPS_PER_HOUR

IDLE_LOAD = 12.0
"""Percent: signals that a site sends without any user."""

DAY_FACTOR_SPREAD = 0.06
"""Standard deviation of the factor by which days differ."""

NOISE, NOISE_KEPT = 2.5, 0.7
"""Standard deviation of new noise in a quarter hour, in percent, and the part that stays of it."""

LEAST_LOAD, MOST_LOAD = 2.0, 98.0


@dataclass(frozen=True, slots=True)
class BusyHour:
    """A time of day around which a site is busy: `height` in percent, `width` in hours."""

    hour: float
    height: float
    width: float

    def at(self, hour: float) -> float:
        """Return the load that it adds at an hour of the day."""
        apart = abs(hour - self.hour)
        return self.height * math.exp(-0.5 * (min(apart, 24 - apart) / self.width) ** 2)


def ran_load(busy: tuple[BusyHour, ...], days: int, seed: str) -> tuple[float, ...]:
    """Return the mean load of each quarter hour of `days` days, and of the one before them.

    Load = idle load + busy hours of the site, each a bell curve, times the day's factor + noise
    that fades (an AR(1) process). In percent of the GPU that the radio software shares.
    """
    random, noise, factor = Random(seed), 0.0, 1.0  # noqa: S311 - no secret
    loads = []
    for step in range(days * STEPS_PER_DAY + 1):
        if step % STEPS_PER_DAY == 1:
            factor = random.gauss(1.0, DAY_FACTOR_SPREAD)
        noise = NOISE_KEPT * noise + random.gauss(0.0, NOISE)
        hour = (step - 0.5) / STEPS_PER_HOUR % 24
        load = IDLE_LOAD + factor * sum(one.at(hour) for one in busy) + noise
        loads.append(round(min(max(load, LEAST_LOAD), MOST_LOAD), 1))
    return tuple(loads)


LOAD_QUERY = "avg by (device) (ran_gpu_load_percent)"
"""PromQL for the percentage of a site's GPU that the radio software uses."""

DEVICE = "all"
"""A whole GPU, without MIG."""

RADIO_SITES = {
    "office": (BusyHour(10.5, 52, 1.5), BusyHour(14.5, 58, 2.0)),
    "station": (BusyHour(8, 62, 0.9), BusyHour(17.5, 66, 1.1)),
    "homes": (BusyHour(13, 12, 2.0), BusyHour(20.5, 64, 1.7)),
}
"""When each site is busy."""

WORKLOADS = ("chat", "video")

HISTORY_DAYS = 4
"""Days before the day of the story; the window of the forecast has three of them."""

WINDOW_SECONDS = 3 * STEPS_PER_DAY * STEP_SECONDS
HORIZON_SECONDS = STEPS_PER_HOUR * STEP_SECONDS

FIRST_HOUR, LAST_HOUR = 5, 23

BUSY_PERCENT = 60.0
"""RAN load above which AI on the same GPU is in the way."""

MOVE_COST = 8
"""Points of score that a move must gain: less than a forecast errs by would move for nothing."""

SCORE = "ran_load_bound"

LOADS = {site: ran_load(busy, HISTORY_DAYS + 1, site) for site, busy in RADIO_SITES.items()}
"""The load of each quarter hour: `LOADS[site][step]` is the mean of the one that ends then."""


def step_of(hour: int) -> int:
    """Return the step of the recordings that ends when an hour of the story's day begins."""
    return HISTORY_DAYS * STEPS_PER_DAY + hour * STEPS_PER_HOUR


def loads_after(site: str, time: str) -> tuple[float, ...]:
    """Return the load of the quarter hours of the hour that begins at a time of the story."""
    first = step_of(int(time[:2])) + 1
    return LOADS[site][first : first + STEPS_PER_HOUR]


def truth(site: str, time: str) -> float:
    """Return the mean load of the hour that begins at a time of the story."""
    loads = loads_after(site, time)
    return sum(loads) / len(loads)


def bounds(result: story.MomentResult) -> dict[str, int]:
    """Return the bound of each site's load: published is what it leaves of 100."""
    return {site: 100 - value for site, value in result.scores[DEVICE].items()}


def busy_minutes(site: str, time: str) -> int:
    """Return the minutes of an hour during which the RAN load of a site is above BUSY_PERCENT."""
    minutes = STEP_SECONDS // 60
    return sum(minutes for load in loads_after(site, time) if load > BUSY_PERCENT)


def shared_minutes(results: story.Results, *, moved: bool) -> int:
    """Return the minutes of AI workloads on busy sites; with `moved` false, had none moved."""
    first = results[0].running
    return sum(
        busy_minutes(site, result.time)
        for result in results
        for sites in (result.running if moved else first).values()
        for site in sites
    )


def narrate(results: story.Results) -> story.Narration:
    """Tell the newest hour: the bound and the truth of each site, moves and their steps."""
    now = results[-1]
    shown = "   ".join(
        f"{site} {bound:2d}{'!' if bound > BUSY_PERCENT else ' '} {truth(site, now.time):2.0f}"
        for site, bound in bounds(now).items()
    )
    where = ", ".join(f"{name} on {'+'.join(sites)}" for name, sites in now.running.items())
    yield f"{now.time}   {shown}   {where}"
    lines = [_move(now, *one) for one in story.moves(results)]
    if lines:
        yield from (f"        {line}" for line in (*lines, *story.rollout_sentences(now)))


def _move(result: story.MomentResult, workload: str, source: str, target: str) -> str:
    bound = bounds(result)
    return (
        f"{workload} moves from {source} to {target}: in the next hour the RAN load may reach"
        f" {bound[source]}% in {source}, {bound[target]}% in {target}"
    )


def conclude(results: story.Results) -> story.Narration:
    """Tell how good the forecast was, and what the moves were worth."""
    judged = [
        (bound, truth(site, result.time))
        for result in results
        for site, bound in bounds(result).items()
    ]
    held = sum(came <= bound for bound, came in judged)
    yield f"the load kept its bound in {held} of {len(judged)} forecasts"
    yield TextTable(
        ("AI workloads", "moves", f"minutes on a site with RAN load above {BUSY_PERCENT:g}%"),
        [
            (
                "moved by the forecast",
                str(sum(len(story.moves(results[: n + 1])) for n in range(len(results)))),
                str(shared_minutes(results, moved=True)),
            ),
            ("left where they began", "0", str(shared_minutes(results, moved=False))),
        ],
    )


AIRAN = story.Story(
    title="AI-RAN: AI workloads leave a radio site before its peak, and come back",
    opening=(
        "Each site has a GPU. Its radio software (RAN) comes first; one AI workload fits as well.",
        "The sample prediction forecasts each site's RAN load of the next hour, from three days.",
        "The score is a bound that the load exceeds one time in ten; published is 100 minus it.",
        f"A PlacementOptimization keeps them placed: a move must gain over {MOVE_COST} points.",
        "What it changes is rolled out step by step: start on the new site, then stop on the old.",
        "The load is generated with a seed: an office, a railway station, and homes.",
        "A line has the bound and the truth of each site's next hour in percent.",
        f"An exclamation mark: the site is expected to be busy, above {BUSY_PERCENT:g}%.",
        "",
    ),
    cluster_labels={site: {"site": site} for site in RADIO_SITES},
    recordings={
        site: Recording(STEP_SECONDS, {LOAD_QUERY: (RecordedSeries({"device": DEVICE}, loads),)})
        for site, loads in LOADS.items()
    },
    scorer="prediction.combination",
    options=("--horizon", str(HORIZON_SECONDS), "--quantile", "0.9"),
    dynamic_scorer={
        "description": "Bound of the RAN load in the next hour",
        "displayName": "RAN load bound",
        "unit": "%",
        "direction": "LowerIsBetter",
        "range": {"min": 0},
        "source": prometheus_source(LOAD_QUERY, window=WINDOW_SECONDS, step=STEP_SECONDS),
        "scoring": {
            "path": "/scoring",
            "params": {"name": SCORE, "interval": story.SCORING_INTERVAL},
            "normalize": {"min": 0, "max": 100, "invert": True},
        },
        "scoreDimensionFormat": "${device}",
    },
    score_name=SCORE,
    workloads=WORKLOADS,
    request={
        "clusters": [{"name": site, "allocatable": [story.gpus(1)]} for site in RADIO_SITES],
        "targetWorkloads": [{"name": name, "moveCost": MOVE_COST} for name in WORKLOADS],
        "preference": {"addonPlacementScore": SCORE, "scoreDimensionFormat": "${device}"},
    },
    moments=tuple(
        story.Moment(f"{hour:02d}:00", step_of(hour)) for hour in range(FIRST_HOUR, LAST_HOUR + 1)
    ),
    narrate=narrate,
    conclude=conclude,
)
