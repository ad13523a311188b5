"""Which scorers of a managed cluster run: those whose names and scores are distinct."""

from collections.abc import Iterable
from dataclasses import dataclass

from dsf.api import names
from dsf.api.scoring.scorer_summary import ScorerSummary, load_summaries
from dsf.api.untrusted_text import InvalidInput


@dataclass(frozen=True, slots=True)
class SelectedScorers:
    """The summaries to run, of distinct scorers and scores, and a problem for each one left out."""

    summaries: tuple[ScorerSummary, ...] = ()
    problems: tuple[InvalidInput, ...] = ()


def read_scorers(text: str) -> SelectedScorers | InvalidInput:
    """Return the scorers in the text of `data.summaries`; InvalidInput if it is not a list."""
    loaded = load_summaries(text)
    return loaded if isinstance(loaded, InvalidInput) else select_scorers(loaded)


def select_scorers(summaries: Iterable[ScorerSummary]) -> SelectedScorers:
    """Return the summaries that can run together.

    If two have the same name, or their scores would share an AddOnPlacementScore, only the first
    in the order of names is kept.
    """
    kept, problems = dict[str, ScorerSummary](), list[InvalidInput]()
    owners: dict[str, str] = {}
    for summary in sorted(summaries, key=lambda one: (one.name, one.score_name)):
        shared = names.score_object_name(summary.score_name)
        if summary.name in kept:
            message = f"scorer {summary.name} is listed twice: the first by score name is used"
            problems.append(InvalidInput("DuplicateScorer", message))
        elif shared in owners:
            message = (
                f"score {summary.score_name} of scorer {summary.name} would be published as"
                f" AddOnPlacementScore {shared}, as that of scorer {owners[shared]} is: rename one"
                " of the scores"
            )
            problems.append(InvalidInput("DuplicateScore", message))
        else:
            kept[summary.name], owners[shared] = summary, summary.name
    return SelectedScorers(tuple(kept.values()), tuple(problems))
