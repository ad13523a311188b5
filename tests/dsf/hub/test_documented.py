"""Every reason that a status can have stands in docs/troubleshooting-scorers.md."""

import re
from pathlib import Path

import dsf.hub
from dsf.hub.notices import _QUIET

HUB = Path(dsf.hub.__file__).parent
DOCUMENT = HUB.parents[1] / "docs" / "troubleshooting-scorers.md"
MODULES = (
    "health",
    "observe",
    "probe",
    "reading",
    "registration",
    "report",
    "resolve",
    "rules",
    "snapshot",
    "standing",
    "tally",
    "urls",
)
# Words with two humps that are no reasons: types of conditions, kinds, values of other fields.
NO_REASONS = {
    "GET",
    "ConfigConflict",
    "ConfigSynced",
    "ManagedClusterConditionAvailable",
    "MasksMatched",
    "OpenTelemetry",
    "SourceFetched",
}
WORD = r"[A-Z][a-z]*(?:[A-Z][A-Za-z]*)+"


def test_every_reason_is_documented() -> None:
    source = "".join((HUB / f"{name}.py").read_text(encoding="utf-8") for name in MODULES)
    reasons = set(re.findall(f'"({WORD})"', source)) - NO_REASONS
    reasons |= {"APIConfigWins", "Denied", "Compressed", "Redirected", "Unreachable", "Unhealthy"}
    text = DOCUMENT.read_text(encoding="utf-8")
    assert reasons - set(re.findall(r"`(\w+)`", text)) == set()


def test_every_reason_that_is_too_quiet_for_an_event_exists() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+)`", text)) >= _QUIET
