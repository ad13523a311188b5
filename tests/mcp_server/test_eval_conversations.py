"""Each conversation's calls, made against embedded hubs: facts, sizes, and no guessed names."""

import pytest

from tests.evals.conversation import conversations
from tests.evals.replay import problems, replay_all
from tests.evals.told_names import guessed

ALL = conversations()


def test_a_quarter_of_them_is_held_out() -> None:
    assert len({item.name for item in ALL}) == len(ALL) == 67
    assert sum(item.held_out for item in ALL) >= 16


@pytest.mark.exhaustive
async def test_the_calls_of_every_conversation_tell_what_its_answer_needs() -> None:
    """In one test, so that the conversations of a fleet share one hub in one process."""
    replays = await replay_all(ALL)
    found = {item.conversation.name: list(problems(item)) for item in replays}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) == len(ALL)


def test_a_name_that_nobody_told_is_noticed() -> None:
    fields = {"objective": {}, "what_if": {"examples": [{"lose": ["worker02"]}]}}
    call = {"objective": "power:2", "what_if": {"lose": ["worker02"]}}
    assert guessed(call, "optimize for power", {"properties": fields}) == ["worker02"]
    assert guessed(call, "optimize for power without worker02", {"properties": fields}) == []
