"""The hub controller deletes expired scores whose agent is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conftest import SCORE

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.hub import Hub


def test_an_expired_score_of_an_agent_that_is_gone_is_deleted(hub: Hub, swept: Object) -> None:
    metadata = swept["metadata"]
    assert hub.api.find(*SCORE, metadata["name"], metadata["namespace"]) is None
