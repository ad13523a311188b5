from datetime import UTC, datetime

from dsf.agent.failure import Failure
from dsf.agent.publish.write_permission import PublisherIdentity, WritePauses

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


REFUSED = Failure("publish", "Forbidden", "may not write")
BUSY = Failure("publish", "TooManyRequests", "later")


def test_pauses_double_and_end_once_the_score_is_written() -> None:
    pauses = WritePauses(lambda: 0.0)
    first = pauses.failed("s", REFUSED, 100.0, lasting=False)
    assert (first.until, first.failures) == (101.0, 1)
    assert pauses.current("s", 100.9) == first
    assert pauses.current("s", 101.0) is None
    assert pauses.current("other", 100.0) is None
    second = pauses.failed("s", REFUSED, 101.0, lasting=False)
    assert (second.until, second.failures) == (103.0, 2)
    assert pauses.failing("Forbidden") == REFUSED
    pauses.forget("s")
    assert pauses.current("s", 101.0) is None
    assert pauses.failing("Forbidden") is None
    assert pauses.failed("s", REFUSED, 104.0, lasting=False).failures == 1


def test_failures_that_only_people_end_have_longer_pauses() -> None:
    pauses = WritePauses(lambda: 0.0)
    for _ in range(20):
        passing = pauses.failed("p", REFUSED, 0.0, lasting=False)
        lasting = pauses.failed("l", REFUSED, 0.0, lasting=True)
    assert (passing.until, lasting.until) == (30.0, 300.0)


def test_the_later_of_two_pauses_counts() -> None:
    pauses = WritePauses(lambda: 0.0)
    of_all = pauses.asked(BUSY, 50.0)
    pauses.failed("s", REFUSED, 0.0, lasting=False)
    assert pauses.current("s", 0.5) == pauses.current("t", 0.5) == of_all
    assert of_all.failures == 1
    assert pauses.current("s", 50.0) is None
