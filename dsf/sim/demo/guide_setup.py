"""What the guide's demo starts: scorers and recordings, its own and those of an author."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace

from dsf.kube.clock import utc_now
from dsf.kube.port import Object
from dsf.scorer_kit.prometheus_replay import Repeated, replaying
from dsf.scorer_kit.recordings import RECORDINGS, load
from dsf.sim.demo.authors_part import SHIFT, AskedScorer, AuthorsPart
from dsf.sim.demo.clusters import WORKLOAD_NAMESPACE
from dsf.sim.demo.output import DemoOutput
from dsf.sim.demo.scorers import (
    HARDWARE,
    THROUGHPUT_QUERY,
    DemoSetup,
    sample_scorer,
    static_scorers,
    throughput_scorer,
)


def guide_setup(part: AuthorsPart, scorers: Sequence[AskedScorer], output: DemoOutput) -> DemoSetup:
    """Return the guide's setup, with the scorers and the series of an author."""
    recorded = not part.prometheus_url
    queries = [query for one in scorers for query in one.queries]

    async def source(stack: AsyncExitStack, number: int, cluster: str) -> str:
        if not recorded:
            return part.prometheus_url
        replayed = part.replays(cluster, number, queries)
        return await stack.enter_async_context(_replay(cluster, number, replayed))

    @asynccontextmanager
    async def prometheus() -> AsyncIterator[Mapping[str, str]]:
        async with AsyncExitStack() as stack:
            yield {name: await source(stack, number, name) for number, name in enumerate(HARDWARE)}

    async def authors(urls: Mapping[str, str]) -> list[Object]:
        output.step("Your scorers: a round each, before anything starts")
        for recording in part.recordings:
            output.note(recording.told(utc_now().timestamp(), scorers))
        return [await one.tried(urls, output) for one in scorers]

    def registered(urls: Mapping[str, str]) -> list[Object]:
        found = static_scorers(urls["static"])
        if recorded:
            found += [sample_scorer(urls["sample"]), throughput_scorer(urls["sample"])]
        return found

    return DemoSetup(
        title="A hub and two managed clusters, in memory and over HTTP",
        cluster_labels={name: hardware.labels() for name, hardware in HARDWARE.items()},
        scorers={"sample": (), "static": ()} if recorded else {"static": ()},
        registered=registered,
        prometheus=prometheus,
        manifest_namespaces=(WORKLOAD_NAMESPACE, *part.manifest_namespaces),
        authors=authors if scorers else None,
    )


def _replay(
    cluster: str, number: int, authors: Sequence[Repeated]
) -> AbstractAsyncContextManager[str]:
    """Serve the author's recordings, and the demo's own for all other queries."""
    own = load(RECORDINGS["build-machine"])
    queries = {**own.queries, THROUGHPUT_QUERY: HARDWARE[cluster].series()}
    labels = {"node": f"{cluster}-control-plane"}
    return replaying(*authors, Repeated(replace(own, queries=queries), labels, number * SHIFT))
