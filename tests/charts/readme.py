"""Write the README of each chart from its values' comments: ``python -m tests.charts.readme``."""

import subprocess
from pathlib import Path

from tests.charts.programs import program
from tests.charts.rendering import CHARTS

FLAGS = ("--sort-values-order=file", "--template-files=README.md.gotmpl", "--log-level=warning")


def write(charts: Path) -> None:
    """Run helm-docs over a folder of charts."""
    command = [program("helm-docs"), f"--chart-search-root={charts}", *FLAGS]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    write(CHARTS)
