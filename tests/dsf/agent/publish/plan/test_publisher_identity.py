from datetime import UTC, datetime

from dsf.agent.publish.plan.publisher_identity import PublisherIdentity

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def score_of(publisher: str) -> dict[str, object]:
    conditions = [{"type": "Publisher", "status": "True", "message": publisher}]
    status = {"validUntil": "2026-01-01T12:01:00Z", "conditions": conditions}
    return {"metadata": {"namespace": "cluster1", "name": "score"}, "status": status}


def test_a_new_identity_is_published_and_the_former_ones_scores_stay_ours() -> None:
    identity = PublisherIdentity()
    for each in ("first", "second"):
        identity.take(each)
        assert [one.message for one in identity.condition] == [each]
    assert identity.foreign_failure(score_of("first"), NOW) is None
    assert identity.foreign_failure(score_of("second"), NOW) is None
    foreign = identity.foreign_failure(score_of("third"), NOW)
    assert foreign is not None
    assert "(third; this one is second)" in foreign.message
