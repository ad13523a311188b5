"""Writing AddOnPlacementScores to the hub, no more often than needed."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from dsf.agent.failure import Failure
from dsf.agent.placement_score import (
    MANAGED_BY,
    is_own,
    placement_score,
    status_patch,
    validity,
)
from dsf.agent.report import Report
from dsf.api import names
from dsf.api.summary import ScorerSummary
from dsf.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Kube, Object

ATTEMPTS = 3
PAGE = 500


@dataclass(slots=True)
class Publisher:
    """Writes to one managed cluster's namespace on the hub.

    The last version of each object is remembered, so that a round that changes nothing asks
    nothing; each patch holds only for that version.
    """

    hub: Kube
    cluster: str
    now: Callable[[], datetime]
    _observed: dict[str, Object] = field(default_factory=dict)

    async def publish(
        self, summary: ScorerSummary, report: Report, *, seconds: float
    ) -> Failure | None:
        """Bring the object of a scorer up to date within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                return await self._publish(summary, report)
        except TimeoutError:
            return _failure("DeadlineExceeded", f"the hub did not answer within {seconds:g} s")
        except KubeError as error:
            return _failure(type(error).__name__, f"the hub said: {error}")

    async def sweep(self, wanted: Callable[[], Collection[str]]) -> None:
        """Delete the agent's own objects of scores that are not wanted. Raises KubeError."""
        for obj in await self._own():
            if any(is_own(obj, score_name) for score_name in wanted()):
                continue
            name = obj["metadata"]["name"]
            self._observed.pop(name, None)
            with suppress(NotFound, Conflict):
                await self.hub.delete(
                    ADD_ON_PLACEMENT_SCORE, name, self.cluster, uid=obj["metadata"].get("uid")
                )

    async def _publish(self, summary: ScorerSummary, report: Report) -> Failure | None:
        name = names.score_object_name(summary.score_name)
        if not name:
            message = f"the score name {summary.score_name!r} has no letter or digit: rename it"
            return _failure("InvalidScoreName", message)
        for _ in range(ATTEMPTS):
            observed = self._observed.get(name) or await self._read_or_create(summary.score_name)
            if not is_own(observed, summary.score_name):
                return _foreign(observed)
            try:
                self._observed[name] = _slim(await self._patch(observed, summary, report))
            except (Conflict, NotFound):
                self._observed.pop(name, None)
            else:
                return None
        return _failure("Conflict", f"{self.cluster}/{name} is changed by others again and again")

    async def _patch(self, observed: Object, summary: ScorerSummary, report: Report) -> Object:
        patch = status_patch(
            observed, report, now=self.now(), valid_for=validity(summary.scoring_interval)
        )
        if patch is None:
            return observed
        name = observed["metadata"]["name"]
        return await self.hub.patch(
            ADD_ON_PLACEMENT_SCORE, name, patch, self.cluster, subresource="status"
        )

    async def _read_or_create(self, score_name: str) -> Object:
        wanted = placement_score(self.cluster, score_name)
        name = wanted["metadata"]["name"]
        with suppress(NotFound):
            return await self.hub.get(ADD_ON_PLACEMENT_SCORE, name, self.cluster)
        try:
            return await self.hub.create(ADD_ON_PLACEMENT_SCORE, wanted)
        except AlreadyExists:
            return await self.hub.get(ADD_ON_PLACEMENT_SCORE, name, self.cluster)

    async def _own(self) -> list[Object]:
        labels = f"{names.MANAGED_BY_LABEL}={MANAGED_BY},{names.SCORE_NAME_LABEL}"
        owned: list[Object] = []
        token = ""
        while True:
            page = await self.hub.list(
                ADD_ON_PLACEMENT_SCORE,
                self.cluster,
                labels=labels,
                limit=PAGE,
                continue_token=token,
            )
            owned += page.items
            token = page.continue_token
            if not token:
                return owned


def _slim(obj: Object) -> Object:
    """managedFields outweigh the scores, and nobody here reads them."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


def _failure(reason: str, message: str) -> Failure:
    return Failure("publish", reason, message)


def _foreign(obj: Object) -> Failure:
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    owner = labels.get(names.SCORE_NAME_LABEL) or labels.get(names.MANAGED_BY_LABEL) or "unknown"
    return _failure(
        "ForeignObject",
        f"AddOnPlacementScore {metadata['namespace']}/{metadata['name']} belongs to somebody else"
        f" (owner by its labels: {owner}) and is left alone: delete it, or rename the score",
    )
