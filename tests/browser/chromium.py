"""A Chromium for the suite: from PATH, or installed from Debian's package where the suite may."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_INSTALL = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium")


class NoChromium(Exception):
    """There is no Chromium; the message says what to do."""


def chromium() -> Path:
    """Return its path. Raises NoChromium."""
    found = _on_path()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        found = _installed()
    if found is None:
        raise NoChromium("install Chromium on PATH (on Debian: apt install chromium)")
    return found


def _installed() -> Path | None:
    """Install it, unless another worker of the suite does: apt-get runs once at a time."""
    with (Path(tempfile.gettempdir()) / "dsf-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _on_path() is None:
            for command in (("apt-get", "update", "--quiet"), _INSTALL):
                subprocess.run(command, check=True, capture_output=True)
    return _on_path()


def _on_path() -> Path | None:
    return next((Path(path) for path in map(shutil.which, _NAMES) if path), None)
