"""Reviews of rights and of the caller: resources that answer, and store nothing.

The hub accepts every caller and allows it everything: reviews of the caller itself say so.

Source: https://kubernetes.io/docs/reference/kubernetes-api/ (authentication and authorization)
"""

from collections.abc import Callable
from typing import Any

from dsf.kube import kinds
from dsf.kube.embedded.builtin_resources import built_in, object_of
from dsf.kube.errors import BadRequest
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.resources.resource_catalog import Resource
from dsf.kube.schema import field_errors
from dsf.kube.schema.pruning import ANYTHING, TEXT, Schema

SELF_SUBJECT_RULES_REVIEW = Kind(
    kinds.SELF_SUBJECT_ACCESS_REVIEW.group,
    "v1",
    "SelfSubjectRulesReview",
    "selfsubjectrulesreviews",
    namespaced=False,
)
CALLER = {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
"""The hub authenticates nobody."""


def review_resources() -> list[Resource]:
    """Return the reviews of the caller itself."""
    rights = {"resourceAttributes": ANYTHING, "nonResourceAttributes": ANYTHING}
    return [
        review(kinds.SELF_SUBJECT_REVIEW, {}, lambda _: {"userInfo": CALLER}),
        review(kinds.SELF_SUBJECT_ACCESS_REVIEW, rights, _own_right),
        review(SELF_SUBJECT_RULES_REVIEW, {"namespace": TEXT}, _own_rules),
    ]


def review(kind: Kind, spec: dict[str, Schema], answer: Callable[[Object], Object]) -> Resource:
    """Return the resource of a kind of review; `answer` returns the status."""
    return built_in(kind, {"spec": object_of(**spec), "status": ANYTHING}, review=answer)


def _own_right(review: Object) -> Object:
    spec: dict[str, Any] = review.get("spec") or {}
    if not (spec.get("resourceAttributes") or spec.get("nonResourceAttributes")):
        problem = field_errors.wrong(
            "spec.resourceAttributes",
            None,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
        kind = kinds.SELF_SUBJECT_ACCESS_REVIEW
        raise field_errors.invalid(kind.plural, kind.group, "", [problem])
    return {"allowed": True, "reason": "the embedded hub accepts every caller"}


def _own_rules(review: Object) -> Object:
    if not (review.get("spec") or {}).get("namespace"):
        raise BadRequest("no namespace on request")
    return {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }
