"""Reads series from a file: a scoring request, or an answer of Prometheus' query API."""

import json
from pathlib import Path
from typing import Any

from dsf.agent.failure import Failure
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.prometheus_answer import FetchedSeries, parse_query_answer

MOST_BYTES = 32 << 20
"""The largest answer that an agent reads from a source."""


_TABLES = frozenset({".csv", ".parquet"})
"""How the names of tables end."""


def is_table(path: Path) -> bool:
    """Return whether the name of a file is that of a table."""
    return path.suffix.lower() in _TABLES


class UnusableFile(Exception):
    """A file is no document with series; the message says why."""


def prometheus_answer(path: Path) -> dict[str, Any]:
    """Return the content of a file as an answer of Prometheus. Raises UnusableFile."""
    try:
        document = json.loads(_content(path))
    except (ValueError, RecursionError) as error:
        raise UnusableFile(
            f"{path} is not JSON: {error}; write a scoring request or an answer of Prometheus'"
            " query_range (dsf scorer try and backtest take .csv and .parquet tables too)"
        ) from error
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        data = {"resultType": "matrix", "result": document["data"]}
        return {"status": "success", "data": data}
    if isinstance(document, dict) and document.get("status") == "success":
        return document
    raise UnusableFile(
        f'{path} has no series: write {{"data": [{{"metric": {{}}, "values": []}}]}}, or save an'
        " answer of Prometheus' query_range"
    )


def read_series(path: Path) -> FetchedSeries:
    """Return the series in a file. Raises UnusableFile."""
    body = json.dumps(prometheus_answer(path)).encode()
    found = parse_query_answer("http://file", HttpAnswer(200, "application/json", body))
    if isinstance(found, Failure):
        raise UnusableFile(f"{path}: {found.message.partition('but not ')[2] or found.message}")
    return found


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnusableFile(f"{path} can't be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise UnusableFile(f"{path} is larger than {MOST_BYTES >> 20} MiB")
    return content
