"""The pauses before a score that the hub did not accept is written again."""

from dsf.agent.failure import Failure
from dsf.agent.publish.plan.write_pauses import WritePauses

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
