"""The AddOnPlacementScore of a round: its owner labels, its conditions, and when it is written.

Source: AddOnPlacementScore of `cluster.open-cluster-management.io/v1alpha1`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Self

from dsf.agent.failure import Failure
from dsf.agent.score.expiry import (
    DEFAULT,
    EXPIRE,
    NOT_FINITE,
    PUBLISHED,
    decide_expiry,
    needs_renewal,
)
from dsf.agent.score.result_rules import RoundScores
from dsf.api import name_syntax, names
from dsf.api.conditions import Condition, merged
from dsf.api.crd.score_rules import OnFailure
from dsf.api.scoring.score_conditions import TRUSTED
from dsf.api.times import rfc3339
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Object

SOURCE_FETCHED = "SourceFetched"
SCORED = "Scored"


@dataclass(frozen=True, slots=True)
class RoundReport:
    """The outcome of one round, for the status of the object.

    `scores` is None if a stage failed; `expiry` then decides about the last good ones.
    """

    scores: RoundScores | None
    conditions: tuple[Condition, ...]

    @property
    def has_default_score(self) -> bool:
        """Whether the scores are the default score, because there was nothing to score."""
        return any((one.type, one.reason) == (PUBLISHED, DEFAULT) for one in self.conditions)

    @classmethod
    def success(cls, scores: RoundScores, warnings: tuple[str, ...] = ()) -> Self:
        """Return the report of a round with scores; the conditions say what the rules adjusted."""
        return cls(scores, (_fetched(warnings), _scored(scores), _published(scores)))

    @classmethod
    def nothing_to_score(
        cls, scores: RoundScores, value: int, warnings: tuple[str, ...] = (), *, called: bool
    ) -> Self:
        """Return the report of a default score; `called` if the scoring API was."""
        if called:
            scored = Condition(SCORED, "True", DEFAULT, "The scoring API returned no results.")
        else:
            why = "The source has no series, so the scoring API was not called."
            scored = Condition(SCORED, "Unknown", "NothingToScore", why)
        message = f"There is nothing to score: every entry has the default score {value}."
        published = Condition(PUBLISHED, "True", DEFAULT, message)
        return cls(scores, (_fetched(warnings), scored, published))

    @classmethod
    def failed(cls, failure: Failure, warnings: tuple[str, ...] = ()) -> Self:
        """Return the report of a round that failed in a stage or by a bug of the agent."""
        fetched, scored = _fetched(warnings), _false(SCORED, failure)
        if failure.stage == "agent":
            why = "The agent itself failed."
            fetched = Condition(SOURCE_FETCHED, "Unknown", failure.reason, why)
        elif failure.stage == "source":
            fetched = _false(SOURCE_FETCHED, failure)
            why = "The source could not be read, so the scoring API was not called."
            scored = Condition(SCORED, "Unknown", "NotAttempted", why)
        return cls(None, (fetched, scored))

    def with_remark(self, remark: str) -> Self:
        """Return the report with a remark at the end of each message about a failed stage."""
        conditions = (
            replace(one, message=f"{one.message}; {remark}") if one.status == "False" else one
            for one in self.conditions
        )
        return replace(self, conditions=tuple(conditions))


def _fetched(warnings: tuple[str, ...]) -> Condition:
    reason = "FetchedWithWarnings" if warnings else "Fetched"
    return Condition(
        SOURCE_FETCHED, "True", reason, "; ".join(f"{warning}" for warning in warnings)
    )


def _scored(scores: RoundScores) -> Condition:
    if scores.adjusted:
        return Condition(SCORED, "True", "ScoresAdjusted", str(scores.adjustments))
    if not scores.entries:
        return Condition(SCORED, "True", "NoResults", "The scoring API returned no results.")
    return Condition(SCORED, "True", "Scored")


def _published(scores: RoundScores) -> Condition:
    dropped = scores.adjusted.get("NotFinite", 0)
    if dropped and not scores.entries:
        message = f"None of the {dropped} scores is a finite number, so none is published."
        return Condition(PUBLISHED, "False", NOT_FINITE, message)
    cut = scores.adjusted.get("EntryCut", 0)
    if not cut:
        return Condition(PUBLISHED, "True", "Published")
    message = (
        f"{cut} of {cut + len(scores.entries)} entries do not fit into one object;"
        " the last by name are left out: let the scorer return fewer results, or choose a coarser"
        " scoreDimensionFormat"
    )
    return Condition(PUBLISHED, "True", "EntriesCut", message)


def _false(type_: str, failure: Failure) -> Condition:
    return Condition(type_, "False", failure.reason, failure.message)


MANAGED_BY = names.ADDON


def placement_score(cluster: str, score_name: str) -> Object:
    """Return the object to create; `status_patch` adds its status."""
    return ADD_ON_PLACEMENT_SCORE.object(
        metadata={
            "namespace": cluster,
            "name": names.score_object_name(score_name),
            "labels": {
                names.SCORE_NAME_LABEL: score_label(score_name),
                names.MANAGED_BY_LABEL: MANAGED_BY,
            },
        }
    )


def is_own(obj: Mapping[str, Any], score_name: str) -> bool:
    """Tell whether the labels say that the agent owns the object, for that very score."""
    labels = obj["metadata"].get("labels") or {}
    return labels.get(names.MANAGED_BY_LABEL) == MANAGED_BY and labels.get(
        names.SCORE_NAME_LABEL
    ) == score_label(score_name)


def score_label(score_name: str) -> str:
    """Return the name of a score as a label value; a hash of it if it is not valid as one."""
    if score_name and not name_syntax.label_value(score_name):
        return score_name
    return f"sha256-{sha256(score_name.encode()).hexdigest()[:32]}"


def status_patch(
    observed: Mapping[str, Any],
    report: RoundReport,
    *,
    now: datetime,
    valid_for: timedelta,
    on_failure: OnFailure = EXPIRE,
    default: RoundScores | None = None,
    forecasts: bool = False,
) -> Object | None:
    """Return the merge patch of the status; None if no write is needed.

    A write is needed if scores or conditions change, or if half of the validity is spent. If only
    the message of a condition changes, it waits for the next write of good scores, because it may
    contain a count that differs in every round. `default` is what counts until a round has had a
    result, if it is declared. Scores that are not `forecasts` have no condition `Trusted`. The
    patch fails with a conflict unless the object is still the observed one.
    """
    status = observed.get("status") or {}
    kept = [
        one for one in status.get("conditions") or [] if forecasts or one.get("type") != TRUSTED
    ]
    if report.scores is None:
        spare = items(default) if default else []
        stands = decide_expiry(status, on_failure, now=now, valid_for=valid_for, default=spare)
        reported = (*report.conditions, *filter(None, [stands.condition]))
        changes = stands.changes | _conditions(status, merged(kept, reported, now=rfc3339(now)))
    else:
        conditions = merged(kept, report.conditions, now=rfc3339(now))
        changes = _good(status, report.scores, conditions, now=now, valid_for=valid_for)
    if not changes:
        return None
    version = observed["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version}, "status": changes}


def _good(
    status: Mapping[str, Any],
    scores: RoundScores,
    conditions: list[Object],
    *,
    now: datetime,
    valid_for: timedelta,
) -> Object:
    changed, entries = _conditions(status, conditions), items(scores)
    entry_change = {} if entries == status.get("scores") else {"scores": entries}
    news = changed and _reasons(changed) != _reasons(status)
    if not (entry_change or news or needs_renewal(status, now, valid_for)):
        return {}
    return {**entry_change, **changed, "validUntil": rfc3339(now + valid_for)}


def _reasons(status: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    conditions = status.get("conditions") or []
    return [(one.get("type"), one.get("status"), one.get("reason")) for one in conditions]


def items(scores: RoundScores) -> list[Object]:
    """Return entries as `status.scores` has them."""
    return [{"name": entry.name, "value": entry.value} for entry in scores.entries]


def _conditions(status: Mapping[str, Any], conditions: list[Object]) -> Object:
    before = status.get("conditions") or []
    return {} if conditions == before else {"conditions": conditions}
