"""The documentation has every reason that a status of the hub can have."""

import re
from pathlib import Path

import dsf.hub
from dsf.hub.report.status_events import _QUIET_REASONS

HUB = Path(dsf.hub.__file__).parent
DOCS = HUB.parents[1] / "docs"
PAGES = [
    DOCS / "reference/conditions-and-events.md",
    *sorted(DOCS.glob("how-to/troubleshooting-*.md")),
]
DOCUMENTED = {
    word for page in PAGES for word in re.findall(r"`(\w+)`", page.read_text(encoding="utf-8"))
}
FOLDERS = ("snapshot", "observe", "assess", "report")
WITHOUT_REASONS = {"views.py"}
# Words with two humps that are no reasons: types of conditions, kinds, values of other fields.
NO_REASONS = {
    "CronJob",
    "DaemonSet",
    "DefaultScore",
    "GET",
    "ConfigConflict",
    "ConfigSynced",
    "ConfigMap",
    "ManagedClusterConditionAvailable",
    "ManifestWork",
    "ManifestWorkReplicaSets",
    "MasksMatched",
    "OpenTelemetry",
    "ReplicaSet",
    "SelectivelyOrphan",
    "SourceFetched",
    "StatefulSet",
}
WORD = r"[A-Z][a-z]*(?:[A-Z][A-Za-z]*)+"


def test_every_reason_is_documented() -> None:
    modules = [path for folder in FOLDERS for path in (HUB / folder).glob("*.py")]
    source = "".join(
        path.read_text(encoding="utf-8") for path in modules if path.name not in WITHOUT_REASONS
    )
    reasons = set(re.findall(f'"({WORD})"', source)) - NO_REASONS
    reasons |= {"APIConfigWins", "Denied", "Compressed", "Redirected", "Unreachable", "Unhealthy"}
    assert reasons - DOCUMENTED == set()


def test_every_reason_that_is_too_quiet_for_an_event_exists() -> None:
    assert DOCUMENTED >= _QUIET_REASONS
