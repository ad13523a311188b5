"""Reviews: a create asks a question, and stores nothing."""

import pytest

from dsf.api.times import read_time
from dsf.kube.access_reviews import (
    NonResourceAttributes,
    UserInfo,
    authenticated_user,
    is_allowed,
    own_user_name,
    right,
    subject_access_review,
    token_review,
)
from dsf.kube.embedded.reviews import SELF_SUBJECT_RULES_REVIEW
from dsf.kube.errors import ApiError, BadRequest, Invalid
from dsf.kube.kinds import (
    PLACEMENT,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    TOKEN_REVIEW,
    Kind,
)
from dsf.kube.port import Kube

STRANGER = UserInfo("nobody-knows-me", groups=("strangers",))


@pytest.mark.parametrize("audiences", [(), ("optimizer",)])
async def test_a_forged_token_is_nobodys(kube: Kube, audiences: tuple[str, ...]) -> None:
    review = await kube.create(TOKEN_REVIEW, token_review("forged", audiences))
    assert authenticated_user(review, audiences) is None
    assert review["kind"] == "TokenReview"


async def test_a_stranger_has_no_rights(kube: Kube) -> None:
    for lacking in (
        right("create", PLACEMENT, "default"),
        NonResourceAttributes("get", "/metrics"),
    ):
        asked = subject_access_review(STRANGER, lacking)
        review = await kube.create(SUBJECT_ACCESS_REVIEW, asked)
        assert not is_allowed(review)
        assert review["status"]["allowed"] is False


async def test_a_caller_does_not_answer_its_own_question(kube: Kube) -> None:
    asked = subject_access_review(STRANGER, right("delete", PLACEMENT, "default"))
    forged = {**asked, "status": {"allowed": True}}
    assert not is_allowed(await kube.create(SUBJECT_ACCESS_REVIEW, forged))


async def test_an_incomplete_question_is_refused(kube: Kube) -> None:
    with pytest.raises(BadRequest, match="token is required"):
        await kube.create(TOKEN_REVIEW, token_review("", ()))
    nobody = subject_access_review(UserInfo(""), right("list", PLACEMENT))
    with pytest.raises(Invalid, match="at least one of user or group"):
        await kube.create(SUBJECT_ACCESS_REVIEW, nobody)


async def test_an_administrator_may_do_everything(kube: Kube) -> None:
    attributes = {"verb": "delete", "group": PLACEMENT.group, "resource": PLACEMENT.plural}
    asked = {"spec": {"resourceAttributes": attributes}}
    review = await kube.create(SELF_SUBJECT_ACCESS_REVIEW, asked)
    assert is_allowed(review)
    assert review["spec"]["resourceAttributes"] == attributes
    answer = await kube.create(SELF_SUBJECT_RULES_REVIEW, {"spec": {"namespace": "default"}})
    rules = answer["status"]["resourceRules"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in rules
    own = await kube.create(SELF_SUBJECT_REVIEW, {})
    assert own_user_name(own)
    assert read_time(own["metadata"]["creationTimestamp"])


async def test_an_incomplete_question_about_oneself_is_refused(kube: Kube) -> None:
    with pytest.raises(Invalid, match="exactly one of nonResourceAttributes or resourceAttributes"):
        await kube.create(SELF_SUBJECT_ACCESS_REVIEW, {"spec": {}})
    with pytest.raises(BadRequest, match="no namespace on request"):
        await kube.create(SELF_SUBJECT_RULES_REVIEW, {"spec": {}})


@pytest.mark.parametrize(
    "kind",
    [
        TOKEN_REVIEW,
        SUBJECT_ACCESS_REVIEW,
        SELF_SUBJECT_REVIEW,
        SELF_SUBJECT_ACCESS_REVIEW,
        SELF_SUBJECT_RULES_REVIEW,
    ],
)
async def test_nothing_is_stored(kube: Kube, kind: Kind) -> None:
    with pytest.raises(ApiError) as refused:
        await kube.list(kind)
    assert refused.value.actual_code == 405
