"""Real servers for the suite: from PATH, or unpacked from Debian packages without being root."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class NoProgram(Exception):
    """A program is not available; the message says what to do."""


@dataclass(frozen=True)
class Program:
    """An executable and the Debian package that has it."""

    name: str
    package: str

    def find(self, environ: Mapping[str, str] = os.environ) -> Path:
        """Return its path: from PATH, from an earlier download, or downloaded now.

        Raises NoProgram.
        """
        found = shutil.which(self.name, path=environ.get("PATH"))
        if found:
            return Path(found)
        unpacked = cache(environ) / self.package
        program = unpacked / "usr" / "bin" / self.name
        if not program.exists():
            self._unpack(unpacked, environ)
        return program

    def _unpack(self, to: Path, environ: Mapping[str, str]) -> None:
        """Let apt keep its lists here: those of the machine may be empty, or need root."""
        downloads = to.with_name(f"{self.package}.download")
        shutil.rmtree(downloads, ignore_errors=True)
        (downloads / "apt" / "lists" / "partial").mkdir(parents=True)
        apt = ("apt-get", f"-oDir::State::lists={downloads / 'apt' / 'lists'}")
        apt = (*apt, f"-oDir::Cache={downloads / 'apt'}")
        self._run(environ, downloads, *apt, "update")
        self._run(environ, downloads, *apt, "download", self.package)
        (package,) = downloads.glob("*.deb")
        unpacked = downloads / "unpacked"
        self._run(environ, downloads, "dpkg", "-x", str(package), str(unpacked))
        shutil.rmtree(to, ignore_errors=True)
        unpacked.rename(to)
        shutil.rmtree(downloads)

    def _run(self, environ: Mapping[str, str], directory: Path, *command: str) -> None:
        advice = f"install {self.name} on PATH (on Debian: apt install {self.package})"
        path = environ.get("PATH")
        if shutil.which(command[0], path=path) is None:
            raise NoProgram(f"no {self.name} on PATH, and no {command[0]} to get it with: {advice}")
        done = subprocess.run(
            command, cwd=directory, env=dict(environ), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            words = [word for word in command if not word.startswith("-")]
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise NoProgram(
                f"no {self.name} on PATH, and {' '.join(words)} failed ({''.join(said)}):"
                f" is Debian's mirror reachable? Or {advice}"
            )


def cache(environ: Mapping[str, str]) -> Path:
    """Return where unpacked programs are kept."""
    base = environ.get("XDG_CACHE_HOME") or str(
        Path(environ.get("HOME", "~")).expanduser() / ".cache"
    )
    return Path(base) / "dynamic-scoring-framework" / "sources"


PROMETHEUS = Program("prometheus", "prometheus")
NODE_EXPORTER = Program("prometheus-node-exporter", "prometheus-node-exporter")
VICTORIA_METRICS = Program("victoria-metrics", "victoria-metrics")
PROMTOOL = Program("promtool", "prometheus")
VMALERT = Program("vmalert", "victoria-metrics")
