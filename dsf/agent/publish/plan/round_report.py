"""The outcome of a round as its AddOnPlacementScore shows it: scores, a condition per stage."""

from dataclasses import dataclass, replace

from dsf.agent.failure import Failure
from dsf.agent.score.expiry import DEFAULT, NOT_FINITE, PUBLISHED
from dsf.agent.score.result_rules import RoundScores
from dsf.api.conditions import Condition

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


def success(scores: RoundScores, warnings: tuple[str, ...] = ()) -> RoundReport:
    """Return the report of a round with scores; the conditions say what the rules adjusted."""
    return RoundReport(scores, (_fetched(warnings), _scored(scores), _published(scores)))


def default(
    scores: RoundScores, value: int, warnings: tuple[str, ...] = (), *, called: bool
) -> RoundReport:
    """Return the report of a round with nothing to score; `called` if the scoring API was."""
    if called:
        scored = Condition(SCORED, "True", DEFAULT, "The scoring API returned no results.")
    else:
        why = "The source has no series, so the scoring API was not called."
        scored = Condition(SCORED, "Unknown", "NothingToScore", why)
    message = f"There is nothing to score: every entry has the default score {value}."
    published = Condition(PUBLISHED, "True", DEFAULT, message)
    return RoundReport(scores, (_fetched(warnings), scored, published))


def failed(failure: Failure, warnings: tuple[str, ...] = ()) -> RoundReport:
    """Return the report of a round that failed in a stage or by a bug of the agent."""
    if failure.stage == "agent":
        unknown = Condition(SOURCE_FETCHED, "Unknown", failure.reason, "The agent itself failed.")
        return RoundReport(None, (unknown, _false(SCORED, failure)))
    if failure.stage == "source":
        why = "The source could not be read, so the scoring API was not called."
        return RoundReport(
            None,
            (_false(SOURCE_FETCHED, failure), Condition(SCORED, "Unknown", "NotAttempted", why)),
        )
    return RoundReport(None, (_fetched(warnings), _false(SCORED, failure)))


def with_remark(report: RoundReport, remark: str) -> RoundReport:
    """Return the report with a remark at the end of each message about a failed stage."""
    conditions = (
        replace(one, message=f"{one.message}; {remark}") if one.status == "False" else one
        for one in report.conditions
    )
    return RoundReport(report.scores, tuple(conditions))


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
