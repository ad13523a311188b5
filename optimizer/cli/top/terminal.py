"""The terminal of `dsf top`: one table, one line for commands, keys as in k9s. Needs Textual."""

from datetime import datetime
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Input, Static

from dsf.api.untrusted_text import escaped
from dsf.kube.clock import utc_now
from optimizer.cli.top.fleet_reader import FleetAnswer, FleetFollower
from optimizer.cli.top.fleet_tables import MALFORMED, VIEWS, ViewRow, matching

HELP = f"""\
:       go to a view: {", ".join(VIEWS)} (the beginning of a name is enough)
/       only rows with a text; an empty one shows all
j k     down, up; also the arrows, PageUp, PageDown, Home and End
Enter   details of a row
Esc     close, or show all rows again
?       this help
q       quit"""

KEYS = ": view  / filter  j k move  enter details  ? help  q quit"


class Details(ModalScreen[None]):
    """A text over the table."""

    CSS = """
    Details { align: center middle }
    VerticalScroll { width: 90%; height: 80%; border: solid; padding: 0 1 }
    """
    BINDINGS: ClassVar = [("escape,enter,q", "dismiss", "Close")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield the text, which scrolls."""
        with VerticalScroll():
            yield Static(Text(self._text))


class Top(App[None]):
    """Shows a fleet until its user quits."""

    CSS = """
    #told, #keys { height: 1 }
    Input { height: 3; display: none }
    DataTable { height: 1fr }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [
        ("colon", "ask(':')", "View"),
        ("slash", "ask('/')", "Filter"),
        ("j", "move('down')", "Down"),
        ("k", "move('up')", "Up"),
        ("escape", "clear", "All rows"),
        ("question_mark", "help", "Help"),
        ("q", "quit", "Quit"),
    ]

    def __init__(self, reader: FleetFollower) -> None:
        super().__init__()
        self._reader = reader
        self._answer: FleetAnswer | None = None
        self._read: datetime | None = None
        self._failure = ""
        self._view, self._filter = "overview", ""
        self._columns, self._rows = tuple[str, ...](), list[ViewRow]()

    def compose(self) -> ComposeResult:
        """Yield the line of what is shown, the table, and the line of keys or of a command."""
        yield Static(id="told", markup=False)
        yield DataTable[Any](cursor_type="row")
        yield Input(select_on_focus=False)
        yield Static(KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        """Begin to follow the fleet; ages go on when nothing changes."""
        self._show()
        self.query_one(DataTable).focus()
        self.run_worker(self._reader.follow(self._tell))
        self.set_interval(5.0, self._show)

    def _tell(self, found: FleetAnswer | str) -> None:
        if isinstance(found, str):
            self._failure = found
        else:
            self._answer, self._read, self._failure = found, utc_now(), ""
        self._show()

    def _show(self) -> None:
        table, now = self.query_one(DataTable), utc_now()
        view, at = VIEWS[self._view], table.cursor_row
        rows, problem = list[ViewRow](), self._failure
        try:
            rows += view.rows(self._answer, now) if self._answer else []
        except MALFORMED as error:
            problem = f"the answer can't be read: {error!r}: is the optimizer of another version?"
        shown = matching(rows, self._filter)
        if (view.columns, shown) != (self._columns, self._rows):  # thousands of rows take seconds
            self._columns, self._rows = view.columns, shown
            table.clear(columns=True)
            table.add_columns(*view.columns)
            table.add_rows([map(Text, row.cells) for row in shown])
            table.move_cursor(row=at)
        self.query_one("#told", Static).update(escaped(self._told(len(rows), now, problem)))

    def _told(self, rows: int, now: datetime, problem: str) -> str:
        where = f"{self._view} of {self._reader.namespace}"
        shown = f"{len(self._rows)} of {rows} rows" if self._filter else f"{rows} rows"
        parts = [where, shown, *([f"/{self._filter}"] if self._filter else [])]
        if self._read:
            parts.append(f"read {(now - self._read).total_seconds():.0f}s ago")
        elif not problem:
            parts.append("reading ...")
        return " | ".join([*parts, *([problem] if problem else [])])

    def action_ask(self, what: str) -> None:
        """Ask for a view (`:`), or for a text to filter by (`/`)."""
        line = self.query_one(Input)
        line.display, line.value = True, what
        line.cursor_position = len(what)
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to a view, or filter."""
        self._close_input()
        text = event.value.strip()
        if text.startswith("/"):
            self._filter = text[1:]
        elif name := next((view for view in VIEWS if view.startswith(text[1:].lower())), ""):
            self._view, self._filter = name, ""
        else:
            self.push_screen(Details(f"There is no view {text[1:]!r}.\n\n{HELP}"))
        self._show()

    def on_key(self, event: events.Key) -> None:
        """Close the line of a command by Esc."""
        if event.key == "escape" and self.query_one(Input).has_focus:
            self._close_input()
            event.stop()

    def _close_input(self) -> None:
        self.query_one(Input).display = False
        self.query_one(DataTable).focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show the details of a row."""
        for row in self._rows[event.cursor_row :][:1]:  # there may be fewer rows by now
            self.push_screen(Details("\n".join((" ".join(row.cells), "", row.details))))

    def action_move(self, where: str) -> None:
        """Move the cursor of the table."""
        table = self.query_one(DataTable)
        (table.action_cursor_down if where == "down" else table.action_cursor_up)()

    def action_clear(self) -> None:
        """Show all rows again."""
        self._filter = ""
        self._show()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Details(HELP))
