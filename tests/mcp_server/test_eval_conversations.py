"""Each conversation's calls, made against embedded hubs: facts, sizes, and no guessed names."""

from collections import Counter

import pytest

from tests.evals.conversation import conversations
from tests.evals.replay import problems, replay_all
from tests.evals.told_names import guessed

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
async def test_the_calls_of_every_conversation_tell_what_its_answer_needs() -> None:
    """In one test, so that the conversations of a fleet share one hub in one process."""
    replays = await replay_all(ALL)
    found = {item.conversation.name: list(problems(item)) for item in replays}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) == len(ALL)


def test_a_name_that_nobody_told_is_noticed() -> None:
    fields = {"objective": {}, "what_if": {"examples": [{"lose": ["worker02"]}]}}
    call = {"objective": "power:2", "what_if": {"lose": ["worker02"]}}
    assert guessed(call, "optimize for power", [{"properties": fields}]) == ["worker02"]
    assert guessed(call, "optimize for power without worker02", [{"properties": fields}]) == []
