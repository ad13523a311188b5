"""A Chromium for the suite: from PATH, or installed from Debian's package where the suite may."""

import os
import shutil
import subprocess
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_INSTALL = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium")


class NoChromium(Exception):
    """There is no Chromium; the message says what to do."""


def chromium() -> Path:
    """Return its path. Raises NoChromium."""
    found = _on_path()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (("apt-get", "update", "--quiet"), _INSTALL):
            subprocess.run(command, check=True, capture_output=True)
        found = _on_path()
    if found is None:
        raise NoChromium("install Chromium on PATH (on Debian: apt install chromium)")
    return found


def _on_path() -> Path | None:
    return next((Path(path) for path in map(shutil.which, _NAMES) if path), None)
