"""`dsf top` on Textual's own pilot, beside a real optimizer over HTTP; and what it refuses."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube import kinds
from optimizer.cli.top.command import top
from optimizer.cli.top.fleet_reader import FleetAnswer, FleetFollower
from optimizer.cli.top.fleet_tables import MALFORMED, VIEWS, matching, natural
from tests.dsf.sim.builders import NOW
from tests.eventually import eventually
from tests.mcp_server.service import serving
from tests.optimizer.build import obj

terminal = pytest.importorskip("optimizer.cli.top.terminal")

SMALLEST = (80, 24)


async def until(pilot: Any, reached: Callable[[], bool]) -> None:
    """Wait until a screen shows something."""

    async def shown() -> bool:
        await pilot.pause()
        return reached()

    await eventually(shown)


def cells(app: Any) -> list[tuple[str, ...]]:
    table = app.query_one(terminal.DataTable)
    return [tuple(map(str, table.get_row_at(at))) for at in range(table.row_count)]


def told(app: Any) -> str:
    return str(app.query_one("#told").content)


async def test_keys_go_through_the_views_of_a_fleet_that_changes() -> None:
    async with serving(read_only=False) as service:
        app = terminal.Top(FleetFollower(service.url, "default"))
        async with app.run_test(size=SMALLEST) as pilot:
            await until(pilot, lambda: any(row[0] == "wrong" for row in cells(app)))
            await pilot.press(*":cl", "enter")
            await until(pilot, lambda: "clusters of default" in told(app))
            assert [row[0] for row in cells(app)] == ["worker01", "worker02"]
            await service.hub.create(
                kinds.MANAGED_CLUSTER, obj(kinds.MANAGED_CLUSTER, "worker10[bold]"[:8])
            )
            await until(pilot, lambda: len(cells(app)) == 3)
            await pilot.press("slash", *"02", "enter")
            await until(pilot, lambda: [row[0] for row in cells(app)] == ["worker02"])
            assert "1 of 3 rows | /02" in told(app)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, terminal.Details))
            await pilot.press("escape")
            await pilot.press("escape")
            await until(pilot, lambda: len(cells(app)) == 3)
            await pilot.press("j", "j", "k")
            assert app.query_one(terminal.DataTable).cursor_row == 1
            for view, table in VIEWS.items():
                await pilot.press("colon", *view, "enter")
                await until(pilot, lambda view=view: told(app).startswith(view))  # type: ignore[misc]
                columns = app.query_one(terminal.DataTable).ordered_columns
                assert tuple(str(column.label) for column in columns) == table.columns
            await pilot.press("question_mark")
            await until(pilot, lambda: isinstance(app.screen, terminal.Details))
            await pilot.press("q", "q")
        assert app.return_value is None


async def test_an_optimizer_that_goes_away_is_told_and_the_last_answer_stays() -> None:
    async with serving() as service:
        app = terminal.Top(FleetFollower(service.url, "default"))
        context = app.run_test(size=SMALLEST)
        pilot = await context.__aenter__()
        await until(pilot, lambda: bool(cells(app)))
    try:
        await until(pilot, lambda: "the optimizer can't be reached" in told(app))
        assert cells(app)
    finally:
        await context.__aexit__(None, None, None)


async def test_what_is_no_optimizer_or_refuses_is_a_line() -> None:
    async with serving() as service:
        for url, namespace, said in (
            (service.url, "unknown", "answered 404"),
            (f"{service.url}/nothing", "default", "answered 404"),
            ("http://127.0.0.1:1", "default", "the optimizer can't be reached: ConnectError"),
            ("http://xn--a", "default", "the optimizer can't be reached: InvalidCodepoint"),
        ):
            app = terminal.Top(FleetFollower(url, namespace))
            async with app.run_test(size=SMALLEST) as pilot:
                await until(pilot, lambda app=app, said=said: said in told(app))  # type: ignore[misc]


@asynccontextmanager
async def answering(answers: dict[str, Any]) -> AsyncIterator[str]:
    """Serve JSON by path, as some other program; anything else is an empty object."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode().partition("?")[0]
        body = json.dumps(answers.get(path, {})).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_nothing_is_told_that_was_not_answered() -> None:
    broken = {"/fleet": {"clusters": [{}], "findings": [{}]}}
    async with (
        answering({}) as other,
        answering({"/fleet": {"clusters": []}}) as refusing,
        answering(broken) as strange,
    ):
        app = terminal.Top(FleetFollower(other, "default"))
        async with app.run_test(size=SMALLEST) as pilot:
            await until(pilot, lambda: "lists no clusters: is it an optimizer?" in told(app))
            assert cells(app) == []
        app = terminal.Top(FleetFollower(refusing, "default"))
        async with app.run_test(size=SMALLEST) as pilot:
            await until(pilot, lambda: bool(cells(app)))
            assert [row[:2] for row in cells(app)] == [("wrong", "nothing"), ("moving", "-")]
            await pilot.press(*":ro", "enter")
            await until(pilot, lambda: [row[0] for row in cells(app)] == ["-"])
        app = terminal.Top(FleetFollower(strange, "default"))
        async with app.run_test(size=SMALLEST) as pilot:
            await until(pilot, lambda: "can't be read: KeyError('name')" in told(app))
            await pilot.press(*":wo", "enter")
            await until(pilot, lambda: told(app).startswith("workloads of default | 0 rows | read"))


async def test_rows_are_drawn_anew_only_when_they_change_and_may_vanish() -> None:
    clusters = [{"name": name, "enforced": []} for name in "ab"]
    app = terminal.Top(FleetFollower("http://127.0.0.1:1", "default"))
    async with app.run_test(size=SMALLEST) as pilot:
        await pilot.press(*":cl", "enter", "down")
        app._tell(FleetAnswer({"clusters": clusters}, [], []))
        table = app.query_one(terminal.DataTable)
        table.move_cursor(row=1)
        drawn = [*table.rows]
        app._tell(FleetAnswer({"clusters": clusters}, [], []))
        assert [*table.rows] == drawn
        table.action_select_cursor()
        app._tell(FleetAnswer({"clusters": clusters[:1]}, [], []))
        await pilot.pause()
        assert [row[0] for row in cells(app)] == ["a"]
        assert not isinstance(app.screen, terminal.Details)


def test_rows_tell_in_words_what_is_wrong_and_escape_what_others_wrote() -> None:
    hostile = "app\x1b[31m\u202e"
    finding = {"reason": "NotPlaced", "name": hostile, "message": hostile, "next": "look"}
    cluster = {
        "name": hostile,
        "enforced": [],
        "obstacles": [{"reason": "ClusterLost", "message": hostile}],
    }
    kept = {"name": "default", "reason": "Kept", "status": {"gain": 12.5}}
    rollout = {"record": "r", "phase": "Progressing", "step": 2, "steps": [{}, {}, {}]}
    fleet = {"findings": [finding], "clusters": [cluster]}
    answer = FleetAnswer(fleet, [kept], [rollout])
    shown = {name: list(view.rows(answer, NOW)) for name, view in VIEWS.items()}
    assert not any("\x1b" in text or "\u202e" in text for text in map(str, shown.values()))
    assert shown["overview"][0].cells[:2] == ("wrong", "1 error")
    assert ("gain", "12.5", "default: Kept") in [row.cells for row in shown["overview"]]
    assert shown["rollouts"][0].cells[:3] == ("r", "Progressing", "step 2 of 3")
    assert shown["clusters"][0].cells[1] == "ClusterLost"
    for view in VIEWS.values():
        assert all(len(row.cells) == len(view.columns) for row in view.rows(answer, NOW))
    assert matching(shown["clusters"], "CLUSTERL") == shown["clusters"]


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
)
KEYS = ["name", "reason", "message", "since", "next", "count", "names", "valid_until", "enforced"]
ITEMS = st.lists(st.dictionaries(st.sampled_from(KEYS), JUNK) | JUNK, max_size=2) | JUNK


@given(st.dictionaries(st.sampled_from([*VIEWS, "scores", "capacity"]), ITEMS), JUNK, JUNK)
def test_whatever_json_answers_it_is_rows_or_malformed(
    fleet: Any, kept: Any, rollouts: Any
) -> None:
    for view in VIEWS.values():
        with suppress(*MALFORMED):
            for row in view.rows(FleetAnswer(fleet, kept, rollouts), NOW):
                assert len(row.cells) == len(view.columns)


def test_names_are_in_the_order_of_people() -> None:
    names = ["app10", "app2", "app", "2b", "app2x"]
    assert sorted(names, key=natural) == ["2b", "app", "app2", "app2x", "app10"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--url", "ftp://x"], 2, "is not an http or https URL"),
        (["--url", "http://[::1"], 2, "is not an http or https URL"),
        (["--url", "http://x:65536"], 2, "is not an http or https URL"),
        (["--token-file", "{token}", "--url", "http://hub.example"], 2, "use https"),
        (["--token-file", "{empty}"], 2, "holds no token"),
        (["--ca-file", "{token}"], 2, "no PEM certificates"),
        (["-n", "default"], 1, "needs a terminal"),
    ],
)
def test_what_can_not_be_watched_is_refused_in_a_line(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    files = {"token": tmp_path / "token", "empty": tmp_path / "empty"}
    files["token"].write_text("s3cr3t\n")
    files["empty"].write_text("\n")
    answer = CliRunner().invoke(top, [one.format_map(files) for one in arguments])
    assert answer.exit_code == code
    assert said in answer.output.splitlines()[-1]
    assert "s3cr3t" not in answer.output


def test_without_the_extra_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.delitem(sys.modules, "optimizer.cli.top.terminal")
    monkeypatch.setitem(sys.modules, "textual.app", None)
    answer = CliRunner().invoke(top, [])
    assert answer.exit_code == 1
    assert "pip install 'dynamic-scoring-framework[top]'" in answer.output
