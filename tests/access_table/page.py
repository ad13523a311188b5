"""The page docs/reference/access-by-caller.md from what callers got."""

from collections.abc import Iterable, Iterator, Mapping

from tests.access_table.callers import CALLERS, words_of
from tests.access_table.mcp_operations import METHODS, PAGE, TOOLS, WITHOUT_ROWS
from tests.access_table.operations import Operation
from tests.access_table.rest_operations import REST
from tests.access_table.table import Cell
from tests.repository import ROOT

PATH = ROOT / "docs/reference/access-by-caller.md"
COMMAND = ".venv/bin/python -m tests.access_table"

Cells = Mapping[str, Mapping[str, Cell]]

_HEAD = f"""# What each caller gets

A reference for operators and auditors: each operation of the optimizer by each caller, through
REST, through MCP, and for the page. `{COMMAND}` serves an optimizer
with `--auth kubernetes --allow-writes`, asks it about namespace `default`, and writes down what it
answered. Tests fail if an operation is missing here, if MCP or the page let somebody in whom REST
does not, or if an answer changes. [Who may call the optimizer](optimizer-access.md) says how to
give the rights.

## Callers

| caller | who it is |
|---|---|
"""
_CELLS = """
## Cells

| cell | meaning |
|---|---|
| yes | answered, as the administrator is |
| less | answered, without what the caller may not see, such as names in other namespaces |
| nothing | answered, with nothing of what the administrator is shown |
| **writes** | the hub is changed, and the audit log has a line with the caller |
| 401 | refused, because nobody knows who it is |
| 403 | refused, and nothing is written. The words are the rights that the answer names |

| word | rights |
|---|---|"""
_IN_A_CHAT = """
## The page

In a browser the page asks the operations of REST above. In a chat it asks the tool `page_data`
these questions, and writes by the tools above.
"""


def page(cells: Cells) -> str:
    """Return the page."""
    return "\n".join(_lines(cells)) + "\n"


def _lines(cells: Cells) -> Iterator[str]:
    yield _HEAD + "\n".join(f"| {caller.name} | {caller.says} |" for caller in CALLERS)
    yield _CELLS
    yield from _words(cells)
    yield "\n## REST\n"
    yield from _table(cells, REST)
    yield "\n## MCP: tools\n"
    yield from _table(cells, (row for rows in TOOLS.values() for row in rows), like=True)
    yield "\n## MCP: resources and the rest\n"
    others = (rows for name, rows in METHODS.items() if name != "tools/call")
    yield from _table(cells, (row for rows in others for row in rows), like=True)
    unlisted = ", ".join(f"`{name}`" for name in WITHOUT_ROWS)
    yield f"\nThese have no row, because they are about the connection alone: {unlisted}."
    yield _IN_A_CHAT
    yield from _table(cells, PAGE.values(), like=True)


def _words(cells: Cells) -> Iterator[str]:
    """Yield what each word of a refusal stands for."""
    rights: dict[str, set[str]] = {}
    for row in cells.values():
        for cell in row.values():
            for lacking in cell.answer.lacking:
                rights.setdefault(words_of(lacking), set()).add(lacking)
    for word in sorted(rights):
        yield f"| {word} | {'; '.join(sorted(rights[word]))} |"


def _table(cells: Cells, rows: Iterable[Operation], *, like: bool = False) -> Iterator[str]:
    """Yield a table; `like`: with the row of REST that lets the same callers in."""
    names = [caller.name for caller in CALLERS]
    heads = ["operation", *(["as in REST"] if like else []), *names]
    yield f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|"
    for row in rows:
        same = [row.like and _code(row.like)] if like else []
        texts = [cells[row.name][name].text for name in names]
        yield f"| {' | '.join([_code(row.name), *same, *texts])} |"


def _code(name: str) -> str:
    """Return the name of a row, its operation as code."""
    words = name.split(" ")
    many = 2 if words[0].isupper() else 1
    operation, rest = " ".join(words[:many]), " ".join(words[many:])
    comma = "," if operation.endswith(",") else ""
    return f"`{operation.rstrip(',')}`{comma} {rest}".strip()
