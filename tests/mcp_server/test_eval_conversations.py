"""Each conversation's calls, made against embedded hubs: facts, sizes, and no guessed names."""

from collections import Counter

import pytest

from optimizer.twin.evaluation import settings_question
from tests.evals.__main__ import table
from tests.evals.conversation import conversations
from tests.evals.replay import problems, replay_all
from tests.evals.told_names import guessed
from tests.mcp_server.test_tool_reference import PAGE

ALL = conversations()


def test_a_quarter_of_them_is_held_out() -> None:
    assert len({item.name for item in ALL}) == len(ALL)
    own = [item for item in ALL if not item.max_characters]
    assert sum(item.held_out for item in own) >= len(own) // 5


def test_each_request_has_three_wordings_and_is_answered() -> None:
    requests = [item for item in ALL if item.max_characters]
    names = Counter(item.name.rpartition(" ")[0] for item in requests)
    assert set(names.values()) == {3}
    assert len({item.question for item in requests}) == len(requests)
    assert not any(item.remains for item in requests)


@pytest.mark.exhaustive
async def test_the_calls_of_every_conversation_tell_what_its_answer_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one test, so that the conversations of a fleet share one hub in one process.

    The page has the table of requests, but for the characters of ages, and of a drain that goes on
    or not by the hour at which it is told.
    """
    # A simulation yields to other processes, so on a busy machine it may take longer than it may.
    monkeypatch.setattr(settings_question, "SECONDS", 900.0)
    replays = await replay_all(ALL)
    found = {item.conversation.name: list(problems(item)) for item in replays}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) == len(ALL)
    first = [item for item in replays if item.conversation.name.endswith("(1)")]
    page, printed = _rows(PAGE.read_text()), _rows(await table(first))
    assert page.keys() == printed.keys(), "python -m tests.evals --table prints it"
    for name, (right, calls, *sizes) in printed.items():
        assert page[name][:2] == [right, calls], name
        for said, counted in zip(page[name][2:], sizes, strict=True):
            assert said == counted or float(said) == pytest.approx(float(counted), rel=0.1), name


def _rows(text: str) -> dict[str, list[str]]:
    """Return the cells of the table of requests by what is asked."""
    lines = text[text.index("| what is asked, in three") :].partition("\n\n")[0].splitlines()
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:])
    return {name: rest for name, *rest in cells}


def test_a_name_that_nobody_told_is_noticed() -> None:
    fields = {"objective": {}, "what_if": {"examples": [{"lose": ["worker02"]}]}}
    call = {"objective": "power:2", "what_if": {"lose": ["worker02"]}}
    assert guessed(call, "optimize for power", [{"properties": fields}]) == ["worker02"]
    assert guessed(call, "optimize for power without worker02", [{"properties": fields}]) == []
