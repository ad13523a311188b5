from dsf.agent.schedule.scorer_selection import SelectedScorers, read_scorers, select_scorers
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.scorer_summary import dump_summaries
from tests.dsf.agent.builders import summary
from tests.repository import ROOT


def test_summaries_of_the_hub_are_read() -> None:
    summaries = (summary("a"), summary("b"))
    assert read_scorers(dump_summaries(summaries)) == SelectedScorers(summaries)


def test_the_example_of_the_documents_is_read() -> None:
    example = ROOT / "docs/examples/summaries.json"
    found = read_scorers(example.read_text(encoding="utf-8"))
    assert isinstance(found, SelectedScorers)
    assert [one.name for one in found.summaries] == ["example-performance-scorer"]
    assert not found.problems


def test_an_empty_list_is_a_configuration() -> None:
    assert read_scorers("[]") == SelectedScorers()


def test_text_that_is_no_list_is_invalid() -> None:
    for text in ("", "{}", "[{}]", "null", "[" * 1000):
        found = read_scorers(text)
        assert isinstance(found, InvalidInput)
        assert found.reason == "InvalidSummaries"


def test_two_scores_of_one_object_clash() -> None:
    first, second = summary("a", score_name="my_score"), summary("b", score_name="my-score")
    found = select_scorers((second, first))
    assert found.summaries == (first,)
    assert found.problems[0].reason == "DuplicateScore"
    assert "my-score" in found.problems[0].message
    assert "scorer a" in found.problems[0].message


def test_two_scorers_of_one_name_clash() -> None:
    first, second = summary("a", score_name="x"), summary("a", score_name="y")
    found = select_scorers((second, first))
    assert found.summaries == (first,)
    assert found.problems[0].reason == "DuplicateScorer"
