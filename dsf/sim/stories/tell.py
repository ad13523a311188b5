"""Tells a story: runs it on real components, moment by moment, and prints its narration.

The recordings stand still at each moment until agents have published scores of it. Everything else
runs as it always does: agents, controller, optimizer and scorer are processes.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from dsf.api.conditions import is_true
from dsf.api.names import REPLICA_SET_LABEL, score_object_name
from dsf.api.scoring.placement_scores import ByDimension, by_score
from dsf.cli.output import TextTable
from dsf.kube import kinds
from dsf.kube.changes import Create
from dsf.kube.clock import utc_now
from dsf.kube.port import Kube, Object, find_object
from dsf.scorer_kit.prometheus_replay import PausedReplay
from dsf.sim.demo.clusters import WORKLOAD_NAMESPACE, apply_or_fail
from dsf.sim.demo.output import DemoOutput
from dsf.sim.demo.processes import DemoError
from dsf.sim.demo.running_demo import (
    POLL_SECONDS,
    RunningDemo,
    get,
    get_text,
    post,
    refuse_writes,
    running_demo,
    stay,
    until,
    what_next,
)
from dsf.sim.demo.scorers import DemoSetup
from dsf.sim.stories.airan import AIRAN
from dsf.sim.stories.inference import INFERENCE
from dsf.sim.stories.story import (
    OPTIMIZATION,
    Moment,
    MomentResult,
    Narration,
    PlacedWorkload,
    RolloutStep,
    Story,
    story_workload,
)

STORIES: Mapping[str, Story] = {"inference": INFERENCE, "airan": AIRAN}

CONCLUSION = "What it came to"
"""Title of the last step of a story."""

IN_PROGRESS, COMPLETE = "Progressing", "Complete"
LOOKED_AT = "dynamic_scoring_optimizer_optimizations_looked_at_timestamp_seconds"


async def tell(
    name: str, output: DemoOutput, work_dir: Path, *, port: int, keep: bool, allow_writes: bool
) -> None:
    """Run a story; raise DemoError if a step fails. With `keep`, stay until cancelled.

    While it stays, callers of the optimizer may write if `allow_writes`.
    """
    story = STORIES[name]
    replays = {cluster: PausedReplay(found) for cluster, found in story.recordings.items()}
    _show_all(replays, story.moments[0])
    setup = _setup(story, replays)
    async with running_demo(setup, output, work_dir, port) as demo:
        hub = demo.clusters.hub.kube
        workloads = [story_workload(one) for one in story.workloads]
        await apply_or_fail(
            hub, [Create(kinds.MANIFEST_WORK_REPLICA_SET, one) for one in workloads]
        )
        output.step(story.title)
        print_narration(output, story.opening)
        results = list[MomentResult]()
        for moment in story.moments:
            results.append(await _live(demo, story, replays, moment))
            print_narration(output, story.narrate(results))
        if keep and not allow_writes:
            await refuse_writes(demo)
        output.step(CONCLUSION)
        print_narration(output, story.conclude(results))
        output.finish([asdict(one) for one in results])
        what_next(demo, "" if keep else f"`dsf demo --story {name} --keep`")
        if keep:
            await stay(demo)


def _setup(story: Story, replays: Mapping[str, PausedReplay]) -> DemoSetup:
    @asynccontextmanager
    async def prometheus() -> AsyncIterator[Mapping[str, str]]:
        async with AsyncExitStack() as stack:
            yield {
                cluster: await stack.enter_async_context(replay.serving())
                for cluster, replay in replays.items()
            }

    return DemoSetup(
        title=f"A hub and {len(replays)} managed clusters, in memory and over HTTP",
        cluster_labels=story.cluster_labels,
        scorers={story.scorer: story.options},
        registered=lambda urls: [story.registered(urls[story.scorer])],
        prometheus=prometheus,
        policy_watchers=False,
    )


def print_narration(output: DemoOutput, narration: Narration) -> None:
    """Print sentences and tables."""
    for one in narration:
        if isinstance(one, TextTable):
            output.show([one])
        else:
            output.note(one)


def _show_all(replays: Mapping[str, PausedReplay], moment: Moment) -> None:
    for replay in replays.values():
        replay.show(moment.step)


async def _live(
    demo: RunningDemo, story: Story, replays: Mapping[str, PausedReplay], moment: Moment
) -> MomentResult:
    """Let agents score a moment, and the optimizer keep it placed; return what came of it.

    The plan that explains where everything runs is only asked for when that has ended.
    """
    before = await _rollout(demo)
    async with _watched(demo) as fewest:
        _show_all(replays, moment)
        scores = await _scored(demo, score_object_name(story.score_name), replays)
        if moment == story.moments[0]:  # what is kept is placed by the first scores that it finds
            kept = Create(kinds.PLACEMENT_OPTIMIZATION, story.kept())
            await apply_or_fail(demo.clusters.hub.kube, [kept])
        await _looked_at(demo, utc_now().timestamp())
        after = await _ended(demo)
    steps = () if after == before else tuple(map(_step, after["steps"]))
    asked = {**story.request, "namespace": WORKLOAD_NAMESPACE, "optimization": OPTIMIZATION}
    return MomentResult(
        time=moment.time,
        scores=scores,
        placed=_placed(await post(demo, "/optimize", {**asked, "dryRun": True})),
        steps=steps,
        running=await _running(demo),
        fewest=fewest if steps else {},
    )


async def _looked_at(demo: RunningDemo, time: float) -> None:
    """Wait until the optimizer has looked at what it keeps, after a Unix time."""

    async def looked() -> bool:
        families = text_string_to_metric_families(await get_text(demo, "/metrics"))
        return any(
            item.value > time for one in families for item in one.samples if item.name == LOOKED_AT
        )

    await until(demo, looked, "the optimizer to look")


async def _scored(
    demo: RunningDemo, score: str, replays: Mapping[str, PausedReplay]
) -> ByDimension:
    """Wait until every agent has published scores of what its replay shows; return them."""
    hub = demo.clusters.hub.kube
    published = asyncio.gather(*(_published(demo, score, *one) for one in replays.items()))

    async def done() -> bool:
        return published.done()

    try:
        await until(demo, done, "agents to score")
    finally:
        published.cancel()
    return by_score((await hub.list(kinds.ADD_ON_PLACEMENT_SCORE)).items)[score]


async def _published(demo: RunningDemo, score: str, cluster: str, replay: PausedReplay) -> None:
    """Wait until a round that read what `replay` shows has published its scores.

    Rounds of a scorer never overlap: when all its queries have been asked, what older rounds read
    is published. The next write is of this round; if nothing changed, the next round begins.
    """
    await replay.asked(1)
    hub = demo.clusters.hub.kube
    before = await _status(hub, score, cluster)
    next_round = asyncio.create_task(replay.asked(2))

    async def reached() -> bool:
        return next_round.done() or await _status(hub, score, cluster) != before

    try:
        await until(demo, reached, f"scores of {cluster}")
    finally:
        next_round.cancel()


async def _status(hub: Kube, score: str, cluster: str) -> Object | None:
    found = await find_object(hub, kinds.ADD_ON_PLACEMENT_SCORE, score, cluster)
    return (found or {}).get("status")


def _step(actions: Mapping[str, Any]) -> RolloutStep:
    started, stopped = (
        tuple((one["workload"], one["cluster"]) for one in actions[action])
        for action in ("start", "stop")
    )
    return RolloutStep(started, stopped)


def _placed(answer: Mapping[str, Any]) -> tuple[PlacedWorkload, ...]:
    reasons = (answer.get("explanation") or {}).get("places") or answer["placements"]
    return tuple(map(_reason, sorted(reasons, key=lambda one: str(one["workload"]))))


def _reason(place: Mapping[str, Any]) -> PlacedWorkload:
    runner_up, margin = place.get("runner_up") or {}, place.get("margin") or {}
    return PlacedWorkload(
        place["workload"],
        place["cluster"],
        place["score"],
        runner_up.get("cluster", ""),
        runner_up.get("score"),
        margin.get("total"),
    )


async def _rollout(demo: RunningDemo) -> dict[str, Any]:
    """Return the newest rollout; empty if there was none."""
    found = (await get(demo, f"/rollouts?namespace={WORKLOAD_NAMESPACE}"))["items"]
    return dict(found[0]) if found else {}


async def _ended(demo: RunningDemo) -> dict[str, Any]:
    """Wait until the newest rollout is complete, and return it."""
    last = dict[str, Any]()

    async def ended() -> bool:
        last.update(await _rollout(demo))
        if last["phase"] not in (IN_PROGRESS, COMPLETE):
            raise DemoError(f"the rollout ended as {last['phase']}: {last['message']}")
        return bool(last["phase"] == COMPLETE)

    await until(demo, ended, "the rollout")
    return last


@asynccontextmanager
async def _watched(demo: RunningDemo) -> AsyncIterator[dict[str, int]]:
    """Yield on how few clusters each workload has run since."""
    fewest = {name: len(clusters) for name, clusters in (await _running(demo)).items()}

    async def watch() -> None:
        while True:
            running = await _running(demo)
            for name, least in fewest.items():
                fewest[name] = min(least, len(running.get(name, ())))
            await asyncio.sleep(POLL_SECONDS)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch())
        yield fewest
        task.cancel()


async def _running(demo: RunningDemo) -> dict[str, tuple[str, ...]]:
    """Return the clusters on which each workload runs."""
    works = (await demo.clusters.hub.kube.list(kinds.MANIFEST_WORK, labels=REPLICA_SET_LABEL)).items
    found = sorted(
        (str(work["metadata"]["name"]), str(work["metadata"]["namespace"]))
        for work in works
        if is_true(work, "Available") and "deletionTimestamp" not in work["metadata"]
    )
    return {name: tuple(c for n, c in found if n == name) for name, _ in found}
