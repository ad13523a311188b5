"""The controller and the optimizer agree on which scores are valid."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dsf.api.scoring.placement_scores import validity_of
from dsf.api.times import rfc3339
from dsf.hub.snapshot.hub_snapshot import read_score

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("until", "valid"),
    [
        ("2026-11-20T10:00:01Z", True),
        ("2026-11-20T10:00:00Z", False),
        ("2026-11-20T09:30:00-01:00", True),
        ("2026-11-20T11:30:00+02:00", False),
        ("2026-11-20T10:00:01.5Z", True),
        ("soon", False),
        ("", False),
    ],
)
def test_an_end_in_any_spelling_counts_the_same_everywhere(until: str, valid: bool) -> None:
    obj: dict[str, Any] = {
        "metadata": {"name": "power", "namespace": "c1"},
        "status": {"validUntil": until},
    }
    assert (read_score(obj).valid_until > rfc3339(NOW)) is valid
    assert validity_of(obj, NOW)[1] is not valid
