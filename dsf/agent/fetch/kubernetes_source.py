"""Samples in fields of objects that the managed cluster's own API server has.

Objects are listed page by page at each round, with the rights of the agent's own account, and are
forgotten once their samples are taken. An API server says what is now: of a source with a range,
the agent keeps the samples of earlier rounds.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from dsf.agent.failure import Failure
from dsf.agent.fetch.answer_budget import AnswerReservation
from dsf.agent.fetch.http_exchange import CallDeadline, decode_within, late, off_loop
from dsf.agent.wire.foreign_text import NO_SECRETS
from dsf.agent.wire.object_samples import ObjectSamples
from dsf.agent.wire.prometheus_answer import SERIES_BYTES, SERIES_LIMIT, FetchedSeries
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.agent.wire.series_buffer import Labels, MemoryBounds, SeriesBuffer, sample
from dsf.api.crd.kubernetes_objects import KubernetesObjects
from dsf.api.scoring.json_path import object_paths
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.errors import AnswerTooLarge, Forbidden, KubeError, NotFound, retry_after
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, ObjectList

PAGE_OBJECTS = 100
"""Objects that are asked for at a time. A server may send more: metrics-server sends all."""

PAGE_BYTES = 8 << 20
"""The longest page. Decoded it takes ten times as much, so the agent reads one at a time."""

MOST_OBJECTS, MOST_BYTES = 10_000, 32 << 20
"""Objects of a source, and bytes of their samples with their labels."""

SAMPLE_BYTES = 40
"""Bytes of a kept sample as it is sent."""

_NARROWER = "name a namespace or a labelSelector"

SOURCE_TYPE = "kubernetes"


class KubernetesSource:
    """Reads the objects that scorers name; `kube` is None if the agent has no API server."""

    def __init__(self, kube: Kube | None, bounds: MemoryBounds | None = None) -> None:
        self._kube = kube
        self._one_page = asyncio.Lock()
        self._history = SampleHistory(bounds or MemoryBounds())

    async def fetch(
        self,
        summary: ScorerSummary,
        now: float,
        deadline: CallDeadline,
        most: int = SERIES_LIMIT,
        reservation: AnswerReservation | None = None,
    ) -> FetchedSeries | Failure:
        """Return the series of a source, at most `most`, as of `now` (unix seconds)."""
        objects = summary.source_kubernetes
        if objects is None:
            message = "source type Kubernetes needs source.kubernetes: the objects to read"
            return Failure("source", "MissingObjects", message)
        paths = object_paths(objects)
        if isinstance(paths, InvalidInput):
            return Failure("source", paths.reason, f"source.kubernetes.{paths.message}")
        found = ObjectSamples(objects, paths)
        if failure := await self._read(found, most, deadline):
            return failure
        remarks = tuple(found.remarks())
        if found.read and not found.samples:
            why = f"none of {found.read} {objects.qualified} has a sample: {'; '.join(remarks)}"
            return Failure("source", "NoSamples", f"{why}; correct source.kubernetes.values")
        at = round(now, 3)
        kept = self._history.add(summary, found.samples, at)
        if isinstance(kept, Failure):
            return kept
        size = found.bytes + SAMPLE_BYTES * (kept.held if kept else 0)
        series = await decode_within(
            lambda: _encoded(found.samples, kept, at),
            memory=size,
            kept=lambda _: size,
            stage="source",
            url=objects.qualified,
            deadline=deadline,
            reservation=reservation,
        )
        return series if isinstance(series, Failure) else FetchedSeries(series, remarks)

    async def _read(
        self, found: ObjectSamples, most: int, deadline: CallDeadline
    ) -> Failure | None:
        """Add the samples of all objects, or return why they can't be had."""
        token, objects = "", found.objects
        while True:
            try:
                async with asyncio.timeout_at(deadline.at), self._one_page:
                    page = await self._page(objects, token)
                    if isinstance(page, Failure):
                        return page
                    size = len(page.items) * len(objects.values) * SERIES_BYTES
                    await off_loop(partial(found.add, page.items), size)
            except TimeoutError:
                return Failure("source", *late(objects.qualified, deadline, None))
            token = page.continue_token
            too_many = found.read + bool(token) > MOST_OBJECTS or len(found.samples) > most
            if too_many or found.bytes > MOST_BYTES:
                limits = f"{MOST_OBJECTS} objects, {most} series or {MOST_BYTES >> 20} MiB"
                message = f"{objects.qualified} are more than {limits}: {_NARROWER}"
                return Failure("source", "ResponseTooLarge", message)
            if not token:
                return None

    async def _page(self, objects: KubernetesObjects, token: str) -> ObjectList | Failure:
        if self._kube is None:
            message = "objects can't be read without the managed cluster's kubeconfig"
            return Failure("source", "NoAPIServer", message)
        resource = objects.resource
        kind = Kind(objects.api_group, objects.version, resource, resource)
        try:
            return await self._kube.list(
                kind,
                objects.namespace,
                labels=objects.label_selector or "",
                limit=PAGE_OBJECTS,
                continue_token=token,
            )
        except KubeError as error:
            return _refused(objects, error)


def _refused(objects: KubernetesObjects, error: KubeError) -> Failure:
    """Return the failure of a list: what to do about the errors that people can correct."""
    where = objects.qualified + (f" in namespace {objects.namespace}" if objects.namespace else "")
    said = NO_SECRETS.line(str(error))
    match error:
        case Forbidden():
            group = f'apiGroup: "{objects.api_group}", resource: {objects.resource}'
            namespace = f", namespace: {objects.namespace}" if objects.namespace else ""
            value = f"{{{group}{namespace}}} to the chart's spokeSetting.agent.readableResources"
            told = "Forbidden", f"the agent may not list {where}: add {value}"
        case NotFound():
            advice = (
                "correct apiVersion and resource as kubectl api-resources prints them, or install"
                " what serves them; a resource of the cluster has no namespace"
            )
            version = f"in version {objects.version}"
            told = "NotServed", f"the managed cluster does not serve {where} {version}: {advice}"
        case AnswerTooLarge():
            told = "ResponseTooLarge", f"{where}: {said}; {_NARROWER}"
        case _:
            told = "ListFailed", f"listing {where} failed: {said}"
    return Failure("source", *told, retry_after(error) or None)


@dataclass(slots=True)
class KeptSamples:
    """The samples of one source, and when nobody wants them any more (unix seconds).

    `question` is what was asked: another one begins anew. Each series may come to `each` samples.
    """

    question: tuple[KubernetesObjects | None, int, int]
    each: int
    until: float = 0.0
    buffers: dict[Labels, SeriesBuffer] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """The number of samples."""
        return sum(len(buffer.times) for buffer in self.buffers.values())


class SampleHistory:
    """Keeps the samples of sources with a range, in memory; a restart begins anew."""

    def __init__(self, bounds: MemoryBounds) -> None:
        self._bounds = bounds
        self._kept: dict[tuple[str, str], KeptSamples] = {}

    def add(
        self, summary: ScorerSummary, samples: Mapping[Labels, float], now: float
    ) -> KeptSamples | Failure | None:
        """Add the samples of `now` (unix seconds); return all in the range, None without one."""
        self._kept = {key: one for key, one in self._kept.items() if one.until >= now}
        range_, step = summary.source_range, max(summary.source_step, 1)
        if range_ <= 0:
            return None
        question = (summary.source_kubernetes, range_, step)
        key = (summary.name, summary.source_name)
        kept = self._kept.get(key)
        if kept is None or kept.question != question:
            each = range_ // max(step, summary.scoring_interval) + 2
            kept = self._kept[key] = KeptSamples(question, each)
        kept.until = now + range_
        for labels, value in samples.items():
            kept.buffers.setdefault(labels, SeriesBuffer()).add(now, value, step)
        for buffer in kept.buffers.values():
            buffer.drop_before(now - range_)
        # An object may be missing for a round; it is forgotten early where there is no room.
        kept.buffers = {labels: one for labels, one in kept.buffers.items() if one.times}
        if self._too_much():
            kept.buffers = {labels: kept.buffers[labels] for labels in samples}
        if too_much := self._too_much():
            del self._kept[key]
            own = f"{len(samples)} series of {kept.each} samples each"
            message = f"{own}, with those of other scorers, are {too_much}: set a shorter"
            advice = "source.params.range or a longer step, or read fewer objects"
            return Failure("source", "HistoryTooLarge", f"{message} {advice}")
        return kept

    def _too_much(self) -> str:
        """Return how much all sources may come to; empty if that can be kept."""
        series = sum(len(one.buffers) for one in self._kept.values())
        samples = sum(len(one.buffers) * one.each for one in self._kept.values())
        most = self._bounds
        if series <= most.series and samples <= most.samples:
            return ""
        kept = f"{most.series} and {most.samples}"
        return f"{series} series and {samples} samples, of which the agent keeps {kept}"


def _encoded(
    samples: Mapping[Labels, float], kept: KeptSamples | None, now: float
) -> tuple[EncodedSeries, ...]:
    """Return the series of samples, with those that were kept if there are any."""
    encode = msgspec.json.encode
    if kept is None:
        return tuple(
            EncodedSeries(encode(dict(labels)), encode(sample(now, value)), instant=True)
            for labels, value in samples.items()
        )
    return tuple(
        EncodedSeries(encode(dict(labels)), kept.buffers[labels].samples(0)) for labels in samples
    )
