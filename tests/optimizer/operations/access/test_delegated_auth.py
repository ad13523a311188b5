"""Answers of the hub are cached for seconds, in a bounded cache whose keys are not tokens."""

import pytest

from dsf.kube.access_reviews import right
from dsf.kube.errors import Unreachable
from dsf.kube.kinds import PLACEMENT
from optimizer.operations.access.delegated_auth import (
    CACHE_SECONDS,
    DelegatedAuth,
    ReviewCache,
    bearer_token,
)
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.fault_injection import Fault, Faulty, at
from tests.kube_wrappers.reviewing_hub import ReviewingHub
from tests.optimizer.build import NOW
from tests.optimizer.operations.access.callers import READER, WRITER, table

MAY_CREATE = right("create", PLACEMENT, "default")
REVIEW = ("create", "tokenreviews.authentication.k8s.io")


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def auth(clock: Clock | None = None) -> tuple[DelegatedAuth, Counting]:
    hub = Counting(ReviewingHub(now=lambda: NOW, access=table()))
    return DelegatedAuth(hub, clock=clock or Clock()), hub


@pytest.mark.parametrize(
    ("token", "user"),
    [
        ("token-of-writer", WRITER),
        ("forged", None),
        ("token-of-yesterday", None),
        ("token-for-the-api-server", None),
    ],
)
async def test_a_token_is_that_of_a_user_or_of_nobody(token: str, user: object) -> None:
    checked, _ = auth()
    assert await checked.authenticate(token) == user


@pytest.mark.parametrize("token", ["token-of-writer", "forged"])
async def test_the_hub_is_asked_once_in_some_seconds(token: str) -> None:
    clock = Clock()
    checked, hub = auth(clock)
    asked = []
    for seconds in (0.0, CACHE_SECONDS / 2, CACHE_SECONDS, CACHE_SECONDS * 1.5):
        clock.seconds = seconds
        await checked.authenticate(token)
        asked.append(hub.calls[REVIEW])
    assert asked == [1, 1, 2, 2]


async def test_rights_are_those_of_each_user() -> None:
    checked, hub = auth()
    for _ in range(2):
        assert await checked.missing(WRITER, [MAY_CREATE]) == ()
        assert await checked.missing(READER, [MAY_CREATE]) == (MAY_CREATE,)
    assert hub.calls["create", "subjectaccessreviews.authorization.k8s.io"] == 2


async def test_a_hub_that_can_not_answer_lets_nobody_in_and_is_asked_again() -> None:
    hub = Faulty(
        ReviewingHub(now=lambda: NOW, access=table()), at({1: Fault(Unreachable("it is down"))})
    )
    checked = DelegatedAuth(hub, clock=Clock())
    with pytest.raises(Unreachable):
        await checked.authenticate("token-of-writer")
    assert await checked.authenticate("token-of-writer") == WRITER


async def test_the_cache_is_bounded() -> None:
    cache: ReviewCache[int, int] = ReviewCache(Clock(), entries=10)
    asked = []

    async def ask(key: int) -> int:
        asked.append(key)
        return key

    for key in [*range(100), 99, 0]:
        assert await cache.get(key, lambda key=key: ask(key)) == key
    assert asked == [*range(100), 0]


async def test_no_token_is_kept() -> None:
    checked, _ = auth()
    await checked.authenticate("token-of-writer")
    assert "token-of-writer" not in repr(vars(checked._users))


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc.DEF-1_2~+/==", "abc.DEF-1_2~+/=="),
        ("bearer  abc", "abc"),
        ("", ""),
        ("Bearer", ""),
        ("Bearer ", ""),
        ("Basic dXNlcjpwYXNz", ""),
        ("Bearer two words", ""),
        ("Bearer a\tb", ""),
        ("Bearer " + "a" * 20_000, ""),
    ],
)
def test_a_header_carries_one_token_or_none(header: str, token: str) -> None:
    assert bearer_token(header) == token
