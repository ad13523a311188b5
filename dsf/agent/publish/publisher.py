"""Writes AddOnPlacementScores to the hub, only when needed."""

import asyncio
import logging
import random
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from dsf.agent.failure import Failure
from dsf.agent.publish.placement_score import (
    MANAGED_BY,
    RoundReport,
    is_own,
    items,
    placement_score,
    status_patch,
)
from dsf.agent.publish.write_permission import (
    ANOTHER_AGENT,
    PublisherIdentity,
    WritePause,
    WritePauses,
)
from dsf.agent.score.expiry import EXPIRE, decide_expiry, outlived, validity
from dsf.agent.score.result_rules import declared_default
from dsf.api import names
from dsf.api.crd.score_rules import OnFailure
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.kube.changes import without_managed_fields
from dsf.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Unreachable, retry_after
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Kube, Object, list_objects

log = logging.getLogger(__name__)

_LASTING = {"ForeignObject", "InvalidScoreName"}

ATTEMPTS = 3
"""Writes of one object until others' changes to it count as a conflict."""


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The failure, if any, the API writes made, and the seconds after which to publish again.

    `again` is None if only a round can change something.
    """

    failure: Failure | None = None
    writes: int = 0
    again: float | None = None


@dataclass(slots=True)
class Publisher:
    """Writes to the namespace of one managed cluster on the hub.

    The last version of each object is cached, so that a round without changes sends no request;
    each patch applies to that version only. If the hub does not accept a score, the agent waits
    before it writes it again, longer each time. If the hub asks for a pause
    or does not answer, all scores wait.
    """

    hub: Kube
    cluster: str
    now: Callable[[], datetime]
    pauses: WritePauses = field(default_factory=lambda: WritePauses(random.random))
    identity: PublisherIdentity = field(default_factory=PublisherIdentity)
    _observed: dict[str, Object] = field(default_factory=dict)
    _writes: dict[str, int] = field(default_factory=dict)

    async def publish(
        self,
        summary: ScorerSummary,
        report: RoundReport,
        *,
        seconds: float,
        ended: datetime | None = None,
    ) -> PublishResult:
        """Write the object of a scorer, if needed, within `seconds`.

        `ended` is the time at which the round ended and the validity of its scores started; None
        means now.
        """
        score, clock = summary.score_name, asyncio.get_running_loop().time
        valid_for = validity(summary.scoring_interval)
        if report.scores is not None and ended and outlived(ended, valid_for, self.now()):
            return PublishResult()
        self._writes[score] = 0
        pause = self.pauses.current(score, clock())
        if pause is None:
            pause = await self._within(seconds, summary, report, ended)
        writes = self._writes.pop(score)
        if pause:
            return PublishResult(pause.failure, writes, max(0.0, pause.until - clock()))
        return PublishResult(
            None, writes, None if report.scores is not None else self._again(summary)
        )

    def observed(self, score_name: str) -> Object | None:
        """Return the AddOnPlacementScore of a score as it was last read or written."""
        return self._observed.get(names.score_object_name(score_name))

    def unready_reason(self) -> str | None:
        """Return why another agent keeps this one from publishing; None if none does."""
        refused = self.identity.standby_failure() or self.pauses.failing(ANOTHER_AGENT)
        return refused.message if refused else None

    def forget(self, score_name: str) -> None:
        """Forget the failures of a score that was removed."""
        self.pauses.forget(score_name)

    async def _within(
        self, seconds: float, summary: ScorerSummary, report: RoundReport, ended: datetime | None
    ) -> WritePause | None:
        clock, score = asyncio.get_running_loop().time, summary.score_name
        lasting, asked = False, 0.0
        self.pauses.trying(clock())
        try:
            async with asyncio.timeout(seconds):
                failure = await self._publish(summary, report, ended)
            lasting = failure is not None and failure.reason in _LASTING
        except TimeoutError:
            failure = _failure("DeadlineExceeded", f"the hub did not answer within {seconds:g} s")
            return self.pauses.unanswered(score, failure, clock())
        except Unreachable as error:
            failure = _failure("Unreachable", f"the hub did not answer: {error}")
            return self.pauses.unanswered(score, failure, clock())
        except KubeError as error:
            failure = _failure(type(error).__name__, f"the hub answered: {error}")
            lasting, asked = not error.retryable, retry_after(error)
        self.pauses.answered()
        if failure is None:
            self.pauses.forget(score)
            return None
        pause = self.pauses.failed(score, failure, clock(), lasting=lasting)
        return self.pauses.asked(failure, clock() + asked) if asked else pause

    def _again(self, summary: ScorerSummary) -> float | None:
        status = self._observed[names.score_object_name(summary.score_name)].get("status") or {}
        now, valid_for = self.now(), validity(summary.scoring_interval)
        default = declared_default(summary, self.cluster)
        again = decide_expiry(
            status,
            _rule(summary),
            now=now,
            valid_for=valid_for,
            default=items(default) if default else [],
        ).again
        return None if again is None else max(0.0, (again - now).total_seconds())

    async def sweep(self, kept: Callable[[], Collection[str]]) -> bool:
        """Delete the agent's own objects whose scores are not `kept`. Raises KubeError.

        Objects that another agent keeps valid stay. Returns False, without deleting anything, while
        this agent stands by.
        """
        if self.identity.standby_failure():
            return False
        for obj in await self._own():
            if any(is_own(obj, score_name) for score_name in kept()):
                continue
            if theirs := self.identity.foreign_failure(obj, self.now()):
                log.warning("score not deleted", extra={"why": theirs.message})
                continue
            name = obj["metadata"]["name"]
            self._observed.pop(name, None)
            with suppress(NotFound, Conflict):
                await self.hub.delete(
                    ADD_ON_PLACEMENT_SCORE, name, self.cluster, uid=obj["metadata"].get("uid")
                )
        return True

    async def _publish(
        self, summary: ScorerSummary, report: RoundReport, ended: datetime | None
    ) -> Failure | None:
        name = names.score_object_name(summary.score_name)
        if not name:
            message = f"the score name {summary.score_name!r} has no letter or digit: rename it"
            return _failure("InvalidScoreName", message)
        if refused := self.identity.standby_failure():
            return refused
        for _ in range(ATTEMPTS):
            observed = self._observed.get(name) or await self._read_or_create(summary.score_name)
            if not is_own(observed, summary.score_name):
                return _foreign(observed, summary.score_name)
            if theirs := self.identity.foreign_failure(observed, self.now()):
                return theirs
            try:
                written = await self._patch(observed, summary, report, ended)
                self._observed[name] = without_managed_fields(written)
            except (Conflict, NotFound):
                self._observed.pop(name, None)
            else:
                return None
        return _failure("Conflict", f"{self.cluster}/{name} was changed by others {ATTEMPTS} times")

    async def _patch(
        self, observed: Object, summary: ScorerSummary, report: RoundReport, ended: datetime | None
    ) -> Object:
        fresh = report.scores is not None
        patch = status_patch(
            observed,
            replace(report, conditions=(*report.conditions, *self.identity.condition)),
            now=ended if fresh and ended else self.now(),
            valid_for=validity(summary.scoring_interval),
            on_failure=_rule(summary),
            default=declared_default(summary, self.cluster),
            forecasts=summary.forecast is not None,
        )
        if patch is None:
            return observed
        name = observed["metadata"]["name"]
        self._writes[summary.score_name] += 1
        return await self.hub.patch(
            ADD_ON_PLACEMENT_SCORE, name, patch, self.cluster, subresource="status"
        )

    async def _read_or_create(self, score_name: str) -> Object:
        obj = placement_score(self.cluster, score_name)
        name = obj["metadata"]["name"]
        with suppress(NotFound):
            return await self.hub.get(ADD_ON_PLACEMENT_SCORE, name, self.cluster)
        self._writes[score_name] += 1
        try:
            return await self.hub.create(ADD_ON_PLACEMENT_SCORE, obj)
        except AlreadyExists:
            return await self.hub.get(ADD_ON_PLACEMENT_SCORE, name, self.cluster)

    async def _own(self) -> list[Object]:
        labels = f"{names.MANAGED_BY_LABEL}={MANAGED_BY},{names.SCORE_NAME_LABEL}"
        return await list_objects(self.hub, ADD_ON_PLACEMENT_SCORE, self.cluster, labels=labels)


def _rule(summary: ScorerSummary) -> OnFailure:
    return summary.scoring_on_failure or EXPIRE


def _failure(reason: str, message: str) -> Failure:
    return Failure("publish", reason, message)


def _foreign(obj: Object, score_name: str) -> Failure:
    """An object without our labels may be an older agent's or somebody else's: people decide."""
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    owner = labels.get(names.SCORE_NAME_LABEL) or labels.get(names.MANAGED_BY_LABEL)
    if owner:
        whose = f"belongs to somebody else (owner by its labels: {owner})"
        advice = "delete it, or rename the score"
    else:
        own = placement_score(metadata["namespace"], score_name)["metadata"]["labels"]
        pairs = " ".join(f"{key}={value}" for key, value in own.items())
        whose = "has no label that names its owner"
        advice = (
            f"if an older agent made it, hand it over by `kubectl label addonplacementscores"
            f" -n {metadata['namespace']} {metadata['name']} {pairs}`; else rename the score"
        )
    name = f"{metadata['namespace']}/{metadata['name']}"
    message = f"AddOnPlacementScore {name} {whose} and is left alone: {advice}"
    return _failure("ForeignObject", message)
