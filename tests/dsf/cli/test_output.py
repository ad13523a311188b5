"""Colour on terminals only, documents without invisible characters, and progress."""

import io
import threading

import pytest

from dsf.cli.output import Progress, coloured, coloured_diff, document, show
from tests.house.marker import MARKER, raw

TABLE = "WORKLOAD   STATE\napp        Landed\nLanded     Refused\nan app that Landed\n"
GREEN, RED, END = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def test_whole_cells_that_are_states_are_coloured() -> None:
    assert coloured(TABLE).splitlines() == [
        "WORKLOAD   STATE",
        f"app        {GREEN}Landed{END}",
        f"{GREEN}Landed{END}     {RED}Refused{END}",
        "an app that Landed",
    ]
    assert coloured("app   60 (expired)\n") == f"app   {RED}60 (expired){END}\n"


def test_lines_of_a_diff_are_coloured() -> None:
    assert coloured_diff("-a\n+b\n c\n") == f"{RED}-a{END}\n{GREEN}+b{END}\n c\n"


def test_nothing_is_coloured_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    show(TABLE)
    assert capsys.readouterr().out == TABLE


class Terminal(io.StringIO):
    """A terminal; `told` is set as soon as something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        self.told.set()
        return written


@pytest.mark.parametrize(("wish", "shown"), [("", True), ("1", False)])
def test_colour_is_for_terminals_unless_the_user_wants_none(
    monkeypatch: pytest.MonkeyPatch, wish: str, shown: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("NO_COLOR", wish)
    show(TABLE)
    assert (GREEN in terminal.getvalue()) is shown


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_documents_have_no_invisible_characters(form: str) -> None:
    assert not raw(document({"name": MARKER}, form))


def test_progress_is_told_on_a_terminal_and_taken_away() -> None:
    terminal = Terminal()
    with Progress("Reading the hub", terminal, after_seconds=0) as progress:
        assert terminal.told.wait(10)
        progress.detail = "; half of it"
        terminal.told.clear()
        assert terminal.told.wait(10)
    assert terminal.getvalue() == (
        "\r\x1b[KReading the hub: 0 s\r\x1b[KReading the hub: 1 s; half of it\r\x1b[K"
    )


def test_a_quick_command_and_a_pipe_hear_of_no_progress() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    with Progress("Reading the hub", terminal):
        pass
    with Progress("Reading the hub", pipe, after_seconds=0):
        pass
    assert (terminal.getvalue(), pipe.getvalue()) == ("", "")
