"""Watches the scorer summaries: the distributed ConfigMap, or a file."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from dsf.api import names
from dsf.kube.kinds import CONFIG_MAP
from dsf.kube.port import Kube, Object
from dsf.runtime.reconcile.reflector import View

log = logging.getLogger(__name__)

POLL_SECONDS = 2.0
"""Seconds between two reads of a file: mounted files change without a reliable event."""

NO_SUMMARIES = "[]"

Emit = Callable[[str], None]


async def watch_config_map(kube: Kube, namespace: str, emit: Emit) -> None:
    """Emit `data.summaries` at the start and at every change, until cancelled.

    A missing ConfigMap means an empty list.
    """
    fields = f"metadata.name={names.CONFIG_MAP}"
    config_maps = View(kube, CONFIG_MAP, namespace, fields=fields, read=summaries_of)
    changed = asyncio.Event()
    config_maps.on_change(lambda _: changed.set())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(config_maps.run())
        await config_maps.synced.wait()
        while True:
            changed.clear()
            emit(config_maps.items.get((namespace, names.CONFIG_MAP), NO_SUMMARIES))
            await changed.wait()


def summaries_of(config_map: Object) -> str:
    """Return the text of a ConfigMap's summaries; empty if the key is missing."""
    return str((config_map.get("data") or {}).get(names.SUMMARIES_KEY, ""))


async def watch_file(path: Path, emit: Emit, *, poll_seconds: float = POLL_SECONDS) -> None:
    """Emit a file's text at the start and whenever it differs, until cancelled."""
    before: str | None = None
    while True:
        text = await asyncio.to_thread(read, path)
        if text is not None and text != before:
            before = text
            emit(text)
        await asyncio.sleep(poll_seconds)


def read(path: Path) -> str | None:
    """Return a file's text; if it can't be read, log why and return None."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        log.warning("summaries file unreadable", extra={"path": str(path), "error": reason})
        return None
