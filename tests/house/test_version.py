"""One version: whatever names a release of this framework names that of the code."""

import re
import tomllib
from pathlib import Path

import yaml

from dsf import __version__
from tests.repository import ROOT

from .test_documents import DOCUMENTS

NAMED = re.compile(
    r"(?:dynamic-scoring-framework|[a-z]-scorer):(\d+\.\d+\.\d+)|dynamic_scoring_framework-([\d.]+\d)"
)
"""Images and the wheel. Charts have versions of their own."""
PLACES = [*DOCUMENTS, *sorted((ROOT / "sample_scorers").rglob("manifests/*.yaml"))]


def test_packages_and_charts_have_the_version_of_the_code() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__
    lock = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    assert {item["version"] for item in lock if item["name"] == "dynamic-scoring-framework"} == {
        __version__
    }
    charts = sorted(ROOT.glob("charts/*/Chart.yaml"))
    assert {path.parent.name: _app_version(path) for path in charts} == {
        path.parent.name: __version__ for path in charts
    }


def test_images_and_files_of_a_release_are_named_with_it() -> None:
    named = {
        (path.relative_to(ROOT).as_posix(), image or wheel)
        for path in PLACES
        for image, wheel in NAMED.findall(path.read_text())
    }
    assert len(named) > 5
    assert {item for item in named if item[1] != __version__} == set()


def test_the_version_has_its_notes() -> None:
    heading = re.compile(rf"^## {re.escape(__version__)}\b", re.MULTILINE)
    for path in ("CHANGELOG.md", "docs/reference/releases.md"):
        assert heading.search((ROOT / path).read_text()), path


def _app_version(chart: Path) -> str:
    return str(yaml.safe_load(chart.read_text())["appVersion"])
