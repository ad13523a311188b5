"""What an author brings to the demo: scorers that run already, and the series that they score.

Each scorer is tried once on each cluster before anything starts, by the agent's own code, so that
whatever is wrong with it or with its data is told at once. `guide_setup` adds them to what the
guide's demo starts itself.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from dsf.agent.round import Round
from dsf.agent.wire.prometheus_query import split_queries
from dsf.api.crd.dynamic_scorer import DEFAULT_FORMAT
from dsf.api.names import score_object_name
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput, UntrustedName, UntrustedText, counted, listed
from dsf.kube.clock import utc_now
from dsf.kube.port import Object
from dsf.scorer_kit.prometheus_replay import ANY_QUERY, Recording, Repeated, replaying
from dsf.scorer_kit.recordings import RECORDINGS, load
from dsf.scorer_kit.registration import dynamic_scorer, suggested_format
from dsf.scorer_kit.scorer_target import (
    AuthorCredentials,
    NamedApi,
    ScorerTarget,
    look_at,
    object_name,
)
from dsf.scorer_kit.trial_round import TrialSource, try_round, with_suggested_format
from dsf.sim.demo.clusters import WORKLOAD_NAMESPACE
from dsf.sim.demo.output import DemoOutput
from dsf.sim.demo.processes import DemoError
from dsf.sim.demo.scorers import (
    HARDWARE,
    THROUGHPUT_QUERY,
    DemoSetup,
    sample_scorer,
    static_scorers,
    throughput_scorer,
)

SHIFT = 60
"""Steps of a recording between two clusters, so that their scores differ."""


@dataclass(frozen=True, slots=True)
class AuthorsRecording:
    """A recording of a managed cluster, or of all if `cluster` is empty."""

    name: str
    recording: Recording
    cluster: str = ""

    def contends_with(self, other: "AuthorsRecording") -> str:
        """Return which query both answer on one cluster; empty if none."""
        if self.cluster and other.cluster not in ("", self.cluster):
            return ""
        mine, others = self.recording.queries.keys(), other.recording.queries.keys()
        if ANY_QUERY in mine | others:
            return "any query"
        return "".join(f"the query {UntrustedText(query)}" for query in sorted(mine & others)[:1])

    def told(self, now: float, scorers: Iterable["AskedScorer"]) -> str:
        """Return what it holds and what it lacks, for windows that end `now`, in unix seconds."""
        found, step = self.recording, self.recording.step
        series = [one for each in found.queries.values() for one in each]
        holes = sum(value is None for one in series for value in one.values)
        steps = max(len(one.values) for one in series)
        gaps = f", {counted(holes, 'sample')} missing" if holes else ""
        where = self.cluster or "every cluster"
        moment = found.moment(int((now - (found.start or 0)) // step) % found.length)
        begun = f", now at {moment:%Y-%m-%dT%H:%M:%SZ} of it" if moment else ""
        windows = (window for one in scorers for window in one.windows(found))
        longest, seconds = max(windows, default=0), steps * step
        short = (
            f"; a window of {longest} s is filled by repeating them" if longest > seconds else ""
        )
        held = f"{len(series)} series, {steps} steps of {step} s{gaps}"
        return f"{self.name}: {held}, on {where}{begun}{short}"


@dataclass(frozen=True, slots=True)
class AuthorsPart:
    """What an author brings; without `prometheus_url`, recordings are replayed."""

    scorers: tuple[NamedApi, ...] = ()
    recordings: tuple[AuthorsRecording, ...] = ()
    prometheus_url: str = ""
    manifest_namespaces: tuple[str, ...] = ()

    async def asked(self) -> "list[AskedScorer]":
        """Return what the scorers answer to who asks for their config.

        Raises DemoError, also if none of them asks for a recording or for the Prometheus.
        """
        found = [_usable(await look_at(api)) for api in self.scorers]
        queries = {query for one in found for query in one.queries}
        unasked = [
            one.name
            for one in self.recordings
            if not queries & _bound(one.recording, queries).queries.keys()
        ]
        if self.prometheus_url and not queries:
            unasked.append(self.prometheus_url)
        if unasked:
            known = listed(sorted(queries)) or "no series"
            raise DemoError(f"{unasked[0]}: no scorer of yours asks for it; they ask for {known}")
        return found

    def replays(self, cluster: str, number: int, queries: Iterable[str]) -> list[Repeated]:
        """Return the recordings of a cluster; those of all clusters are moved by its `number`.

        Tables have the answer to the `queries` of the author's scorers.
        """
        return [
            Repeated(_bound(one.recording, queries), shift=0 if one.cluster else number * SHIFT)
            for one in self.recordings
            if one.cluster in ("", cluster)
        ]


def _bound(recording: Recording, queries: Iterable[str]) -> Recording:
    table = recording.queries.get(ANY_QUERY)
    return recording if table is None else replace(recording, queries=dict.fromkeys(queries, table))


@dataclass(frozen=True, slots=True)
class AskedScorer:
    """A scorer that runs already, its config, and the summary that agents would get."""

    url: str
    config: ScorerConfig
    summary: ScorerSummary

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries of all its sources."""
        asked = (split_queries(one.source_query) for one in self.summary.single_sources)
        return tuple(query for queries in asked for query in queries)

    def windows(self, recording: Recording) -> list[int]:
        """Return the seconds of each window that a recording has to fill."""
        return [
            one.source_range
            for one in self.summary.single_sources
            if any(recording.answer(query) for query in split_queries(one.source_query))
        ]

    @property
    def score(self) -> str:
        """The name of its AddOnPlacementScores."""
        return score_object_name(self.summary.score_name)

    async def tried(self, prometheus: Mapping[str, str], output: DemoOutput) -> Object:
        """Return the DynamicScorer, as `dsf scorer register` writes it, after a round each.

        `prometheus`: the URL to ask on each cluster. Raises DemoError.
        """
        metrics = list[Mapping[str, str]]()
        credentials = AuthorCredentials(self.summary.scoring_endpoint, "", "")
        for cluster, url in prometheus.items():
            done = await try_round(self.summary, TrialSource(url), credentials, cluster)
            found = _results(with_suggested_format(done, cluster), cluster)
            output.note(f"{self.score} on {cluster}: {counted(len(found), 'result')}")
            metrics = max(metrics, found, key=len)
        form = suggested_format(metrics) or DEFAULT_FORMAT
        return dynamic_scorer(object_name(self.config), self.config, self.url, (form,))


def require_own_scores(scorers: Iterable[AskedScorer], taken: Iterable[str]) -> None:
    """Raise DemoError if two scorers have one score, or one has a name that is `taken`."""
    known = set(taken)
    for one in scorers:
        if one.score in known:
            said = "another scorer of the demo has that name: change scoring.params.name"
            raise DemoError(f"{one.url}: score {one.score}: {said}")
        known.add(one.score)


def _usable(target: ScorerTarget) -> AskedScorer:
    config, summary, url = target.config, target.summary, target.named.config_url
    if config is None or not isinstance(summary, ScorerSummary):
        said = summary.message if isinstance(summary, InvalidInput) else ""
        raise DemoError(f"{url}: {target.unreachable or target.why_unusable or said}")
    others = {one.source_type for one in summary.single_sources} - {"Prometheus", "None"}
    if others:
        said = "has no series of that type: write Prometheus or None"
        raise DemoError(f"{url}: source.type: the demo {said} instead of {listed(others)}")
    return AskedScorer(url, config, summary)


def _results(done: Round, cluster: str) -> list[Mapping[str, str]]:
    """Return the labels of the results of a round. Raises DemoError if there are no scores."""
    where, failure = f"{UntrustedName(done.summary.name)} on {cluster}", done.failure
    if failure:
        raise DemoError(f"{where}: {failure.stage}: {failure.reason}: {failure.message}")
    scores, evidence = done.report.scores, done.evidence
    if scores is None or not scores.entries:
        sent = counted(len(evidence.series) if evidence else 0, "series", "series")
        raise DemoError(f"{where}: no score, of {sent}: see what `dsf scorer try` shows")
    return [result.metric for result in evidence.results] if evidence else []


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
        inventories=True,
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
