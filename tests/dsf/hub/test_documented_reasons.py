"""docs/how-to/troubleshooting-scorers.md documents every reason that a status can have."""

import re
from pathlib import Path

import dsf.hub
from dsf.hub.report.status_events import _QUIET_REASONS

HUB = Path(dsf.hub.__file__).parent
DOCUMENT = HUB.parents[1] / "docs/how-to/troubleshooting-scorers.md"
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
    text = DOCUMENT.read_text(encoding="utf-8")
    assert reasons - set(re.findall(r"`(\w+)`", text)) == set()


def test_every_reason_that_is_too_quiet_for_an_event_exists() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+)`", text)) >= _QUIET_REASONS
