"""`dsf top` on Textual's own pilot, beside a real optimizer over HTTP; and what it refuses."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsf.kube import kinds
from optimizer.cli.top.command import top
from optimizer.cli.top.fleet_reader import FleetAnswer, FleetFollower
from optimizer.cli.top.fleet_tables import VIEWS, matching, natural
from tests.dsf.sim.builders import NOW
from tests.mcp_server.service import serving
from tests.optimizer.build import obj

terminal = pytest.importorskip("optimizer.cli.top.terminal")

SMALLEST = (80, 24)
PATIENCE = 200
"""Looks at a screen before a test gives up."""


async def until(pilot: object, reached: Callable[[], bool]) -> None:
    """Wait until a screen shows something."""
    for _ in range(PATIENCE):
        if reached():
            return
        await pilot.pause(0.1)  # type: ignore[attr-defined]
    raise AssertionError("the screen never showed it")


def cells(app: object) -> list[tuple[str, ...]]:
    return [row.cells for row in app._rows]  # type: ignore[attr-defined]


def told(app: object) -> str:
    return str(app.query_one("#told").content)  # type: ignore[attr-defined]


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
        ):
            app = terminal.Top(FleetFollower(url, namespace))
            async with app.run_test(size=SMALLEST) as pilot:
                await until(pilot, lambda app=app, said=said: said in told(app))  # type: ignore[misc]


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
    answer = FleetAnswer(fleet, (kept,), (rollout,))
    shown = {name: list(view.rows(answer, NOW)) for name, view in VIEWS.items()}
    assert not any("\x1b" in text or "\u202e" in text for text in map(str, shown.values()))
    assert shown["overview"][0].cells[:2] == ("wrong", "1 error")
    assert ("gain", "12.5", "default: Kept") in [row.cells for row in shown["overview"]]
    assert shown["rollouts"][0].cells[:3] == ("r", "Progressing", "step 2 of 3")
    assert shown["clusters"][0].cells[1] == "ClusterLost"
    for view in VIEWS.values():
        assert all(len(row.cells) == len(view.columns) for row in view.rows(answer, NOW))
    assert matching(shown["clusters"], "CLUSTERL") == shown["clusters"]


def test_names_are_in_the_order_of_people() -> None:
    names = ["app10", "app2", "app", "2b", "app2x"]
    assert sorted(names, key=natural) == ["2b", "app", "app2", "app2x", "app10"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--url", "ftp://x"], 2, "is not an http or https URL"),
        (["--token-file", "{token}", "--url", "http://hub.example"], 2, "use https"),
        (["--token-file", "{empty}"], 2, "has no token"),
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
