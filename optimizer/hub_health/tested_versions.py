"""Versions that the suites on a real hub pin; docs/reference/tested-versions.md has them all."""

OCM = "1.2.1"
KUBERNETES = "1.34.3"
OLDEST_KUBERNETES = (1, 28)
"""The oldest that the charts accept (`kubeVersion`)."""


def minor(version: str) -> str:
    """Return a version without its patch, as people speak of it: `v1.34` of `1.34.3`."""
    return f"v{version.rpartition('.')[0]}"
