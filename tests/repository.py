"""Where the repository is, for tests that read its documents, charts and manifests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
