"""Each field of each door counts: the result, the status or the hub differ with it."""

from functools import cache
from typing import Any

import pytest

from tests.fields.commands import HUB_COMMANDS
from tests.fields.custom_resources import RESOURCES
from tests.fields.door import Door
from tests.fields.mcp_tools import PAGE, TOOLS
from tests.fields.rest_routes import QUESTION, ROUTES

SOLVED = {door.name: door for door in (*ROUTES, *TOOLS, *PAGE, *HUB_COMMANDS)}
DOORS = {**SOLVED, **{door.name: door for door in (QUESTION, *RESOURCES)}}


@pytest.fixture(autouse=True)
def _short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stream of the fleet end, which has no end of its own."""
    monkeypatch.setattr("optimizer.operations.fleet.STREAM_SECONDS", 1.0)


@cache
def unchanged() -> dict[str, Any]:
    """What doors answered to questions without the fields, which several fields share."""
    return {}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_each_published_field_has_a_case_and_no_other(door: Door) -> None:
    fields = list(door.fields())
    assert [name for name in fields if name not in door.cases] == [], "no case says what it does"
    assert [name for name in door.cases if name not in fields] == [], "no schema has these fields"
    assert all(case.why_not or case.value is not None for case in door.cases.values())


@pytest.mark.parametrize(
    ("door", "name"),
    [
        pytest.param(door, name, marks=[pytest.mark.exhaustive] if door in SOLVED else [])
        for door in DOORS
        for name in DOORS[door].cases
    ],
)
async def test_a_field_counts(door: str, name: str) -> None:
    asked, case, known = DOORS[door], DOORS[door].cases[name], unchanged()
    if case.why_not:
        pytest.skip(case.why_not)
    question = f"{door} {case.given} {case.on}"
    if question not in known:
        known[question] = await asked.ask(case.given, case.on)
        again = await asked.ask(case.given, case.on)
        assert known[question] == again, "the same question has two answers"
    given = await asked.ask({**case.given, name: case.value}, case.on)
    assert known[question] != given, f"{door}: {name} is accepted and ignored"
