"""The packages of the earlier release's charts, and files in them."""

import tarfile
from pathlib import Path
from typing import Any

import yaml

VERSION = "0.1.0"
CHARTS = ("dynamic-scoring-framework", "dynamic-scoring-optimizer", "policy-watcher")


def package(chart: str) -> Path:
    """The package of a chart, as helm reads it."""
    return Path(__file__).with_name(f"{chart}-{VERSION}.tgz")


def values(chart: str) -> dict[str, Any]:
    """The values that a chart has by default."""
    [found] = _documents(chart, f"{chart}/values.yaml")
    return found


def crds() -> list[dict[str, Any]]:
    """The CRDs that the charts ship."""
    return [crd for chart in CHARTS for crd in _documents(chart, f"{chart}/files/crds/")]


def _documents(chart: str, prefix: str) -> list[dict[str, Any]]:
    with tarfile.open(package(chart)) as archive:
        files = [
            archive.extractfile(name) for name in archive.getnames() if name.startswith(prefix)
        ]
        return [yaml.safe_load(file) for file in files if file]


def objects() -> list[dict[str, Any]]:
    """Objects of the CRDs, with their statuses, which together have every field."""
    text = Path(__file__).with_name("objects.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))
