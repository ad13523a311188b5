"""Reviews have the fields that the API server reads, and what it answers is read field by field."""

from typing import Any

import pytest

from dsf.kube import access_reviews
from dsf.kube.access_reviews import (
    NonResourceAttributes,
    ResourceAttributes,
    UserInfo,
    authenticated_user,
    impersonated,
    is_allowed,
    missing_right,
    own_user_name,
    right,
)
from dsf.kube.errors import Conflict, Forbidden
from dsf.kube.kinds import PLACEMENT
from optimizer.operations.access.rights import lacking_own_right

ANN = {
    "username": "ann",
    "uid": "u-1",
    "groups": ["dev", "ops"],
    "extra": {"scopes": ["a", "b"], "pod": ["p"]},
}
USER = UserInfo("ann", "u-1", ("dev", "ops"), (("scopes", ("a", "b")), ("pod", ("p",))))


def reviewed(user: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"status": {"authenticated": True, "user": user, **more}}


@pytest.mark.parametrize(
    ("review", "audiences", "user"),
    [
        (reviewed(ANN), (), USER),
        (reviewed({"username": "ann"}), (), UserInfo("ann")),
        (reviewed(ANN, audiences=["x", "hub"]), ("hub", "y"), USER),
        (reviewed(ANN, audiences=["x"]), ("hub",), None),
        (reviewed(ANN), ("hub",), None),
        (reviewed({"uid": "u-1"}), (), None),
        (reviewed(ANN, authenticated="true"), (), None),
        ({"status": {"user": ANN}}, (), None),
        ({}, (), None),
    ],
)
def test_the_user_of_a_token_is_whom_the_review_names_for_us(
    review: dict[str, Any], audiences: tuple[str, ...], user: UserInfo | None
) -> None:
    assert authenticated_user(review, audiences) == user


def test_we_are_whom_the_review_of_ourselves_names() -> None:
    assert own_user_name({"status": {"userInfo": {"username": "me"}}}) == "me"
    unnamed: tuple[dict[str, Any], ...] = ({}, {"status": {}}, {"status": {"userInfo": {}}})
    assert [own_user_name(review) for review in unnamed] == ["", "", ""]


def test_questions_about_rights_name_the_right_and_the_user() -> None:
    group, plural = PLACEMENT.group, PLACEMENT.plural
    attributes = {"verb": "list", "group": group, "resource": plural, "namespace": "n"}
    asked = access_reviews.subject_access_review(USER, right("list", PLACEMENT, "n"))
    assert asked["spec"] == {
        "resourceAttributes": attributes,
        "user": "ann",
        "uid": "u-1",
        "groups": ["dev", "ops"],
        "extra": ANN["extra"],
    }
    everywhere = access_reviews.self_subject_access_review(right("list", PLACEMENT))
    del attributes["namespace"]
    assert everywhere["spec"] == {"resourceAttributes": attributes}
    metrics = NonResourceAttributes("get", "/metrics")
    asked = access_reviews.self_subject_access_review(metrics)
    assert asked["spec"] == {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
    assert str(metrics) == "get the non-resource URL /metrics"
    assert str(right("list", PLACEMENT)) == f"list {plural}.{group} in all namespaces"
    assert str(ResourceAttributes("get", "", "pods", "n")) == "get pods in namespace n"


def test_only_an_allowance_that_nothing_denies_counts() -> None:
    answers = ({"allowed": True}, {"allowed": True, "denied": True}, {"allowed": "true"}, {}, None)
    assert [is_allowed({"status": each}) for each in answers] == [True, *[False] * 4]


def test_a_right_that_we_lack_is_read_from_the_refusal() -> None:
    said = 'User "me" cannot list resource "placements" in API group "cluster.open" '
    assert missing_right(Forbidden(f'{said}in the namespace "n"')) == ResourceAttributes(
        "list", "cluster.open", "placements", "n"
    )
    assert missing_right(Forbidden(f"{said}at the cluster scope")) == ResourceAttributes(
        "list", "cluster.open", "placements"
    )
    problem = lacking_own_right(Forbidden(f"{said}at the cluster scope"))
    assert problem
    assert "may not: list placements.cluster.open in all namespaces; nothing" in problem.detail
    assert missing_right(Forbidden("admission webhook denied the request")) is None
    assert missing_right(Conflict(f"{said}at the cluster scope")) is None


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("ann", ("dev", "system:authenticated")),
        ("system:serviceaccount:n:a", ("dev", "system:authenticated")),
        ("system:kube-scheduler", None),
    ],
)
def test_nobody_acts_as_a_part_of_kubernetes(user: str, groups: tuple[str, ...] | None) -> None:
    asked = UserInfo(user, "u", ("dev", "system:masters", "system:authenticated"))
    acting = impersonated(asked)
    assert acting == (None if groups is None else UserInfo(user, "u", groups))
