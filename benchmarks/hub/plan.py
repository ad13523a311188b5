"""The time and memory of one plan of the hub controller, without an API server.

python -m benchmarks.hub.plan

The fleet has 2,000 managed clusters, 50 scorers, and the 100,000 AddOnPlacementScores of their
agents. Once nothing is left to write, one plan is timed. The figure is its ratio to decoding a
page of 500 of those scores from JSON; listing all of them decodes 200 such pages. A second figure
is that of a plan after each cluster got its own source host. Memory is the resident set of the
process.
"""

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from dsf.hub.distribute.rendered_summaries import SummariesRenderer
from dsf.hub.plan import plan
from dsf.hub.snapshot.distribution_rules import read_scoring_config as read_config
from dsf.hub.snapshot.hub_snapshot import HubSnapshot, read_score
from dsf.hub.snapshot.registered_scorer import read_scorer
from dsf.hub.snapshot.summaries_work import read_work
from dsf.kube import json_merge_patch
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK
from tests.dsf.hub.builders import (
    AGENTS,
    NOW,
    World,
    answer,
    cluster,
    observed,
    published,
    scorer,
    scoring_config,
    target,
)

CLUSTERS, SCORERS, PAGE, RUNS = 2000, 50, 500, 9


def fleet(**spec: object) -> HubSnapshot:
    """Return the snapshot before anything was distributed."""
    scorers = tuple(scorer(f"s{n}", url=f"http://s{n}/config") for n in range(SCORERS))
    world = World(
        scorers=scorers,
        config=scoring_config(**spec),
        clusters=tuple(cluster(f"c{n}", region="eu") for n in range(CLUSTERS)),
        probes={target(obj): answer(f"score_{n}") for n, obj in enumerate(scorers)},
    )
    scores = {
        (sys.intern(f"c{c}"), sys.intern(f"score-{s}")): read_score(
            published(f"c{c}", f"score_{s}")
        )
        for c in range(CLUSTERS)
        for s in range(SCORERS)
    }
    return replace(observed(world), scores=scores)


def settled(snapshot: HubSnapshot, renderer: SummariesRenderer) -> HubSnapshot:
    """Return the snapshot after which nothing is left to write."""
    while changes := plan(snapshot, now=NOW, renderer=renderer):
        snapshot = after(snapshot, changes)
    return snapshot


def after(snapshot: HubSnapshot, changes: list[Change]) -> HubSnapshot:
    """Return the snapshot after an API server has applied the changes."""
    scorers = {scorer.name: scorer.obj for scorer in snapshot.scorers}
    config, works = snapshot.config, dict(snapshot.works)
    read = read_work(AGENTS)
    for change in changes:
        if change.kind == MANIFEST_WORK and isinstance(change, Create):
            works[str(change.namespace)] = read(change.obj)
        elif change.kind == DYNAMIC_SCORER and isinstance(change, Patch):
            scorers[change.name] = json_merge_patch.merged(scorers[change.name], change.body)
        elif isinstance(change, Patch) and config:
            config = read_config(json_merge_patch.merged(config.obj, change.body))
    return replace(
        snapshot, scorers=tuple(map(read_scorer, scorers.values())), config=config, works=works
    )


def median_seconds(call: Callable[[], object]) -> float:
    """Return the median of a few runs."""
    taken = []
    for _ in range(RUNS):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def main() -> None:
    """Print the ratios of an ordinary fleet, and of one where every cluster differs."""
    page = json.dumps([published(f"c{n}") for n in range(PAGE)])
    yardstick = median_seconds(lambda: json.loads(page))
    own = [
        {"clusterName": f"c{n}", "sourceHost": f"http://prometheus-{n}:9090"}
        for n in range(CLUSTERS)
    ]
    print(f"{CLUSTERS} clusters x {SCORERS} scorers; 1 = decoding {PAGE} scores")
    for name, spec in (("one share for all", {}), ("a host for each", {"sourceOverrides": own})):
        renderer = SummariesRenderer()
        end = settled(fleet(**spec), renderer)
        idle = median_seconds(lambda: plan(end, now=NOW, renderer=renderer))  # noqa: B023 - called here
        anew = median_seconds(lambda: plan(end, now=NOW))  # noqa: B023 - called here
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"  {name:<18} a round without news {idle / yardstick:6.1f}"
            f"   one that renders anew {anew / yardstick:6.1f}   memory {memory:4.0f} MiB"
        )


if __name__ == "__main__":
    main()
