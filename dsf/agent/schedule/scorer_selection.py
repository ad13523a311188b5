"""Which of the distributed summaries are acted on, and what is wrong with the others."""

from collections.abc import Iterable
from dataclasses import dataclass

from dsf.api import names
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.scorer_summary import ScorerSummary, load_summaries


@dataclass(frozen=True, slots=True)
class SelectedScorers:
    """Summaries of distinct scorers and scores, and the problems of those left out."""

    summaries: tuple[ScorerSummary, ...] = ()
    problems: tuple[InvalidInput, ...] = ()


def parse(text: str) -> SelectedScorers | InvalidInput:
    """Return the configuration in `data.summaries`; InvalidInput where the text is unusable."""
    loaded = load_summaries(text)
    return loaded if isinstance(loaded, InvalidInput) else select(loaded)


def select(summaries: Iterable[ScorerSummary]) -> SelectedScorers:
    """Return the summaries that can be acted on side by side.

    Of two of one name, or whose scores would share an AddOnPlacementScore, the first in the order
    of names counts.
    """
    kept, problems = dict[str, ScorerSummary](), list[InvalidInput]()
    owners: dict[str, str] = {}
    for summary in sorted(summaries, key=lambda one: (one.name, one.score_name)):
        shared = names.score_object_name(summary.score_name)
        if summary.name in kept:
            message = f"scorer {summary.name} stands twice; the first by score name is used"
            problems.append(InvalidInput("DuplicateScorer", message))
        elif shared in owners:
            message = (
                f"score {summary.score_name} of scorer {summary.name} would be published as"
                f" {shared}, which belongs to scorer {owners[shared]}: rename one of the scores"
            )
            problems.append(InvalidInput("DuplicateScore", message))
        else:
            kept[summary.name], owners[shared] = summary, summary.name
    return SelectedScorers(tuple(kept.values()), tuple(problems))
