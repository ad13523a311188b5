# SPDX-License-Identifier: Apache-2.0
"""Reads a scores file again when it changes, and asks the agents to score at once.

Such a push is `POST /score/NAME` of an agent, with the name and the token of a DynamicScorer.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import quote

from ..scoring_service.bearer_token import read_token
from .app import NAME, Tables, config
from .score import InvalidScoresFile, StaticScoreTable, read

POLL_SECONDS = 1.0
TIMEOUT_SECONDS = 10.0
RETRY_SECONDS = 5.0
"""The pause where the agent names none."""

LONGEST_PAUSE_SECONDS = 60.0
"""The next round comes by itself: a longer pause that an agent asks for is not worth a push."""

MAX_DETAIL_BYTES = 4096
"""What is read of an agent's refusal."""

_TEMPORARY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another server."""

    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        return None


@dataclass(frozen=True)
class PushedAgent:
    """Where an agent receives pushes, the file with the token, and the authorities to trust."""

    url: str
    token_file: Path
    tls: SSLContext | None = None

    def push(self, scorer: str) -> float:
        """Ask for the next round of a DynamicScorer; return the seconds to the next try, or 0."""
        url = f"{self.url}/score/{quote(scorer, safe='')}"
        token = read_token(self.token_file)
        if token is None:
            _say(sys.stderr, f"push of {scorer} failed: can't read a token in {self.token_file}")
            return RETRY_SECONDS
        sent = {"Authorization": f"Bearer {token}"}
        # The option allows http and https only.
        request = urllib.request.Request(url, method="POST", headers=sent)  # noqa: S310
        https = urllib.request.HTTPSHandler(context=self.tls)
        try:
            with urllib.request.build_opener(https, _NoRedirect).open(
                request, timeout=TIMEOUT_SECONDS
            ):
                _say(sys.stdout, f"pushed {scorer}")
                return 0
        except urllib.error.HTTPError as refused:
            with refused:
                _say(sys.stderr, f"push of {scorer} refused: {_detail(refused)}")
            asked = refused.headers.get("Retry-After", "")
            pause = float(asked) if asked.isdecimal() else RETRY_SECONDS
            return pause if refused.code in _TEMPORARY and pause <= LONGEST_PAUSE_SECONDS else 0
        except (OSError, HTTPException) as error:
            _say(sys.stderr, f"push of {scorer} failed: {error}")
            return RETRY_SECONDS


def watch(file: Path, tables: Tables, agents: Sequence[PushedAgent]) -> None:
    """Replace the tables of a running app when the file changes, in a thread, and push."""
    threading.Thread(target=_watch, args=(file, tables, agents), daemon=True).start()


def _watch(file: Path, tables: Tables, agents: Sequence[PushedAgent]) -> None:
    known = _stamp(file)
    due: dict[tuple[PushedAgent, str], float] = {}
    while True:
        if (stamp := _stamp(file)) != known:
            known = stamp
            changed = _replaced(tables, read(file))
            due |= {(agent, table.name): 0.0 for agent in agents for table in changed}
        for agent, scorer in [key for key, at in due.items() if at <= time.monotonic()]:
            pause = agent.push(scorer)
            del due[agent, scorer]
            if pause:
                due[agent, scorer] = time.monotonic() + pause
        time.sleep(POLL_SECONDS)


def _stamp(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _replaced(
    tables: Tables, found: list[StaticScoreTable] | InvalidScoresFile
) -> list[StaticScoreTable]:
    """Replace the scores of tables, and return the tables that changed."""
    if isinstance(found, InvalidScoresFile):
        _say(sys.stderr, f"{found.message}; the last scores stay")
        return []
    new = {table.path: table for table in found}
    if {path: config(table) for path, table in new.items()} != {
        path: config(table) for path, table in tables.items()
    }:
        _say(sys.stderr, "more than scores has changed: restart to use the file")
        return []
    changed = [table for path, table in new.items() if table != tables[path]]
    tables.update(new)
    return changed


def _detail(refused: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(refused.read(MAX_DETAIL_BYTES))["detail"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"HTTP {refused.code}"


def _say(where: Any, text: str) -> None:
    where.write(f"{NAME}: {text}\n")
    where.flush()
